//! Being written.
pub struct MemoryStore;
