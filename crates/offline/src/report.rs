//! The report: a title, and nothing but sentences of the documents with the lines they stand in.

use crate::memory::Memory;
use crate::rank;
use crate::sentences::fold;

/// The report of what is known.
pub(crate) struct Report {
    /// Its Markdown.
    pub(crate) text: String,
    /// How many sentences it cites.
    pub(crate) citations: usize,
    /// Of how many documents they are.
    pub(crate) documents: usize,
}

/// The most characters of a title.
const TITLE_CHARS: usize = 160;

/// Writes the report.
pub(crate) fn write(topic: &str, memory: &Memory) -> Report {
    let chosen = rank::choose(memory);
    let mut text = format!("# {}\n", title(topic));
    for (name, sentences) in &chosen {
        text.push_str(&format!("\n## {name}\n\n"));
        for sentence in sentences {
            text.push_str(&format!("- {} [{name}:{}-{}]\n", sentence.text, sentence.from, sentence.to));
        }
    }
    if chosen.is_empty() {
        text.push_str("\nNo sentence of the documents answers this.\n");
    }
    let citations = chosen.iter().map(|(_, sentences)| sentences.len()).sum();
    Report { text, citations, documents: chosen.len() }
}

/// The topic as a title: one line, not too long, never empty.
pub(crate) fn title(topic: &str) -> String {
    let folded = fold(topic);
    match folded.char_indices().nth(TITLE_CHARS) {
        _ if folded.is_empty() => "Report".to_owned(),
        Some((end, _)) => format!("{}…", folded[..end].trim_end()),
        None => folded,
    }
}
