//! Being written.
pub struct SqliteStore;
