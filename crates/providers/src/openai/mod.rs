//! OpenAI chat completions (<https://platform.openai.com/docs/api-reference/chat>), as the compatible servers speak them, too.

mod reply;
mod request;
mod stream;

pub use reply::whole;
pub use request::body;
pub use stream::Assembled;
