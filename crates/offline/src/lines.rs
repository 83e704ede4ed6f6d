//! What a single line of Markdown is, by itself: a fence, a marker, a heading, a rule.
//!
//! Texts are expected without white space at their ends, but for [`indent`].

/// The column at which the text of a line begins; a tab counts four.
pub(crate) fn indent(text: &str) -> usize {
    let blank = text.bytes().take_while(|b| matches!(b, b' ' | b'\t'));
    blank.map(|b| if b == b'\t' { 4 } else { 1 }).sum()
}

/// The sign and length of a fence that opens or closes here.
pub(crate) fn fence(text: &str) -> Option<(u8, usize)> {
    let sign = text.bytes().next().filter(|b| matches!(b, b'`' | b'~'))?;
    let length = text.bytes().take_while(|b| *b == sign).count();
    let is_inline = sign == b'`' && text[length..].contains('`');
    (length >= 3 && !is_inline).then_some((sign, length))
}

/// The width of a list marker at the head of `text`, with a task's box, without the blanks after it.
pub(crate) fn marker(text: &str) -> Option<usize> {
    if is_underline(text) {
        return None;
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let sign = *text.as_bytes().get(digits)?;
    let is_marker = match digits {
        0 => matches!(sign, b'-' | b'*' | b'+'),
        1..=9 => matches!(sign, b'.' | b')'),
        _ => false,
    };
    let rest = text.get(digits + 1..)?;
    if !is_marker || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let task = ["[ ] ", "[x] ", "[X] "].iter().any(|mark| rest.trim_start().starts_with(mark));
    let blanks = rest.len() - rest.trim_start().len();
    Some(digits + 1 + if task { blanks + 3 } else { 0 })
}

/// Where a comment starts; one in inline code is an example of one.
pub(crate) fn comment(text: &str) -> Option<usize> {
    let at = text.find("<!--")?;
    let backticks = text[..at].bytes().filter(|b| *b == b'`').count();
    backticks.is_multiple_of(2).then_some(at)
}

/// The text of a heading that starts with `#`.
pub(crate) fn heading(text: &str) -> Option<&str> {
    let level = text.bytes().take_while(|b| *b == b'#').count();
    let rest = &text[level..];
    let is_heading = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    is_heading.then(|| rest.trim().trim_end_matches('#').trim_end())
}

/// A line of nothing but one sign: under text it marks a heading, alone it is a rule.
pub(crate) fn is_underline(text: &str) -> bool {
    let sign = text.bytes().next().unwrap_or(0);
    let count = text.bytes().filter(|b| *b == sign).count();
    let is_rule = matches!(sign, b'-' | b'*' | b'_') && count >= 3 && text.bytes().all(|b| b == sign || b == b' ');
    let is_setext = matches!(sign, b'-' | b'=') && count >= 2 && count == text.len();
    is_rule || is_setext
}

/// The line under the head of a table, such as `|---|:--|`.
pub(crate) fn is_table_rule(text: &str) -> bool {
    text.contains('|') && text.contains('-') && text.bytes().all(|b| matches!(b, b'|' | b'-' | b':' | b' '))
}

/// Whether a block of HTML starts here.
pub(crate) fn is_html(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('<') else {
        return false;
    };
    let name = rest.trim_start_matches('/');
    let after_name = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    // An address in angle brackets is text: its name ends in a colon.
    after_name.len() < name.len() && (after_name.is_empty() || after_name.starts_with([' ', '>', '/']))
}

/// Whether this is `[label]: address`, or a footnote.
pub(crate) fn is_link_definition(text: &str) -> bool {
    text.starts_with('[') && text.find("]:").is_some_and(|end| !text[1..end].contains(']'))
}
