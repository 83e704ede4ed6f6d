//! Values: byte for byte, whatever is in them and however many.

use std::sync::Arc;

use lodestep_core::{Digest, INLINE_VALUE_BYTES, Stored, ValueRef};

use super::script::{Held, How, code};
use super::{Checked, Failed, Subject, ensure, ensure_equal};
use crate::store::RunRef;

const MIB: usize = 1024 * 1024;

/// Bytes with NULs, that do not compress away.
pub(super) fn content(len: usize) -> Vec<u8> {
    let blocks = (0_u64..).flat_map(|block| *Digest::over("content", &[&block.to_le_bytes()]).as_bytes());
    blocks.map(|byte| if byte < 64 { 0 } else { byte }).take(len).collect()
}

async fn save(held: &mut Held, name: &str, content: &[u8]) -> Result<Stored, Failed> {
    if content.len() > INLINE_VALUE_BYTES {
        ensure_equal!(held.store.put_value(content.to_vec()).await?, ValueRef::of(content));
    }
    let draft = held.artifact(name, 1, content)?;
    held.commit(draft, How::default()).await?;
    Ok(Stored::at(ValueRef::of(content), held.checkpoint.seq))
}

pub(super) async fn values_of_every_size_come_back(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let sizes = [0, 1, 511, 512, 1_200, 5_000, 31_000, 33_000, INLINE_VALUE_BYTES, INLINE_VALUE_BYTES + 1, MIB];
    let mut contents: Vec<Vec<u8>> = sizes.map(content).to_vec();
    contents.extend([vec![0; 3], b"a\0b".to_vec(), br"a\u0000b".to_vec(), vec![0xff, 0xfe], vec![0; MIB]]);
    let mut stored = Vec::new();
    for (place, content) in contents.iter().enumerate() {
        stored.push(save(&mut held, &format!("a{place}"), content).await?);
    }
    for store in [subject.store(), subject.reopen()] {
        let blobs = store.values(&held.claim.run, &stored).await?;
        ensure_equal!(blobs.len(), contents.len());
        for content in &contents {
            let found = blobs.get(&Digest::of(content));
            ensure!(found == Some(content), "a value of {} bytes is not what it was", content.len());
        }
        ensure_equal!(store.values(&held.claim.run, &[]).await?.len(), 0);
    }
    // The definition and inputs stand in the first transition.
    let first = [held.checkpoint.definition, held.checkpoint.inputs];
    ensure_equal!(store.values(&held.claim.run, &first).await?.len(), 2);
    Ok(())
}

pub(super) async fn a_value_is_durable_before_a_transition_names_it(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let held = Held::begin(&store, "one").await?;
    let bytes = content(MIB / 2);
    let put = store.put_value(bytes.clone()).await?;
    ensure_equal!(subject.reopen().put_value(bytes.clone()).await?, put);
    let blobs = subject.reopen().values(&held.claim.run, &[Stored::at(put, 1)]).await?;
    ensure!(blobs.get(&put.digest) == Some(&bytes), "it does not come back");
    Ok(())
}

async fn expect_damaged(subject: &Arc<dyn Subject>, run: &RunRef, stored: &Stored) -> Checked {
    let result = subject.reopen().values(run, &[*stored]).await;
    ensure_equal!(code(&result), "store.value_damaged");
    let says = result.err().map(|error| error.what().to_owned()).unwrap_or_default();
    ensure!(says.contains(&stored.digest.to_hex()), "the digest is not named: {says}");
    Ok(())
}

pub(super) async fn a_damaged_value_is_named(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let inline = save(&mut held, "inline", &content(100)).await?;
    let packed = save(&mut held, "packed", "words ".repeat(500).as_bytes()).await?;
    let long = save(&mut held, "long", &content(5_000)).await?;
    let file = save(&mut held, "file", &content(INLINE_VALUE_BYTES + 1)).await?;
    let sound = save(&mut held, "sound", b"sound").await?;
    for stored in [&inline, &packed, &long, &file] {
        subject.damage_value(&held.claim.run, &stored.digest);
        expect_damaged(&subject, &held.claim.run, stored).await?;
    }
    // One that never was is no better, and the others still come.
    expect_damaged(&subject, &held.claim.run, &Stored::at(ValueRef::of(b"never stored"), sound.seq)).await?;
    ensure_equal!(store.values(&held.claim.run, &[sound]).await?.len(), 1);
    Ok(())
}

pub(super) async fn erased_values_are_left_out(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let gone = save(&mut held, "gone", &content(5_000)).await?;
    let kept = save(&mut held, "kept", b"no secret").await?;
    subject.erase_values(&held.claim.run, gone.seq);
    let blobs = store.values(&held.claim.run, &[gone, kept]).await?;
    ensure_equal!(blobs.into_keys().collect::<Vec<_>>(), [kept.digest]);
    let row = store.journal(&held.claim.run, gone.seq, 1).await?;
    ensure_equal!(row.iter().map(|row| row.values.is_none()).collect::<Vec<_>>(), [true]);
    // The journal still verifies.
    ensure_equal!(store.load(&held.key()).await?.checkpoint()?, held.checkpoint);
    Ok(())
}
