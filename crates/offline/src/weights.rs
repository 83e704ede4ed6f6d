//! What terms, sentences and documents are worth.
//!
//! BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) over the topic's terms. A
//! term weighs by how few of the documents read have it; one that is in every document weighs near nothing.
//! A sentence scores by its terms, by how much of the topic's weight it covers, and is lifted by its
//! document: by how dense the topic is in it, and by terms in its name or first heading.

use crate::memory::{Document, Tally};

/// How soon repeats of a term in one sentence stop counting (soon: naming a thing four times explains nothing),
/// and how much length takes off.
const SENTENCE_K1: f64 = 0.6;
const LENGTH_B: f64 = 0.75;

/// The same for whole documents, where the tenth mention still says something.
const DOCUMENT_K1: f64 = 10.0;

/// How much a topic that is all in the name or first heading lifts a document's sentences.
const TITLE_LIFT: f64 = 0.5;

/// What a sentence loses that ends in no full stop: mostly the lead of a list or of code.
const OPEN_END: f64 = 0.8;

/// What the counts so far say about the worth of terms.
pub(crate) struct Weights {
    /// For each term, how much it weighs.
    idf: Vec<f64>,
    sentence_words: f64,
    document_words: f64,
}

impl Weights {
    /// The weights by these counts.
    pub(crate) fn new(tally: &Tally) -> Self {
        let documents = tally.documents.max(1) as f64;
        let idf = |having: &u64| {
            let having = (*having as f64).min(documents);
            (1.0 + (documents - having + 0.5) / (having + 0.5)).ln()
        };
        Self {
            idf: tally.having.iter().map(idf).collect(),
            sentence_words: (tally.words as f64 / tally.sentences.max(1) as f64).max(1.0),
            document_words: (tally.words as f64 / documents).max(1.0),
        }
    }

    /// What a sentence with these counts and words is worth in this document; 0 without a term.
    pub(crate) fn sentence(&self, document: &Document, counts: &[u64], words: usize, text: &str) -> f64 {
        let total = self.total();
        if total <= 0.0 {
            return 0.0;
        }
        let relevance = self.bm25(counts, words as f64 / self.sentence_words, SENTENCE_K1);
        let covered: f64 = self.idf.iter().zip(counts).filter(|(_, count)| **count > 0).map(|(idf, _)| idf).sum();
        let form = if ends_in_stop(text) { 1.0 } else { OPEN_END };
        relevance * (0.5 + 0.5 * covered / total) * form * self.lift(document)
    }

    /// How much a document lifts its sentences: from 1, when it has nothing of the topic.
    fn lift(&self, document: &Document) -> f64 {
        let total = self.total();
        let density = self.bm25(&document.counts, document.words as f64 / self.document_words, DOCUMENT_K1);
        let in_title = |index: usize| 1_u32.checked_shl(index as u32).is_some_and(|bit| document.titled & bit != 0);
        let titled: f64 = self.idf.iter().enumerate().filter(|(index, _)| in_title(*index)).map(|(_, idf)| idf).sum();
        1.0 + density / (total * (DOCUMENT_K1 + 1.0)) + TITLE_LIFT * titled / total
    }

    fn bm25(&self, counts: &[u64], relative_length: f64, k1: f64) -> f64 {
        let norm = k1 * (1.0 - LENGTH_B + LENGTH_B * relative_length);
        let term = |(idf, count): (&f64, &u64)| {
            let count = *count as f64;
            if count > 0.0 { idf * count * (k1 + 1.0) / (count + norm) } else { 0.0 }
        };
        self.idf.iter().zip(counts).map(term).sum()
    }

    fn total(&self) -> f64 {
        self.idf.iter().sum()
    }
}

fn ends_in_stop(text: &str) -> bool {
    let text = text.trim_end_matches(['*', '_', ')', '"', '”', '\'', '’']);
    text.ends_with(['.', '!', '?'])
}
