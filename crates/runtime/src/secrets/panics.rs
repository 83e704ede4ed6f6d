//! Panic messages: the language prints one to stderr before anything can look at it, so the hook that prints it is replaced.

use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::Secrets;

/// What the runs under way look for. Values live as long as the runs that hold them.
static KNOWN: Mutex<Vec<Weak<Secrets>>> = Mutex::new(Vec::new());

/// From now on this process prints no panic's message with a value of a secret that a run under way refers to: each of its
/// known spellings is replaced by `[secret NAME]`, and where it panicked is printed with that. Any other panic goes to the
/// hook that was there before, as it is.
///
/// For the start of `main`, after hooks of the program's own: a later one replaces it.
pub fn scrub_panics() {
    let before = take_hook();
    set_hook(Box::new(move |info| match info.payload_as_str().and_then(cleaned) {
        Some(message) => tell(info, &message),
        None => before(info),
    }));
}

/// Looks for these, too, as long as they live.
pub(super) fn know(secrets: &Arc<Secrets>) {
    if secrets.values.is_empty() {
        return;
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() == known.capacity() {
        known.retain(|secrets| secrets.strong_count() > 0);
    }
    known.push(Arc::downgrade(secrets));
}

/// A message without the values; `None` when it holds none.
fn cleaned(message: &str) -> Option<String> {
    // Let go of before anything is done with them: what panics here would wait for itself.
    let known: Vec<_> = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
    let mut text = message.to_owned();
    for secrets in known {
        secrets.scrubber.scrub_text(&mut text);
    }
    (text != message).then_some(text)
}

fn tell(info: &PanicHookInfo<'_>, message: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("<unnamed>");
    match info.location() {
        Some(place) => crate::note!("\nthread '{name}' panicked at {place}:\n{message}"),
        None => crate::note!("\nthread '{name}' panicked:\n{message}"),
    }
}
