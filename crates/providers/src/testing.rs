//! What is read of an answer's bytes, without a connection: for inputs that no service sends.

use std::io::Cursor;

use futures_util::stream;
use lodestep_model::{ModelError, Reply};
use sse_stream::SseByteStream;

use crate::provider;
use crate::settings::{Dialect, Patience, Settings};

/// The bytes as a whole reply.
///
/// # Errors
///
/// Why they are none.
pub fn whole(dialect: Dialect, body: &[u8]) -> Result<Reply, ModelError> {
    provider::whole(&settings(dialect), body)
}

/// The bytes as a stream, which comes in pieces of so many bytes.
///
/// # Errors
///
/// Why they are no reply.
pub async fn streamed(dialect: Dialect, body: &[u8], piece: usize) -> Result<Reply, ModelError> {
    let pieces = body.chunks(piece.max(1)).map(|piece| Ok::<_, std::io::Error>(Cursor::new(piece.to_vec())));
    let events = SseByteStream::new(stream::iter(pieces.collect::<Vec<_>>()));
    let events =
        futures_util::StreamExt::map(events, |event| event.map_err(|error| ModelError::lost(error.to_string())));
    provider::assemble(&settings(dialect), events, &|_| {}).await
}

pub(crate) fn settings(dialect: Dialect) -> Settings {
    Settings {
        dialect,
        base_url: String::new(),
        model: "m".to_owned(),
        params: serde_json::Map::new(),
        output_limit_field: None,
        stream: true,
        patience: Patience::default(),
    }
}
