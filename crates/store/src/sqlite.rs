//! Being written.
/// Being written.
pub struct SqliteStore;
