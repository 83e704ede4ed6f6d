//! What the reader asks of a file, written down for the tests that compare it with the JSON Schema.

use std::cell::RefCell;

/// What is asked of a value, by its name as people write it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Question {
    /// A file begins.
    Begin,
    /// Is the key there?
    Key,
    /// Is it a text?
    Text,
    /// Is it one of these words?
    Words(Vec<&'static str>),
    /// Is it a whole number within these bounds?
    Whole(u64, u64),
    /// Is it a length of time within these bounds, in milliseconds?
    Duration(u64, u64),
    /// Is it true or false?
    Truth,
    /// Is it a list?
    List,
    /// Is it a table?
    Table,
    /// Has it no other keys than those that were asked for?
    Closed,
}

thread_local! {
    static ASKED: RefCell<Option<Vec<(String, Question)>>> = const { RefCell::new(None) };
}

/// Writes a question down, if somebody listens on this thread.
pub(super) fn note(name: &str, question: Question) {
    ASKED.with_borrow_mut(|asked| {
        if let Some(asked) = asked {
            asked.push((name.to_owned(), question));
        }
    });
}

/// Every question that is asked while something is read on this thread.
pub(super) fn during<T>(read: impl FnOnce() -> T) -> (T, Vec<(String, Question)>) {
    ASKED.with_borrow_mut(|asked| *asked = Some(Vec::new()));
    let result = read();
    (result, ASKED.with_borrow_mut(Option::take).unwrap_or_default())
}
