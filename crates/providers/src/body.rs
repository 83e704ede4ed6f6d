//! What is read of an answer, within time and size.

use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt, stream};
use lodestep_model::ModelError;
use reqwest::Response;
use sse_stream::{Sse, SseByteStream};
use tokio::time::timeout;

use crate::settings::Patience;

/// A longer reply is no reply: 32 MiB.
pub const REPLY_BYTES: usize = 32 << 20;

/// So much is read of the body of a refusal: 64 KiB.
const REFUSAL_BYTES: usize = 64 << 10;

/// Until when a call has to be over, and how long it may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    since: Instant,
    patience: Patience,
}

impl Clock {
    /// The call begins now.
    pub fn start(patience: Patience) -> Self {
        Self { since: Instant::now(), patience }
    }

    /// How long the next piece may take.
    pub fn next(&self) -> Duration {
        self.patience.whole.saturating_sub(self.since.elapsed()).min(self.patience.idle)
    }

    /// How long the whole may still take.
    pub fn left(&self) -> Duration {
        self.patience.whole.saturating_sub(self.since.elapsed())
    }

    /// Why it was given up.
    pub fn over(&self, waited_for: &str) -> ModelError {
        let said = if self.left().is_zero() {
            format!("no whole reply within {} s", self.patience.whole.as_secs_f32())
        } else {
            format!("no {waited_for} for {} s", self.patience.idle.as_secs_f32())
        };
        ModelError::lost(said)
    }
}

/// What went wrong while a body was read.
#[derive(Debug)]
enum Broken {
    Silent,
    TooLong,
    Connection(String),
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Silent => f.write_str("silent"),
            Self::TooLong => write!(f, "longer than {} MiB", REPLY_BYTES >> 20),
            Self::Connection(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Broken {}

/// The body's pieces, each within its time.
fn pieces(
    response: Response,
    clock: Clock,
    is_stream: bool,
) -> impl Stream<Item = Result<std::io::Cursor<Vec<u8>>, Broken>> {
    let begun = (response, 0_usize);
    stream::try_unfold(begun, move |(mut response, read)| async move {
        let wait = if is_stream { clock.next() } else { clock.left() };
        let piece = timeout(wait, response.chunk()).await.map_err(|_| Broken::Silent)?;
        let Some(piece) = piece.map_err(|error| Broken::Connection(cause(&error)))? else { return Ok(None) };
        let read = read + piece.len();
        if read > REPLY_BYTES {
            return Err(Broken::TooLong);
        }
        Ok(Some((std::io::Cursor::new(piece.to_vec()), (response, read))))
    })
}

/// The whole body of a reply.
///
/// # Errors
///
/// `Lost`: it broke off, took too long, or is too long.
pub async fn whole(response: Response, clock: Clock) -> Result<Vec<u8>, ModelError> {
    let mut pieces = std::pin::pin!(pieces(response, clock, false));
    let mut body = Vec::new();
    while let Some(piece) = pieces.next().await {
        body.extend(piece.map_err(|broken| lost(&broken, clock))?.into_inner());
    }
    Ok(body)
}

/// The beginning of the body of a refusal. One that breaks off says what it said until then.
pub async fn beginning(mut response: Response, clock: Clock) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < REFUSAL_BYTES {
        match timeout(clock.next(), response.chunk()).await {
            Ok(Ok(Some(piece))) => body.extend_from_slice(&piece),
            _ => break,
        }
    }
    body.truncate(REFUSAL_BYTES);
    body
}

/// The events of a stream (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).
pub fn events(response: Response, clock: Clock) -> impl Stream<Item = Result<Sse, ModelError>> {
    SseByteStream::new(Box::pin(pieces(response, clock, true))).map(move |event| {
        event.map_err(|error| match error {
            sse_stream::Error::Body(broken) => match broken.downcast_ref() {
                Some(broken) => lost(broken, clock),
                None => ModelError::lost(broken.to_string()),
            },
            other => ModelError::lost(format!("the stream can't be read: {other}")),
        })
    })
}

fn lost(broken: &Broken, clock: Clock) -> ModelError {
    match broken {
        Broken::Silent => clock.over("piece of the reply"),
        Broken::TooLong => ModelError::lost(format!("the reply is {broken}")),
        Broken::Connection(why) => ModelError::lost(format!("the connection broke in the midst of the reply: {why}")),
    }
}

/// What caused an error in the end. What stands around it names layers, and not what is wrong.
pub fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
