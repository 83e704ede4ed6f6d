//! The bytes of an answer, piece by piece, and how they stop.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

use crate::plan::{At, Fault};
use crate::wire::Fate;

/// A part of an answer, and where in the answer it is.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub place: Place,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Start,
    Text,
    Arguments,
    Between,
    /// What marks the end of a stream, and all behind it.
    End,
}

impl Piece {
    pub fn new(place: Place, text: &str) -> Self {
        Self { place, text: text.into() }
    }
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Whole,
    Stalled,
    Closed,
    Reset,
}

impl Ending {
    /// How a fault ends a body.
    pub fn of(fault: &Fault) -> Self {
        match fault {
            Fault::Stall(_) => Self::Stalled,
            Fault::Close(_) => Self::Closed,
            Fault::Reset(_) => Self::Reset,
            _ => Self::Whole,
        }
    }
}

/// The pieces that still go out when something goes wrong at this place: at least one, and never all.
pub(crate) fn until(mut pieces: Vec<Piece>, at: At) -> Vec<Piece> {
    if let [whole] = &mut pieces[..] {
        whole.text.truncate(whole.text.floor_char_boundary(whole.text.len() / 2));
        return pieces;
    }
    let middle_of = |place| {
        let places: Vec<usize> = (0..pieces.len()).filter(|at| pieces[*at].place == place).collect();
        places.get(places.len() / 2).copied()
    };
    let end = match at {
        At::Headers | At::Start => Some(1),
        At::Text => middle_of(Place::Text),
        At::Arguments => middle_of(Place::Arguments),
        At::End => pieces.iter().position(|piece| piece.place == Place::End),
    };
    pieces.truncate(end.unwrap_or(pieces.len() / 2).max(1));
    pieces
}

/// Whom a body tells that its last byte is gone.
pub(crate) type Delivered = Box<dyn FnOnce() + Send + Sync>;

/// An answer's body.
///
/// Each piece of a stream is a write of its own, and is cut once more at any byte: within a line, within a character. What
/// ends in a reset is one write.
pub(crate) struct Written {
    left: VecDeque<Bytes>,
    ending: Ending,
    length: Option<u64>,
    gave_one: bool,
    delivered: Option<Delivered>,
    fate: Arc<Fate>,
}

impl Written {
    /// A body that is sent in one go, with its length before it.
    pub fn whole(text: String, fate: Arc<Fate>, delivered: Delivered) -> Self {
        let length = Some(text.len() as u64);
        let left = VecDeque::from([Bytes::from(text)]);
        Self { left, ending: Ending::Whole, length, gave_one: false, delivered: Some(delivered), fate }
    }

    /// A body in pieces.
    pub fn pieces(pieces: Vec<Piece>, ending: Ending, fate: Arc<Fate>, delivered: Delivered) -> Self {
        let texts = pieces.into_iter().map(|piece| piece.text);
        let left = match ending {
            // A reset throws away what the kernel holds back, and it holds back the last of many small writes.
            Ending::Reset => VecDeque::from([Bytes::from(texts.collect::<String>())]),
            _ => texts.flat_map(|text| halves(text.into())).collect(),
        };
        Self { left, ending, length: None, gave_one: false, delivered: Some(delivered), fate }
    }

    fn end(&mut self) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.ending {
            Ending::Whole => Poll::Ready(None),
            // Nobody wakes it: the connection waits until one side is gone.
            Ending::Stalled => Poll::Pending,
            Ending::Closed => Poll::Ready(Some(Err(Broken))),
            Ending::Reset => {
                self.fate.reset();
                Poll::Ready(Some(Err(Broken)))
            }
        }
    }
}

fn halves(mut bytes: Bytes) -> [Bytes; 2] {
    let second = bytes.split_off(bytes.len() / 2);
    [bytes, second]
}

/// An answer that is broken off on purpose.
#[derive(Debug)]
pub(crate) struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broken off as planned")
    }
}

impl std::error::Error for Broken {}

impl Body for Written {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if std::mem::take(&mut self.gave_one) {
            // hyper writes what it has when a body has no more for now.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some(bytes) = self.left.pop_front() else { return self.end() };
        self.gave_one = true;
        if self.left.is_empty()
            && self.ending == Ending::Whole
            && let Some(delivered) = self.delivered.take()
        {
            delivered();
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
