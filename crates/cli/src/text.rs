//! Odd characters made visible, ids made short, numbers made readable.

/// A text in which control, bidirectional and invisible characters are escaped, but for line ends and tabs.
pub fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if matches!(c, '\n' | '\t') || !is_odd(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_unicode());
        }
        shown
    })
}

/// More blanks than this, or more line ends, are told by their number: they would push what comes after them out of sight.
const BLANKS: usize = 60;

/// See [`BLANKS`].
const LINE_ENDS: usize = 6;

/// A text in which long stretches of what shows nothing, or is no character for people, are told by their number.
pub fn squeezed(text: &str) -> String {
    let is_blank = |c: char| c.is_whitespace() || c == '\u{2800}' || is_odd(c);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let same = |c: char| is_blank(c) == is_blank(first);
        let (stretch, after) = rest.split_at(rest.find(|c| !same(c)).unwrap_or(rest.len()));
        let (count, ends) = (stretch.chars().count(), stretch.matches('\n').count());
        if is_blank(first) && (count > BLANKS || ends > LINE_ENDS) {
            let all = |wanted: char| stretch.chars().all(|c| c == wanted);
            let what = match () {
                () if all(' ') => "spaces",
                () if all('\n') => "line ends",
                () => "blank or invisible characters",
            };
            shown.push_str(&format!(" [{count} {what}] "));
        } else {
            shown.push_str(stretch);
        }
        rest = after;
    }
    shown
}

/// Several lines, each behind a margin, each and all of them cut where they are more than is read at a glance.
pub fn block(text: &str, margin: &str, most: usize) -> String {
    let shown = visible(text.trim_end());
    let all = shown.lines().count();
    let mut block: String = shown.lines().take(most).map(|text| format!("{margin}{}\n", cut(text, 400))).collect();
    if all > most {
        let more = all - most;
        block.push_str(&format!("{margin}… and {more} more line{}\n", if more == 1 { "" } else { "s" }));
    }
    block
}

fn is_odd(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180e}'
                | '\u{3164}'
                | '\u{ffa0}'
        )
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// One line of at most so many characters; the end of a line inside it is a blank.
pub fn line(text: &str, most: usize) -> String {
    cut(&visible(text).replace(['\n', '\t'], " "), most)
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let cut: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// The columns of the terminal that is written to; `None` when it is none.
pub fn columns(out: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// A text in lines of at most so many characters, broken at blanks: a time or a word that is longer stays whole.
pub fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + word.chars().count() <= most => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The shortest end of an id, of at least four characters, that none of the others ends with.
pub fn short_id<'a>(id: &'a str, others: &[&str]) -> &'a str {
    let mut ends = id.char_indices().rev().map(|(at, _)| &id[at..]).skip(3);
    let clear = |end: &&str| others.iter().all(|other| *other == id || !other.ends_with(end));
    ends.find(clear).unwrap_or(id)
}

/// A size: 512 bytes, 31 KB, 1.2 MB.
pub fn bytes(number: u64) -> String {
    match number {
        0..=999 => format!("{number} bytes"),
        1_000..=999_999 => format!("{} KB", number / 1_000),
        1_000_000..=999_999_999 => format!("{:.1} MB", number as f64 / 1e6),
        _ => format!("{:.1} GB", number as f64 / 1e9),
    }
}

/// 31250 as `31k`, 1250000 as `1.2M`.
pub fn compact(number: u64) -> String {
    match number {
        0..=999 => number.to_string(),
        1_000..=9_999 => format!("{:.1}k", number as f64 / 1e3),
        10_000..=999_999 => format!("{}k", number / 1_000),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_characters_are_seen() {
        assert_eq!(visible("a\u{202e}b\u{200b}\n\u{7}é\t"), "a\\u{202e}b\\u{200b}\n\\u{7}é\t");
        assert_eq!(visible("a\rb\u{1b}[2J"), "a\\u{d}b\\u{1b}[2J");
    }

    #[test]
    fn what_shows_nothing_is_told_by_its_number() {
        for (blank, what) in [
            (" ", "spaces"),
            ("\n", "line ends"),
            ("\u{a0}", "blank or invisible characters"),
            ("\u{2800}", "blank or invisible characters"),
            ("\u{200b}", "blank or invisible characters"),
            ("\r", "blank or invisible characters"),
        ] {
            let hidden = format!("a{}b c", blank.repeat(10_000));
            assert_eq!(squeezed(&hidden), format!("a [10000 {what}] b c"));
        }
        assert_eq!(squeezed(&"\u{3000} ".repeat(99)), " [198 blank or invisible characters] ");
        let plain = " ".repeat(BLANKS) + "fn a() {\n\n\n        b\u{200b}\n}\n";
        assert_eq!(squeezed(&plain), plain, "what people write is left as it is");
    }

    #[test]
    fn several_lines_stand_behind_their_margin() {
        assert_eq!(block("a\n\n b\tc\u{7}\n", "  | ", 9), "  | a\n  | \n  |  b\tc\\u{7}\n");
        assert_eq!(block("a\nb\nc", "  ", 2), "  a\n  b\n  … and 1 more line\n");
        assert_eq!(line("a\nb\tc", 9), "a b c");
        assert_eq!(line("abcdef", 4), "abc…");
    }

    #[test]
    fn lines_break_at_blanks_alone() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("at 2026-11-30T13:00:00Z", 10), ["at", "2026-11-30T13:00:00Z"]);
        assert_eq!(wrapped("", 10), [""]);
    }

    #[test]
    fn words_reach_a_shell_as_they_are() {
        assert_eq!(quoted("a/b-c.md"), "a/b-c.md");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn ids_are_as_short_as_is_clear() {
        assert_eq!(short_id("abcdef7k2m", &["abcdef7k2m", "xyz"]), "7k2m");
        assert_eq!(short_id("abcdef7k2m", &["zz7k2m"]), "f7k2m");
        assert_eq!(short_id("ab", &[]), "ab");
    }
}
