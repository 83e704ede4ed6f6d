//! A file becomes a run: checked item by item, then taken in whole, and held.

use std::collections::BTreeSet;
use std::io::{Chain, Cursor, Read};

use lodestep_core::checkpoint::Phase;
use lodestep_core::event::{Envelope, Event, StopReason, named_by};
use lodestep_core::rules::inbox::Message;
use lodestep_core::rules::quarantine::quarantine;
use lodestep_core::{Digest, Draft, Error, INLINE_VALUE_BYTES, Result, Timestamp, ValueRef};
use lodestep_store::{Adopt, JournalRow, Letter, Replay, RunRef};

use super::{About, FORMAT, Item, Sent, Stored, altered, chained};
use crate::inspect::verify::repeats;
use crate::runtime::Runtime;

/// What an imported run says of itself.
const IMPORTED: &str = "it came from another store, and the run may be going on there: whatever it does next could then be \
                        done twice; see that it is cancelled there or that the other store is gone, then release or cancel it";

/// A longer item is none: a store's row holds less, and few packed bytes can come to any length.
const ITEM_BYTES: u64 = 1 << 30;

/// A run that was taken in.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The run.
    pub run: RunRef,
    /// What the bundle said of it.
    pub about: About,
    /// True when it is held until a person releases it; one that was over needs no word.
    pub held: bool,
}

impl Runtime {
    /// Takes in a run, with its id: keys, requests and the chain were made with it. One that is not over is quarantined as
    /// `imported` until a person releases it, so that no second copy goes on in silence.
    ///
    /// # Errors
    ///
    /// `bundle.unreadable` for what is no bundle; `bundle.altered` naming the first transition and its events that don't fit;
    /// `bundle.newer_format`;
    /// `bundle.cancelling` for a run that was being cancelled; `run.id_taken`. Nothing is taken in then.
    pub async fn import(&self, from: impl Read) -> Result<Imported> {
        let (mut bundle, about) = Bundle::begun(from)?;
        let mut run = Arriving::default();
        while let Some(item) = bundle.item_of(&run)? {
            if let Some(value) = run.take(item)? {
                self.store.put_value(value).await?;
            }
        }
        let (adopt, held) = run.finish(&about, self.store.now())?;
        let run = self.store.adopt(adopt).await?;
        Ok(Imported { run, about, held })
    }
}

/// Reads a bundle to its end and takes nothing in: what it says of itself, if all of it is sound.
///
/// # Errors
///
/// As [`Runtime::import`], but for those of a store.
pub fn check(from: impl Read, now: Timestamp) -> Result<About> {
    let (mut bundle, about) = Bundle::begun(from)?;
    let mut run = Arriving::default();
    while let Some(item) = bundle.item_of(&run)? {
        run.take(item)?;
    }
    run.finish(&about, now).map(|_| about)
}

/// A run, as far as it was read.
#[derive(Default)]
struct Arriving {
    replay: Replay,
    rows: Vec<JournalRow>,
    letters: Vec<Letter>,
    /// Large values that the transitions so far name and that were not read yet.
    missing: BTreeSet<Digest>,
    known: BTreeSet<Digest>,
    /// The last transition and its events, in words.
    place: String,
}

impl Arriving {
    /// Takes an item in; gives a large value back, which is for a store to keep.
    fn take(&mut self, item: Item) -> Result<Option<Vec<u8>>> {
        match item {
            Item::Transition(stored) => self.transition(stored).map(|()| None),
            Item::Message(sent) => self.message(sent).map(|()| None),
            Item::Value(bytes) if self.missing.remove(&Digest::of(&bytes)) => Ok(Some(bytes)),
            Item::Value(_) => Err(altered(format!("{}: a value that it does not name follows on it", self.place))),
            Item::About(_) => Err(altered("it has two heads")),
            // The end was read by the bundle.
            Item::End(_) => Ok(None),
        }
    }

    fn transition(&mut self, stored: Stored) -> Result<()> {
        self.all_values_came()?;
        let seq = self.rows.len() as u64 + 1;
        // What it says it is, if that can be read at all.
        let names = |envelope: Envelope| envelope.events.iter().map(Event::name).collect::<Vec<_>>().join(", ");
        let said = Envelope::from_bytes(&stored.envelope).map(names).unwrap_or_else(|_| "unreadable".to_owned());
        self.place = format!("transition {seq} ({said})");
        let wrong = |what: &str| altered(format!("{}: {what}", self.place));
        let envelope = self.replay.take_in(&stored.envelope).map_err(|error| wrong(error.what()))?;
        let state = self.replay.checkpoint.as_ref().ok_or_else(|| wrong("it gives no state"))?;
        if state.seq != seq || state.head != stored.head {
            return Err(wrong("its bytes are not what the chain says"));
        }
        let values: Option<Vec<Vec<u8>>> =
            stored.values.map(|values| values.into_iter().map(|value| value.to_vec()).collect());
        let named: Vec<ValueRef> = envelope.events.iter().flat_map(named_by).collect();
        let present: BTreeSet<Digest> = values.iter().flatten().map(|bytes| Digest::of(bytes)).collect();
        let names = |digest: &Digest| named.iter().any(|value| value.digest == *digest);
        if !present.iter().all(names) {
            return Err(wrong("a value of it is altered"));
        }
        for value in &named {
            let large = value.len > INLINE_VALUE_BYTES as u64;
            let there = present.contains(&value.digest) || self.known.contains(&value.digest);
            if large && values.is_some() && !self.known.contains(&value.digest) {
                self.missing.insert(value.digest);
            } else if !large && values.is_some() && !there && !envelope.events.iter().any(|event| repeats(event, value))
            {
                return Err(wrong("a value of it is missing"));
            }
        }
        self.known.extend(named.iter().filter(|value| value.len > INLINE_VALUE_BYTES as u64).map(|value| value.digest));
        self.rows.push(JournalRow { seq, envelope: stored.envelope, values, transcript: None });
        Ok(())
    }

    fn all_values_came(&self) -> Result<()> {
        match self.missing.first() {
            Some(digest) => Err(altered(format!("{}: value {digest} of it is missing", self.place))),
            None => Ok(()),
        }
    }

    fn message(&mut self, sent: Sent) -> Result<()> {
        let place = self.letters.len() as u64 + 1;
        let message = Message::from_bytes(&sent.message);
        if sent.position != place || message.is_err() {
            return Err(altered(format!("message {place} of the inbox is altered")));
        }
        self.letters.push(Letter { position: sent.position, id: sent.id, message });
        Ok(())
    }

    /// The whole run, with the stop that holds it.
    fn finish(mut self, about: &About, now: Timestamp) -> Result<(Adopt, bool)> {
        self.all_values_came()?;
        let state = self.replay.checkpoint.take().ok_or_else(|| altered("it holds no transition"))?;
        let definition = self.replay.definition.unwrap_or(state.definition.digest);
        let is_it = state.seq == about.seq && state.head == about.head && state.run.as_str() == about.run;
        if !is_it || state.namespace != about.namespace || state.inbox > self.letters.len() as u64 {
            return Err(altered(format!("it ends with transition {}, and says that it ends otherwise", state.seq)));
        }
        let epoch = self.replay.epoch;
        let mut adopt = Adopt {
            rows: self.rows,
            state,
            definition,
            epoch,
            tables: self.replay.tables,
            labels: self.replay.labels,
            letters: self.letters,
        };
        match adopt.state.phase {
            Phase::Ended { .. } => return Ok((adopt, false)),
            Phase::Cancelling { .. } => {
                let what = format!("run {} was being cancelled", about.run);
                return Err(Error::new("bundle.cancelling", what, "let it end where it is, then export it again"));
            }
            Phase::Active | Phase::Stopped { .. } => {}
        }
        let mut draft = Draft::next(adopt.state, now, epoch, 0);
        quarantine(&mut draft, StopReason::Imported, IMPORTED)?;
        let stop = draft.seal();
        let seq = stop.checkpoint.seq;
        adopt.rows.push(JournalRow { seq, envelope: stop.envelope, values: Some(stop.values), transcript: None });
        adopt.state = stop.checkpoint;
        Ok((adopt, true))
    }
}

/// The items of a file, with the digest over them.
struct Bundle<'a, R: Read> {
    from: zstd::stream::read::Decoder<'a, std::io::BufReader<Chain<Cursor<[u8; 4]>, R>>>,
    digest: Digest,
}

impl<R: Read> Bundle<'_, R> {
    fn new(mut from: R) -> Result<Self> {
        let mut magic = [0; 4];
        // What is shorter is no bundle either.
        if from.read_exact(&mut magic).is_err() || u32::from_le_bytes(magic) != zstd::zstd_safe::MAGICNUMBER {
            return Err(Error::new("bundle.unreadable", "it is no bundle", "name a file that `lodestep export` wrote"));
        }
        let from = zstd::stream::read::Decoder::new(Cursor::new(magic).chain(from))
            .map_err(|error| altered(format!("it can't be unpacked: {error}")))?;
        Ok(Self { from, digest: Digest::default() })
    }

    /// A bundle, and what it says of itself.
    fn begun(from: R) -> Result<(Self, About)> {
        let mut bundle = Self::new(from)?;
        let Some(Item::About(about)) = bundle.next("its first item")? else {
            return Err(altered("it does not begin with what it is of"));
        };
        if about.format > FORMAT {
            let what = format!("the bundle has format {}, and this build reads up to {FORMAT}", about.format);
            return Err(Error::new("bundle.newer_format", what, "use a newer lodestep"));
        }
        Ok((bundle, about))
    }

    /// The item that follows on what has arrived; `None` after the last.
    fn item_of(&mut self, run: &Arriving) -> Result<Option<Item>> {
        let so_far = run.replay.checkpoint.as_ref().map_or(0, |state| state.seq);
        self.next(&format!("what follows on transition {so_far}"))
    }

    /// The next item. `None` is the end.
    fn next(&mut self, what: &str) -> Result<Option<Item>> {
        let bytes = self.bytes().map_err(|error| altered(format!("{what} can't be read: {error}")))?;
        let item = minicbor::decode(&bytes).map_err(|error| altered(format!("{what} is no item: {error}")))?;
        if let Item::End(digest) = &item {
            let mut more = [0];
            let ends = self.from.read(&mut more).is_ok_and(|read| read == 0);
            return if *digest == self.digest && ends { Ok(None) } else { Err(altered("its end does not fit")) };
        }
        self.digest = chained(&self.digest, &bytes);
        Ok(Some(item))
    }

    fn bytes(&mut self) -> std::io::Result<Vec<u8>> {
        let mut length = [0; 8];
        self.from.read_exact(&mut length)?;
        let (length, mut bytes) = (u64::from_le_bytes(length), Vec::new());
        if length > ITEM_BYTES {
            return Err(std::io::Error::other(format!("it says that it has {length} bytes, and none has")));
        }
        self.from.by_ref().take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }
}
