//! A Rust file as the rules see it: its code without comments and literals, and which part of it is test code.
//!
//! A scanner, not a parser: it knows where comments, strings and characters begin and end, and counts braces.
//! That is enough to find words in code, and it cannot fail on a file that does not compile yet.

use std::ops::Range;

use super::tree::line_at;

/// One `.rs` file.
pub struct RustSource {
    /// The file's text, with every comment and literal blanked. Offsets and lines are those of the text.
    pub code: String,
    test_parts: Vec<Range<usize>>,
}

impl RustSource {
    pub fn new(path: &str, text: &str) -> RustSource {
        let code = blank_comments_and_literals(text);
        // A tests folder, or a module file that `#[cfg(test)] mod tests;` brings in.
        let is_test_file = path.split('/').any(|part| part == "tests" || part == "tests.rs");
        let test_parts = if is_test_file { std::iter::once(0..code.len()).collect() } else { test_blocks(&code) };
        RustSource { code, test_parts }
    }

    pub fn is_test(&self, offset: usize) -> bool {
        self.test_parts.iter().any(|part| part.contains(&offset))
    }

    pub fn line(&self, offset: usize) -> usize {
        line_at(&self.code, offset)
    }

    /// Where `wanted` stands in the code as whole words: `rand` is not found in `operand`.
    pub fn find(&self, wanted: &str) -> Vec<usize> {
        let (starts_as_word, ends_as_word) = (wanted.starts_with(is_word), wanted.ends_with(is_word));
        let whole = |offset: usize| {
            let before = self.code[..offset].chars().next_back();
            let after = self.code[offset + wanted.len()..].chars().next();
            let is_cut_before = starts_as_word && before.is_some_and(is_word);
            let is_cut_after = ends_as_word && after.is_some_and(is_word);
            !is_cut_before && !is_cut_after
        };
        self.code.match_indices(wanted).map(|(offset, _)| offset).filter(|offset| whole(*offset)).collect()
    }
}

/// Whether a character can stand in a name.
pub fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The offset just behind the brace that closes the first one in `code[from..]`.
pub fn block_end(code: &str, from: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return offset + 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

fn test_blocks(code: &str) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    for (start, _) in code.match_indices("#[cfg(") {
        let attribute = code[start..].lines().next().unwrap_or_default();
        let names_test = attribute.split(|letter| !is_word(letter)).any(|word| word == "test");
        if !names_test || attribute.contains("not(test") {
            continue;
        }
        let item = start + attribute.len();
        // `mod tests;` has no block here: its file's name says what it is.
        if code[item..].find(['{', ';']).is_some_and(|at| code[item + at..].starts_with('{')) {
            blocks.push(start..block_end(code, item));
        }
    }
    blocks
}

fn blank_comments_and_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        match opaque_end(bytes, at) {
            Some(end) => {
                code[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
                at = end;
            }
            None => at += 1,
        }
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// The end of the comment or literal that begins at `at`, if one does.
fn opaque_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let length = match rest[0] {
        b'/' if rest.starts_with(b"//") => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
        b'/' if rest.starts_with(b"/*") => block_comment(rest),
        b'r' if begins_word(bytes, at) => raw_string(rest)?,
        b'"' => quoted(rest, b'"'),
        b'\'' if rest.get(1) == Some(&b'\\') => quoted(rest, b'\''),
        b'\'' => plain_character(rest)?,
        _ => return None,
    };
    Some((at + length).min(bytes.len()))
}

/// Whether a literal's prefix can begin here: `r`, or the `r` of `br` and `cr`.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let is_name = |index: usize| bytes[index].is_ascii_alphanumeric() || bytes[index] == b'_';
    match at {
        0 => true,
        1 => !is_name(0) || matches!(bytes[0], b'b' | b'c'),
        _ => !is_name(at - 1) || (matches!(bytes[at - 1], b'b' | b'c') && !is_name(at - 2)),
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.resize(1 + hashes, b'#');
    let body = 2 + hashes;
    let found = rest[body..].windows(end.len()).position(|window| window == end);
    Some(found.map_or(rest.len(), |offset| body + offset + end.len()))
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `'x'`, but not the lifetime `'x`.
fn plain_character(rest: &[u8]) -> Option<usize> {
    let letter = match rest.get(1)? {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    (rest.get(1 + letter) == Some(&b'\'')).then_some(letter + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        RustSource::new("src/a.rs", text).code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_are_blank_and_all_else_stays() {
        for (text, left) in [
            ("a // b\nc", "a c"),
            ("a /* b /* c */ d */ e", "a e"),
            (r#"f("x\"y", z)"#, "f( , z)"),
            ("g(r#\"a\"b\"#) h", "g( ) h"),
            ("br\"x\" y", "b y"),
            ("r#type x", "r#type x"),
            (r"'\'' x '\u{1F600}' y 'é' z", "x y z"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("/// it's\nfn f() {}", "fn f() {}"),
            ("\"never closed", ""),
            ("/* never closed", ""),
        ] {
            assert_eq!(code(text), left, "{text}");
        }
    }

    #[test]
    fn lines_do_not_move() {
        let source = RustSource::new("src/a.rs", "/* é\n\n*/ let word = \"x\ny\"; word");
        assert_eq!(source.find("word").iter().map(|at| source.line(*at)).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn words_are_whole() {
        let source = RustSource::new("src/a.rs", "operand rand rand_core a.rand() .unwrap() unwrap");
        assert_eq!(source.find("rand").len(), 2);
        assert_eq!(source.find(".unwrap()").len(), 1);
    }

    #[test]
    fn test_code_is_known_by_its_attribute_or_its_folder() {
        let text =
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { {} } fn c() {} }\nfn d() {}\n#[cfg(not(test))] fn e() {}";
        let source = RustSource::new("src/a.rs", text);
        let is_test = |name: &str| source.is_test(source.find(name)[0]);
        assert_eq!(["fn a", "fn b", "fn c", "fn d", "fn e"].map(is_test), [false, true, true, false, false]);
        for path in ["tests/a.rs", "src/fold/tests.rs"] {
            assert!(RustSource::new(path, "fn a() {}").is_test(0), "{path}");
        }
        assert!(!RustSource::new("src/a.rs", "#[cfg(test)]\nmod tests;\nfn a() {}").is_test(25));
    }
}
