//! Odd characters made visible, ids made short, numbers made readable.

/// A text in which control, bidirectional and invisible characters are escaped; line ends stay when `lines` says so.
pub fn visible(text: &str, lines: bool) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if (lines && c == '\n') || !is_odd(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_unicode());
        }
        shown
    })
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

/// One line of at most so many characters.
pub fn line(text: &str, most: usize) -> String {
    let shown = visible(text, false);
    if shown.chars().count() <= most {
        return shown;
    }
    let cut: String = shown.chars().take(most.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// The shortest end of an id, of at least four characters, that none of the others ends with.
pub fn short_id<'a>(id: &'a str, others: &[&str]) -> &'a str {
    let mut ends = id.char_indices().rev().map(|(at, _)| &id[at..]).skip(3);
    let clear = |end: &&str| others.iter().all(|other| *other == id || !other.ends_with(end));
    ends.find(clear).unwrap_or(id)
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
        assert_eq!(visible("a\u{202e}b\u{200b}\n\u{7}é", true), "a\\u{202e}b\\u{200b}\n\\u{7}é");
        assert_eq!(visible("a\nb", false), "a\\u{a}b");
    }

    #[test]
    fn ids_are_as_short_as_is_clear() {
        assert_eq!(short_id("abcdef7k2m", &["abcdef7k2m", "xyz"]), "7k2m");
        assert_eq!(short_id("abcdef7k2m", &["zz7k2m"]), "f7k2m");
        assert_eq!(short_id("ab", &[]), "ab");
    }
}
