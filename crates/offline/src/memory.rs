//! What is known so far, as types. The note carries all of it from one decision to the next.

use std::collections::VecDeque;

use crate::blocks::Place;
use crate::page::Entry;
use crate::sentences::Sentence;

/// The most bytes that the note has.
pub(crate) const NOTE_BYTES: usize = 6 * 1024;

/// The most lines that one read asks for.
pub(crate) const MAX_STEP: u64 = 400;

/// All that the model knows between two decisions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Memory {
    /// The stems that are looked for.
    pub(crate) terms: Vec<String>,
    /// The most bytes that the note may have; less than [`NOTE_BYTES`] after it was refused.
    pub(crate) limit: usize,
    /// How many lines a read asks for; fewer after a result was shortened.
    pub(crate) step: u64,
    /// Counts over the documents that were read to the end.
    pub(crate) tally: Tally,
    /// How far the list is known.
    pub(crate) listing: Listing,
    /// The last name that the list has shown; empty at first.
    pub(crate) listed_to: String,
    /// Where to read on in the first document of the queue.
    pub(crate) place: Place,
    /// The documents to read next, in order.
    pub(crate) queue: VecDeque<Entry>,
    /// The first document of the queue, as far as it was read.
    pub(crate) current: Document,
    /// The documents read to the end of which sentences are kept, in order.
    pub(crate) documents: Vec<Document>,
}

/// Counts over documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Documents read to the end.
    pub(crate) documents: u64,
    /// Documents that could not be read.
    pub(crate) skipped: u64,
    /// Sentences in them.
    pub(crate) sentences: u64,
    /// Words in them.
    pub(crate) words: u64,
    /// For each term, how many of the documents have it.
    pub(crate) having: Vec<u64>,
}

/// How far the list of documents is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// There may be more.
    More,
    /// All of it is known.
    All,
    /// The list could not be had; what was listed before is read.
    Failed,
    /// Reading was given up, since the run's limits are near or the note could not be kept.
    Stopped,
}

/// A document, its counts, and the sentences kept of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Document {
    /// Its name.
    pub(crate) name: String,
    /// How many sentences it has.
    pub(crate) sentences: u64,
    /// How many words it has.
    pub(crate) words: u64,
    /// How often it has each term.
    pub(crate) counts: Vec<u64>,
    /// Bit `i` is set when term `i` is in its name or its first heading.
    pub(crate) titled: u32,
    /// The sentences kept, in the order of lines.
    pub(crate) kept: Vec<Sentence>,
}

impl Memory {
    /// Knows nothing but what to look for.
    pub(crate) fn new(terms: Vec<String>) -> Self {
        let counts = vec![0; terms.len()];
        Self {
            limit: NOTE_BYTES,
            step: MAX_STEP,
            tally: Tally { having: counts.clone(), ..Tally::default() },
            listing: Listing::More,
            listed_to: String::new(),
            place: Place::START,
            queue: VecDeque::new(),
            current: Document { counts, ..Document::default() },
            documents: vec![],
            terms,
        }
    }

    /// True while there is something left to list or to read.
    pub(crate) fn is_reading(&self) -> bool {
        match self.listing {
            Listing::More => true,
            Listing::All | Listing::Failed => !self.queue.is_empty(),
            Listing::Stopped => false,
        }
    }

    /// Gives up the rest. What was read of the open document counts, and is kept.
    pub(crate) fn stop_reading(&mut self) {
        if !self.queue.is_empty() && self.place != Place::START {
            self.finish_document();
        }
        self.listing = Listing::Stopped;
    }

    /// Takes the first document of the queue as read to the end.
    pub(crate) fn finish_document(&mut self) {
        let Some(entry) = self.queue.pop_front() else {
            return;
        };
        let mut document = self.take_current();
        self.tally.add(&document);
        document.name = entry.name;
        if !document.kept.is_empty() {
            self.documents.push(document);
        }
    }

    /// Takes the first document of the queue as one that cannot be read.
    pub(crate) fn skip_document(&mut self) {
        self.queue.pop_front();
        self.take_current();
        self.tally.skipped = self.tally.skipped.saturating_add(1);
    }

    fn take_current(&mut self) -> Document {
        self.place = Place::START;
        let empty = Document { counts: vec![0; self.terms.len()], ..Document::default() };
        std::mem::replace(&mut self.current, empty)
    }

    /// The counts with the open document among them.
    pub(crate) fn tally_so_far(&self) -> Tally {
        let mut tally = self.tally.clone();
        if self.current.sentences > 0 {
            tally.add(&self.current);
        }
        tally
    }
}

impl Tally {
    fn add(&mut self, document: &Document) {
        self.documents = self.documents.saturating_add(1);
        self.sentences = self.sentences.saturating_add(document.sentences);
        self.words = self.words.saturating_add(document.words);
        for (having, count) in self.having.iter_mut().zip(&document.counts) {
            *having = having.saturating_add(u64::from(*count > 0));
        }
    }
}
