//! The allocator of the driver and of this crate's tests: the system's, with a peak that can be set back.

use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Runs `work`; what it gives, and by how many bytes the heap of the process rose above where it was.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let done = work();
    (done, HEAP.peak_usage().saturating_sub(before))
}
