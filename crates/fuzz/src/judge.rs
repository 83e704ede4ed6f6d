//! One input under the measures. A stack that overflows or memory that is refused ends the process: the driver sees that.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once, PoisonError};

use rustix::time::{ClockId, clock_gettime};

use crate::heap;
use crate::targets::Target;

/// The most processor time of one input, in milliseconds. The build is not a release: the product is quicker.
pub const MOST_MS: u64 = 1_000;

/// Memory that any input may take, in bytes; more is allowed by the input's length.
pub const MOST_BYTES: usize = 64 << 20;

/// What is wrong with how an input was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It panicked, with this place and message.
    Panic(String),
    /// It took so much processor time, in milliseconds.
    Slow(u64),
    /// The heap rose by so many bytes.
    Memory(usize),
    /// The process ended: a stack that overflowed, memory that was refused, or a call that came to no end.
    Ended(String),
}

impl Fault {
    /// Faults alike have one name: inputs that show the same are kept once.
    pub fn name(&self) -> String {
        match self {
            Self::Panic(text) => format!("panic {}", text.lines().next().unwrap_or_default()),
            Self::Slow(_) => "slow".to_owned(),
            Self::Memory(_) => "memory".to_owned(),
            Self::Ended(_) => "ended".to_owned(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic(text) => write!(f, "it panicked: {text}"),
            Self::Slow(ms) => write!(f, "it took {ms} ms of processor time"),
            Self::Memory(bytes) => write!(f, "it took {bytes} bytes of memory"),
            Self::Ended(how) => write!(f, "it ended the process: {how}"),
        }
    }
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Gives an input to a target. What it answered, as a number, or what is wrong.
///
/// # Errors
///
/// The fault.
pub fn judge(target: &Target, input: &[u8]) -> Result<u64, Fault> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    static QUIET: Once = Once::new();
    // The heap's peak is the process's.
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    QUIET.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            let text = info.payload_as_str().unwrap_or_default();
            PANIC.with_borrow_mut(|said| *said = format!("{place}\n{text}"));
            if std::thread::current().name().is_none_or(|name| name != HUNTER) {
                loud(info);
            }
        }));
    });
    let began = processor_ms();
    let (answer, peak) = heap::peak_of(|| catch_unwind(AssertUnwindSafe(|| (target.run)(input))));
    let took = processor_ms() - began;
    let answer = answer.map_err(|_| Fault::Panic(PANIC.with_borrow(Clone::clone)))?;
    if took > target.most_ms {
        return Err(Fault::Slow(took));
    }
    if peak > MOST_BYTES + input.len().saturating_mul(target.times) {
        return Err(Fault::Memory(peak));
    }
    Ok(answer)
}

/// The thread in which the driver calls targets. Its panics are reported, and not printed.
pub const HUNTER: &str = "hunter";

/// Processor time of this thread: a busy machine makes no input slow.
pub(crate) fn processor_ms() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
}
