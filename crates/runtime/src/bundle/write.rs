//! A run becomes a file.

use std::collections::BTreeSet;
use std::io::Write;

use lodestep_core::event::{Envelope, named_by};
use lodestep_core::{Digest, Error, INLINE_VALUE_BYTES, Result, Stored as Place};
use lodestep_store::RunRef;

use super::{About, FORMAT, Item, Sent, Stored, chained};
use crate::runtime::Runtime;

/// How many transitions are read at once.
const PAGE: usize = 256;

impl Runtime {
    /// Writes a run as it is now. A worker may go on meanwhile: the bundle ends with the transition that was the last one
    /// when it began.
    ///
    /// # Errors
    ///
    /// `bundle.unwritable` when the writer fails; the store's errors for what can't be read, `store.corrupt` for a journal
    /// that does not end where the run stands. What was written is then of no use.
    pub async fn export(&self, run: &RunRef, into: impl Write) -> Result<About> {
        let (row, letters) = self.store.carried(run).await?;
        let mut bundle = Bundle::new(into)?;
        let about = About {
            format: FORMAT,
            namespace: row.run.key.namespace.clone(),
            run: row.run.key.run.to_string(),
            seq: row.seq,
            head: row.head,
        };
        bundle.add(&Item::About(about.clone()))?;
        let mut head = lodestep_core::draft::root_digest(&row.run.key);
        let (mut next, mut written) = (1, BTreeSet::new());
        while next <= row.seq {
            let rows = self.store.journal(&row.run, next, PAGE).await?;
            let last = rows.last().map_or(row.seq, |row| row.seq);
            for journal in rows.into_iter().filter(|journal| journal.seq <= row.seq) {
                head = head.chain(&journal.envelope);
                let envelope = Envelope::from_bytes(&journal.envelope)?;
                let values = journal.values.map(|values| values.into_iter().map(Into::into).collect());
                bundle.add(&Item::Transition(Stored { envelope: journal.envelope, values, head }))?;
                for value in envelope.events.iter().flat_map(named_by) {
                    if value.len > INLINE_VALUE_BYTES as u64 && written.insert(value.digest) {
                        let blobs = self.store.values(&row.run, &[Place::at(value, journal.seq)]).await?;
                        for bytes in blobs.into_values() {
                            bundle.add(&Item::Value(bytes))?;
                        }
                    }
                }
            }
            next = last + 1;
        }
        if head != row.head {
            let what = format!("the journal of run {} does not give its state after step {}", row.run.key.run, row.seq);
            return Err(Error::new("store.corrupt", what, "`lodestep verify` says where it stops to fit"));
        }
        for letter in letters {
            let message = letter.message?.to_bytes();
            bundle.add(&Item::Message(Sent { position: letter.position, id: letter.id, message }))?;
        }
        bundle.end()?;
        Ok(about)
    }
}

struct Bundle<W: Write> {
    into: zstd::stream::write::Encoder<'static, W>,
    digest: Digest,
}

impl<W: Write> Bundle<W> {
    fn new(into: W) -> Result<Self> {
        // The library's own default level.
        let mut into = zstd::stream::write::Encoder::new(into, 0).map_err(unwritable)?;
        into.include_checksum(true).map_err(unwritable)?;
        Ok(Self { into, digest: Digest::default() })
    }

    fn add(&mut self, item: &Item) -> Result<()> {
        // Encoding into a vector can't fail.
        let bytes = minicbor::to_vec(item).unwrap_or_default();
        self.digest = chained(&self.digest, &bytes);
        self.into.write_all(&(bytes.len() as u64).to_le_bytes()).map_err(unwritable)?;
        self.into.write_all(&bytes).map_err(unwritable)
    }

    fn end(mut self) -> Result<()> {
        let end = Item::End(self.digest);
        self.add(&end)?;
        let mut into = self.into.finish().map_err(unwritable)?;
        into.flush().map_err(unwritable)
    }
}

fn unwritable(error: std::io::Error) -> Error {
    Error::new("bundle.unwritable", format!("the bundle can't be written: {error}"), "make room, then try again")
}
