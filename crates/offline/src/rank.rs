//! Which sentences are worth keeping, and which are cited.
//!
//! Scores are the business of [`weights`](crate::weights). This takes the best, each thing said once, and no
//! document alone: within the room of the note while reading, and within the length of a report at the end.

use std::collections::HashSet;

use crate::memory::{Document, Memory};
use crate::note;
use crate::sentences::Sentence;
use crate::terms;
use crate::weights::Weights;

/// From this share of common words on, two sentences say the same.
const SAME_WORDS: f64 = 0.7;

/// The most of the note's room that one document's sentences take.
const DOCUMENT_SHARE: f64 = 0.4;

/// The most sentences of one range that are compared with each other; the best ones.
const MAX_FRESH: usize = 48;

/// The most sentences cited, in all and of one document.
const MAX_CITED: usize = 14;
const MAX_CITED_OF_DOCUMENT: usize = 6;

/// A sentence that scores less than this share of the best one is not cited.
const LEAST_SHARE: f64 = 0.1;

/// A sentence under consideration.
struct Scored {
    document: usize,
    score: f64,
    words: HashSet<String>,
    sentence: Sentence,
}

/// Sentences of several documents, best first, each one that says the same as a better one left out.
fn ranked(memory: &Memory, documents: &[&Document], sentences: Vec<(usize, Sentence)>, most: usize) -> Vec<Scored> {
    let weights = Weights::new(&memory.tally_so_far());
    let score = |(document, sentence): (usize, Sentence)| {
        let stems = terms::stems(&sentence.text);
        let counts = terms::counts(&memory.terms, &stems);
        let score = weights.sentence(documents[document], &counts, stems.len(), &sentence.text);
        Scored { document, score, words: stems.into_iter().collect(), sentence }
    };
    let mut scored: Vec<_> = sentences.into_iter().map(score).filter(|scored| scored.score > 0.0).collect();
    // Ties go by place, so that the same memory always brings the same order.
    scored.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then_with(|| (a.document, a.sentence.from).cmp(&(b.document, b.sentence.from)))
    });
    scored.truncate(most);
    let mut distinct: Vec<Scored> = Vec::new();
    for candidate in scored {
        if !distinct.iter().any(|better| is_same(&better.words, &candidate.words)) {
            distinct.push(candidate);
        }
    }
    distinct
}

fn is_same(a: &HashSet<String>, b: &HashSet<String>) -> bool {
    let common = a.intersection(b).count() as f64;
    common >= SAME_WORDS * (a.len() + b.len()) as f64 - common * SAME_WORDS
}

/// Adds the best of the sentences just read of the open document. [`fit`] has to follow.
pub(crate) fn add(memory: &mut Memory, fresh: Vec<Sentence>) {
    let fresh = fresh.into_iter().map(|sentence| (0, sentence)).collect();
    let fresh = ranked(memory, &[&memory.current], fresh, MAX_FRESH);
    memory.current.kept.extend(fresh.into_iter().map(|scored| scored.sentence));
}

/// Drops the least of the sentences, until the note is within its limit.
pub(crate) fn fit(memory: &mut Memory) {
    let mut documents = std::mem::take(&mut memory.documents);
    documents.push(std::mem::take(&mut memory.current));
    let sentences = take_sentences(&mut documents);
    // The open document's counts are looked up in the memory.
    memory.current = documents.last().cloned().unwrap_or_default();
    let ranked = ranked(memory, &documents.iter().collect::<Vec<_>>(), sentences, usize::MAX);
    let open = documents.len() - 1;
    let room = memory.limit.saturating_sub(note::write(memory).len());
    let most_of_document = (room as f64 * DOCUMENT_SHARE) as usize;
    let (mut used, mut used_by) = (0, vec![0; documents.len()]);
    for Scored { document, sentence, .. } in ranked {
        let mut bytes = note::sentence_bytes(&sentence);
        if used_by[document] == 0 && document != open {
            bytes += note::document_bytes(&documents[document]);
        }
        if used + bytes <= room && used_by[document] + bytes <= most_of_document {
            used += bytes;
            used_by[document] += bytes;
            documents[document].kept.push(sentence);
        }
    }
    for document in &mut documents {
        document.kept.sort_by_key(|sentence| (sentence.from, sentence.to));
    }
    memory.current = documents.pop().unwrap_or_default();
    documents.retain(|document| !document.kept.is_empty());
    memory.documents = documents;
}

/// The sentences to cite, with their documents: documents by the worth of what is cited of them, the best
/// first; sentences by line.
pub(crate) fn choose(memory: &Memory) -> Vec<(String, Vec<Sentence>)> {
    let mut documents = memory.documents.clone();
    let sentences = take_sentences(&mut documents);
    let ranked = ranked(memory, &documents.iter().collect::<Vec<_>>(), sentences, usize::MAX);
    let least = ranked.first().map_or(0.0, |best| best.score * LEAST_SHARE);
    let mut worth = vec![0.0; documents.len()];
    let mut cited = 0;
    for Scored { document, score, sentence, .. } in ranked {
        if cited == MAX_CITED || score < least {
            break;
        }
        if documents[document].kept.len() < MAX_CITED_OF_DOCUMENT {
            cited += 1;
            worth[document] += score;
            documents[document].kept.push(sentence);
        }
    }
    let mut chosen: Vec<_> = worth.into_iter().zip(documents).filter(|(_, d)| !d.kept.is_empty()).collect();
    chosen.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let sorted = |(_, mut document): (f64, Document)| {
        document.kept.sort_by_key(|sentence| (sentence.from, sentence.to));
        (document.name, document.kept)
    };
    chosen.into_iter().map(sorted).collect()
}

fn take_sentences(documents: &mut [Document]) -> Vec<(usize, Sentence)> {
    let of = |(index, document): (usize, &mut Document)| {
        std::mem::take(&mut document.kept).into_iter().map(move |sentence| (index, sentence))
    };
    documents.iter_mut().enumerate().flat_map(of).collect()
}

#[cfg(test)]
mod tests;
