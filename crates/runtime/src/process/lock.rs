//! Waiting until no holder of another worker is left.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

/// Short against what a holder takes to end a tool, long against what a look costs.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits until no holder keeps its shared lock on `lock_file`, at most for `limit`.
///
/// `true`: no tool that was started with this lock file by a worker that is now dead is alive, and
/// none will start any more. `false`: one still is. A missing file counts as free, since a holder
/// makes it before it starts anything. Nothing is kept locked afterwards. A holder that was itself
/// killed from outside keeps no lock: then only the tool's main process is known to be gone.
///
/// # Errors
///
/// The file exists but cannot be opened or locked at all.
pub async fn wait_until_free(lock_file: &Path, limit: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + limit;
    let file = match File::options().read(true).write(true).open(lock_file) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    loop {
        match file.try_lock() {
            Ok(()) => return file.unlock().map(|()| true),
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Ok(false);
            }
            Err(std::fs::TryLockError::WouldBlock) => tokio::time::sleep(LOOK_EVERY).await,
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}
