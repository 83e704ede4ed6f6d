//! Packed columns of the store: a codec's byte, then bytes.

use lodestep_store::testing::{pack, pack_values, unpack, unpack_values};

use super::answer_of;
use super::run::items;

/// A column as it is stored, read as one value and as a list; and the input itself, packed.
pub(super) fn packed(input: &[u8]) -> u64 {
    assert_eq!(unpack(&pack(input)).as_deref(), Ok(input), "what is packed comes back");
    let (plain, values) = (unpack(input), unpack_values(input));
    if let Ok(plain) = &plain {
        assert_eq!(unpack(&pack(plain)).as_ref(), Ok(plain), "what was unpacked is packed again");
    }
    answer_of(&plain, |_| "plain".to_owned())
        ^ answer_of(&values, |values| format!("list {}", values.is_empty())).rotate_left(1)
}

/// The input as the plain bytes of a list of values; and its items as values, packed.
pub(super) fn values(input: &[u8]) -> u64 {
    let values: Vec<Vec<u8>> = items(input).into_iter().map(<[u8]>::to_vec).collect();
    assert_eq!(unpack_values(&pack_values(&values)).as_ref(), Ok(&values), "what is packed comes back");
    let read = unpack_values(&pack(input));
    if let Ok(read) = &read {
        assert_eq!(unpack_values(&pack_values(read)).as_ref(), Ok(read), "what was unpacked is packed again");
    }
    answer_of(&read, |read| if read.is_empty() { "none" } else { "some" }.to_owned())
}
