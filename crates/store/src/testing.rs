//! How columns are packed, for tests that read damaged ones. Nothing else needs to know it.

pub use crate::sqlite::pack::{pack, pack_values, unpack, unpack_values};
