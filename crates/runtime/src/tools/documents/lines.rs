//! A file as lines of bounded length.
//!
//! A line ends with `\n` or `\r\n`, or with the file. Only the beginning of a long line is kept in
//! memory, since one line may be as long as the file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

/// How much of a line is shown, in bytes.
pub(super) const SHOWN_BYTES: usize = 2000;
/// Kept beyond what is shown, so that it is known whether a character begins there.
const KEPT_BYTES: usize = SHOWN_BYTES + 4;
/// What is taken from the disk at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// One line without its end.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Its first bytes.
    start: Vec<u8>,
    /// Its true length in bytes.
    bytes: u64,
}

/// Reads a file line by line, and notes whether all of it was UTF-8.
pub(super) struct Lines<R> {
    from: BufReader<R>,
    line: Line,
    utf8: Utf8,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Lines { from: BufReader::with_capacity(BUFFER_BYTES, from), line: Line::default(), utf8: Utf8::default() }
    }

    /// Moves to the next line. `None` at the end of the file.
    ///
    /// # Errors
    ///
    /// What the disk says.
    pub(super) fn next(&mut self) -> io::Result<Option<&Line>> {
        self.line.start.clear();
        self.line.bytes = 0;
        let mut began = false;
        // The last byte that was seen, for a `\r` that may belong to the line's end.
        let mut last = 0;
        loop {
            let chunk = match self.from.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                return Ok(began.then_some(&self.line));
            }
            began = true;
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let content = &chunk[..end.unwrap_or(chunk.len())];
            last = content.last().copied().unwrap_or(last);
            self.line.add(content);
            let taken = end.map_or(chunk.len(), |end| end + 1);
            self.utf8.add(&chunk[..taken]);
            self.from.consume(taken);
            if end.is_some() {
                if last == b'\r' {
                    self.line.drop_last();
                }
                return Ok(Some(&self.line));
            }
        }
    }

    /// Whether what was read so far is UTF-8. Ask at the end of the file.
    pub(super) fn is_utf8(&self) -> bool {
        self.utf8.is_valid()
    }
}

impl Line {
    fn add(&mut self, content: &[u8]) {
        let room = KEPT_BYTES - self.start.len();
        self.start.extend_from_slice(&content[..content.len().min(room)]);
        self.bytes += content.len() as u64;
    }

    fn drop_last(&mut self) {
        if self.start.len() as u64 == self.bytes {
            self.start.pop();
        }
        self.bytes -= 1;
    }

    /// The line as text, cut at a character after 2,000 bytes; what is not UTF-8 becomes U+FFFD.
    pub(super) fn shown(&self) -> String {
        if self.bytes <= SHOWN_BYTES as u64 {
            return String::from_utf8_lossy(&self.start).into_owned();
        }
        // At most three bytes back; in what is not UTF-8 there may be no beginning of a character.
        let is_start = |at: &usize| self.start.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
        let cut = (SHOWN_BYTES - 3..=SHOWN_BYTES).rev().find(is_start).unwrap_or(SHOWN_BYTES);
        let text = String::from_utf8_lossy(&self.start[..cut]);
        format!("{text} [… {} bytes left out]", self.bytes - cut as u64)
    }
}

/// Checks a stream for UTF-8, also where a character is cut between two chunks.
#[derive(Default)]
struct Utf8 {
    /// The beginning of a character whose rest is to come; three bytes at most.
    open: Vec<u8>,
    broken: bool,
}

impl Utf8 {
    fn add(&mut self, chunk: &[u8]) {
        if self.broken {
            return;
        }
        let joined;
        let bytes = if self.open.is_empty() {
            chunk
        } else {
            joined = [self.open.as_slice(), chunk].concat();
            &joined
        };
        let rest = match std::str::from_utf8(bytes) {
            Ok(_) => Vec::new(),
            Err(error) => {
                // A length means that these bytes are wrong; none, that they end too early.
                self.broken = error.error_len().is_some();
                bytes[error.valid_up_to()..].to_vec()
            }
        };
        self.open = if self.broken { Vec::new() } else { rest };
    }

    fn is_valid(&self) -> bool {
        !self.broken && self.open.is_empty()
    }
}

/// Counts the lines of a file.
///
/// # Errors
///
/// What the disk says.
pub(super) fn count(file: File) -> io::Result<u64> {
    let mut lines = Lines::new(file);
    let mut count = 0;
    while lines.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], buffer_bytes: usize) -> (Vec<String>, bool) {
        let mut lines = Lines::new(text);
        lines.from = BufReader::with_capacity(buffer_bytes, text);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(line.shown());
        }
        (found, lines.is_utf8())
    }

    #[test]
    fn lines_end_as_expected_in_any_buffer() {
        for (text, expected, utf8) in [
            (&b""[..], &[][..], true),
            (b"\n", &[""], true),
            (b"a", &["a"], true),
            (b"a\nb\n", &["a", "b"], true),
            (b"a\r\n\r\nb\r", &["a", "", "b\r"], true),
            (b"a\rb\n", &["a\rb"], true),
            (b"a\0b\n", &["a\0b"], true),
            ("ä€😀\n".as_bytes(), &["ä€😀"], true),
            (b"a\xffb\n", &["a\u{fffd}b"], false),
            (b"a\xe2\x82", &["a\u{fffd}"], false),
            (b"\xe2\n\x82\xac", &["\u{fffd}", "\u{fffd}\u{fffd}"], false),
        ] {
            for buffer_bytes in [1, 2, 3, 5, 64] {
                let (found, is_utf8) = lines(text, buffer_bytes);
                assert_eq!(
                    (found.as_slice(), is_utf8),
                    (expected.iter().map(ToString::to_string).collect::<Vec<_>>().as_slice(), utf8),
                    "{text:?} by {buffer_bytes}"
                );
            }
        }
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        for (text, shown) in [
            ("x".repeat(2000), "x".repeat(2000)),
            ("x".repeat(2000) + "\r\n", "x".repeat(2000)),
            ("x".repeat(2001), "x".repeat(2000) + " [… 1 bytes left out]"),
            ("x".repeat(1_000_000), "x".repeat(2000) + " [… 998000 bytes left out]"),
            ("x".repeat(1999) + "ä", "x".repeat(1999) + " [… 2 bytes left out]"),
            ("x".repeat(1997) + "😀", "x".repeat(1997) + " [… 4 bytes left out]"),
            ("x".repeat(1998) + "ä!", "x".repeat(1998) + "ä [… 1 bytes left out]"),
        ] {
            assert_eq!(lines(text.as_bytes(), 64).0, [shown]);
        }
        let broken = vec![0x80; 2010];
        assert_eq!(lines(&broken, 64).0, ["\u{fffd}".repeat(2000) + " [… 10 bytes left out]"]);
    }
}
