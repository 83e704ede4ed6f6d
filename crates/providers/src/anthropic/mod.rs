//! Anthropic Messages (<https://docs.anthropic.com/en/api/messages>).

mod reply;
mod request;
mod stream;

pub use reply::whole;
pub use request::body;
pub use stream::Assembled;

/// The version of the protocol that is spoken.
pub const VERSION: &str = "2023-06-01";
