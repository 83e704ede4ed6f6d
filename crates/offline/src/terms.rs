//! Words, stop words and stems: when two words count as the same.
//!
//! A word is a run of letters and digits, split again where a small letter meets a capital one
//! (`PinBox` is "pin" and "box"), lower-cased and stemmed. There are no synonyms and no irregular forms.

/// The most terms that a topic has. Later ones are dropped: a note has to carry a number for each.
pub(crate) const MAX_TERMS: usize = 24;

/// Longer words are no words but data; they are never terms.
const MAX_TERM_BYTES: usize = 40;

/// Words that say nothing of what a text is about.
const STOP_WORDS: &str = "a about above after again against all also am an and any are as at be because been \
    before being below between both but by can cannot could did do does doing done down during each either \
    else ever every few for from further get gets got had has have having he her here hers him his how i if \
    in into is it its itself just let like may me might more most much must my neither no nor not of off on \
    once only or other our ours out over own per please same shall she should since so some such than that \
    the their theirs them then there these they this those through to too under until up upon us very was \
    we were what when where whether which while who whom whose why will with within without would yet you \
    your yours";

/// Words that tell the writer what to do. They are dropped when the topic has to be taken from an objective.
const TASK_WORDS: &str = "answer describe document documents explain find folder give investigate publish read report \
    research save summarise summarize summary tell write";

/// The words of `text`, lower-cased and stemmed, in order, repeats included.
pub(crate) fn stems(text: &str) -> Vec<String> {
    words(text).iter().map(|word| stem(word)).collect()
}

/// The distinct terms of a topic, in order. When nothing is left without stop words there are none.
pub(crate) fn topic_terms(topic: &str) -> Vec<String> {
    content_terms(topic, &[STOP_WORDS])
}

/// The distinct terms of an objective: as [`topic_terms`], and without the words of the task itself.
pub(crate) fn objective_terms(objective: &str) -> Vec<String> {
    content_terms(objective, &[STOP_WORDS, TASK_WORDS])
}

/// How often each of `terms` is among `stems`.
pub(crate) fn counts(terms: &[String], stems: &[String]) -> Vec<u64> {
    let count = |term| stems.iter().filter(|stem| *stem == term).count() as u64;
    terms.iter().map(count).collect()
}

fn content_terms(text: &str, dropped: &[&str]) -> Vec<String> {
    let mut terms = Vec::new();
    for word in words(text) {
        let stop = dropped.iter().any(|list| list.split_whitespace().any(|stop| stop == word));
        // One ASCII letter is what is left of "don't"; one letter of another script may be a word.
        if stop || word.len() < 2 || word.len() > MAX_TERM_BYTES {
            continue;
        }
        let term = stem(&word);
        if !terms.contains(&term) {
            terms.push(term);
        }
        if terms.len() == MAX_TERMS {
            break;
        }
    }
    terms
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut after_small = false;
    for c in text.chars() {
        if !word.is_empty() && (!c.is_alphanumeric() || (after_small && c.is_uppercase())) {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        after_small = c.is_lowercase();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The stem of a lower-case word: step 1 of Porter's algorithm ("An algorithm for suffix stripping", 1980),
/// simplified so that it needs no measure.
///
/// Off come the plural (`s`, `es`, `ies`), `ed` and `ing` where a vowel is left, then a final `e`; a final
/// double consonant becomes one, and `y` after a consonant becomes `i`. Where Porter restores an `e` ("hoping",
/// "hope") this takes it off both. Words of other scripts, and of one or two letters, stay as they are.
pub(crate) fn stem(word: &str) -> String {
    if word.len() < 3 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut stem = strip_ending(strip_plural(word)).to_owned();
    // What is left of "used" is "us", which is another word.
    if stem.len() < 3 && stem.len() < word.len() {
        stem.push('e');
    }
    if stem.len() > 3 && stem.ends_with('e') && !stem.ends_with("ee") {
        stem.pop();
    }
    let bytes = stem.as_bytes();
    let (last, before) = (bytes[bytes.len() - 1], bytes[bytes.len() - 2]);
    if stem.len() > 3 && last == before && !is_vowel(last) {
        stem.pop();
    } else if last == b'y' && !is_vowel(before) {
        stem.pop();
        stem.push('i');
    }
    stem
}

fn strip_plural(word: &str) -> &str {
    let plural_of_es = word.ends_with("sses") || word.ends_with("xes");
    if plural_of_es || (word.len() > 4 && word.ends_with("ies")) {
        return &word[..word.len() - 2];
    }
    let rest = word.strip_suffix('s').unwrap_or(word);
    let keeps_s = rest.len() < 3 || rest.ends_with(['s', 'u', 'i']);
    if keeps_s { word } else { rest }
}

fn strip_ending(word: &str) -> &str {
    if let Some(rest) = word.strip_suffix("eed") {
        return if rest.len() > 1 { &word[..word.len() - 1] } else { word };
    }
    for ending in ["ing", "ed"] {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.len() > 1
            && rest.bytes().any(|b| is_vowel(b) || b == b'y')
        {
            return rest;
        }
    }
    word
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        let groups = [
            "operator operators",
            "unwind unwinds unwinding",
            "result results resulting resulted",
            "pin pins pinned pinning",
            "use uses used using",
            "query queries queried querying",
            "try tries tried trying",
            "hope hopes hoped hoping",
            "control controls controlled controlling",
            "class classes",
            "box boxes boxed boxing",
            "pass passes passed passing",
            "agree agrees agreed agreeing",
            "create creates created creating",
        ];
        for group in groups {
            let stems: Vec<_> = group.split(' ').map(stem).collect();
            assert!(stems.iter().all(|s| *s == stems[0]), "{group}: {stems:?}");
        }
    }

    #[test]
    fn stems_are_these() {
        let table = [
            ("need", "need"),
            ("bring", "bring"),
            ("red", "red"),
            ("status", "status"),
            ("this", "this"),
            ("analysis", "analysis"),
            ("async", "async"),
            ("sing", "sing"),
            ("is", "is"),
            ("grün", "grün"),
            ("утка", "утка"),
            ("b2b", "b2b"),
            ("all", "all"),
            ("bus", "bus"),
        ];
        for (word, expected) in table {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn a_topic_is_its_content_words() {
        assert_eq!(topic_terms("why does async Rust need Pin"), ["async", "rust", "need", "pin"]);
        assert_eq!(topic_terms("Operators that unwind results"), ["operator", "unwind", "result"]);
        assert_eq!(topic_terms("what is it?"), [""; 0]);
        assert_eq!(objective_terms("Write a report on the tides"), ["tid"]);
        assert_eq!(topic_terms(&"w x1 ".repeat(9)), ["x1"]);
    }

    #[test]
    fn words_are_split_at_capitals_and_signs() {
        assert_eq!(stems("UnsafePinned::get_mut, HTTPServer"), ["unsaf", "pin", "get", "mut", "httpserver"]);
    }
}
