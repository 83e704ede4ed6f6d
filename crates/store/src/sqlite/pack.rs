//! Packed columns: one byte that names the codec, then the bytes; compressed where that pays.
//!
//! Digests are of the plain bytes, so that a codec can change and nothing else notices.

use std::cell::RefCell;

use minicbor::{Decoder, Encoder};
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::get_frame_content_size;

const RAW: u8 = 0;
const ZSTD: u8 = 1;

/// Of a column that is not whole in its row: `piece` joins it.
pub(super) const IN_PIECES: u8 = 2;

/// Shorter ones gain little and cost 2 to 5 µs.
const WORTH_TRYING_BYTES: usize = 512;

/// Level 1: text to 40 %, records to 20 %, in 12 to 20 µs for 4 KiB.
const LEVEL: i32 = 1;

/// More is no packed column, whatever a damaged length says.
const MOST_BYTES: u64 = 1 << 30;

/// A block of a frame: 4 bytes at least, and they come to this at most (RFC 8878, 3.1.1.2.4).
const BLOCK: (u64, u64) = (4, 128 * 1024);

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Packs bytes.
pub fn pack(plain: &[u8]) -> Vec<u8> {
    if plain.len() >= WORTH_TRYING_BYTES
        && let Some(packed) = compress(plain).filter(|packed| packed.len() < plain.len())
    {
        return prefixed(ZSTD, &packed);
    }
    prefixed(RAW, plain)
}

/// The plain bytes, or what is wrong with the packed ones.
pub fn unpack(packed: &[u8]) -> Result<Vec<u8>, &'static str> {
    match packed.split_first() {
        Some((&RAW, plain)) => Ok(plain.to_vec()),
        Some((&ZSTD, rest)) => decompress(rest),
        Some(_) => Err("its codec is unknown"),
        None => Err("it is empty"),
    }
}

/// Packs a list of values: nothing at all when there are none.
pub fn pack_values(values: &[Vec<u8>]) -> Vec<u8> {
    if values.is_empty() {
        return Vec::new();
    }
    let bytes: usize = values.iter().map(|value| value.len() + 9).sum();
    let mut encoder = Encoder::new(Vec::with_capacity(bytes + 9));
    // Encoding into a vector can't fail.
    let _ = encoder.array(values.len() as u64);
    for value in values {
        let _ = encoder.bytes(value);
    }
    pack(encoder.writer())
}

/// The values of a list.
pub fn unpack_values(packed: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    if packed.is_empty() {
        return Ok(Vec::new());
    }
    let plain = unpack(packed)?;
    let mut decoder = Decoder::new(&plain);
    let values = decoder.array_iter::<&minicbor::bytes::ByteSlice>().map_err(|_| "it is no list")?;
    values.map(|value| value.map(|bytes| bytes.to_vec()).map_err(|_| "a value in it is cut off")).collect()
}

fn prefixed(codec: u8, bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(bytes.len() + 1);
    packed.push(codec);
    packed.extend_from_slice(bytes);
    packed
}

/// `None` when it can't be: then the plain bytes are stored.
fn compress(plain: &[u8]) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Compressor::new(LEVEL).ok();
        }
        kept.as_mut()?.compress(plain).ok()
    })
}

fn decompress(packed: &[u8]) -> Result<Vec<u8>, &'static str> {
    let Ok(Some(bytes)) = get_frame_content_size(packed) else {
        return Err("its length is not known");
    };
    // Room is made for what the head says: a damaged one must not ask for what its bytes can't come to.
    let blocks = (packed.len() as u64).div_ceil(BLOCK.0);
    if bytes > MOST_BYTES.min(blocks.saturating_mul(BLOCK.1)) {
        return Err("its length can't be");
    }
    DECOMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Decompressor::new().ok();
        }
        let decompressor = kept.as_mut().ok_or("there is no memory to unpack it")?;
        let capacity = usize::try_from(bytes).map_err(|_| "its length can't be")?;
        decompressor.decompress(packed, capacity).map_err(|_| "it can't be unpacked")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        let text = "the same words again and again ".repeat(100).into_bytes();
        let random: Vec<u8> = blake3::hash(b"x").as_bytes().iter().copied().cycle().take(511).collect();
        for plain in [Vec::new(), vec![0], vec![0; 511], vec![0; 70_000], text.clone(), random] {
            assert_eq!(unpack(&pack(&plain)).as_deref(), Ok(plain.as_slice()));
        }
        assert!(pack(&text).len() < text.len() / 2);
        for values in [vec![], vec![vec![]], vec![vec![], b"a\0b".to_vec(), text]] {
            assert_eq!(unpack_values(&pack_values(&values)), Ok(values));
        }
    }

    #[test]
    fn a_length_that_its_bytes_cannot_come_to_is_refused() {
        // A frame of one segment that says 512 MiB of itself, with nothing in it.
        let says = [&[ZSTD, 0x28, 0xb5, 0x2f, 0xfd, 0xa0][..], &(512_u32 << 20).to_le_bytes()].concat();
        assert_eq!(unpack(&says), Err("its length can't be"));
        let zeros = vec![0; 64 << 20];
        assert_eq!(unpack(&pack(&zeros)).as_ref(), Ok(&zeros), "what is packed as small as can be comes back");
    }

    #[test]
    fn damaged_bytes_are_named_and_never_panic() {
        let packed = pack_values(&[vec![7; 600], vec![8; 600]]);
        for cut in 1..packed.len() {
            assert!(unpack_values(&packed[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 0xff;
            // Any answer will do: a changed value has another digest.
            let _ = unpack_values(&damaged);
        }
    }
}
