//! Faults: how a server misbehaves on command.
//!
//! Each takes one request of those that come next and are well formed: a refusal takes none, so that a plan does not
//! shift when a client makes a mistake.

/// What goes wrong with one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the request is answered. It keeps a place in a plan.
    Nothing,
    /// No more bytes come; the connection stays until the client or the server is gone.
    Stall(At),
    /// The body ends as if it were whole, without what marks the end of a stream; a whole body ends in its middle.
    Cut(At),
    /// The connection ends before the body does.
    Close(At),
    /// The connection is reset (RST).
    Reset(At),
    /// An `error` event of an overloaded service in the middle of a stream, which ends there. A whole body is cut.
    ErrorEvent(At),
    /// 429, with these headers: `retry-after`, `retry-after-ms`, `anthropic-ratelimit-requests-reset`, what a test wants.
    RateLimited(Vec<(String, String)>),
    /// 529, as the Anthropic shape calls it; the OpenAI shape words it as its own.
    Overloaded,
    /// 500.
    InternalError,
    /// 502 with a page of HTML, as a proxy gives it.
    BadGateway,
    /// 503 in plain text, as a proxy gives it.
    Unavailable,
    /// 401, with the key that was sent in its message.
    Unauthorized,
    /// 403, with the key that was sent in its message.
    Forbidden,
    /// 404: the model is not there.
    ModelNotFound,
    /// The account is out of money: 402 `billing_error`; in the OpenAI shape 429 `insufficient_quota`.
    OutOfCredit,
    /// 200 and a body that is not JSON; in a stream an event whose data is not.
    NotJson,
    /// 200 and JSON of a shape that nobody expects.
    UnexpectedShape,
    /// A good answer that says nothing of what it used.
    UsageOmitted,
    /// The calls have the ids that those of the reply before had.
    CallIdsRepeated,
    /// Two calls have one id. A reply with one call has it twice.
    CallIdsDoubled,
    /// A reply without any content.
    EmptyReply,
    /// A reply with one text, which is empty.
    EmptyText,
    /// A text with half of a surrogate pair in it, spelled `\ud99c`.
    LoneSurrogate,
    /// The answer names another model.
    OtherModel(String),
    /// The output limit cuts the reply in the middle of its last call's arguments; without a call, of its text.
    OutputLimit,
    /// The output tokens are as many as were allowed, and yet it stops for its calls.
    OutputAtLimit,
    /// The model refuses: `stop_reason` `refusal`; in the OpenAI shape the message's `refusal`.
    Refusal,
    /// The provider takes the reply back: `finish_reason` `content_filter`; the Anthropic shape refuses.
    ContentFilter,
    /// Events, blocks and fields that nobody knows yet, beside those that are known.
    UnknownEvents,
    /// The arguments of each call are an empty string. A whole message of the Anthropic shape has no arguments as text: an
    /// empty object.
    EmptyArguments,
    /// The calls of a stream come without `index`, and their later deltas without anything that tells whose they are but
    /// their order. OpenAI shape; the other needs the index of its blocks and answers well.
    DeltasWithoutIndex,
}

/// Where in an answer a fault begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Before its first byte. The mind is not asked.
    Headers,
    /// After the head of the answer and the first event of a stream.
    Start,
    /// Within the text; where there is none, in the middle of the answer.
    Text,
    /// Within a call's arguments; where there are none, in the middle of the answer.
    Arguments,
    /// Before what marks the end of the stream.
    End,
}

impl Fault {
    /// True for a fault that is the whole answer: nothing is asked and nothing used.
    pub(crate) fn is_instead_of_an_answer(&self) -> bool {
        matches!(
            self,
            Self::Stall(At::Headers)
                | Self::Cut(At::Headers)
                | Self::Close(At::Headers)
                | Self::Reset(At::Headers)
                | Self::ErrorEvent(At::Headers)
                | Self::RateLimited(_)
                | Self::Overloaded
                | Self::InternalError
                | Self::BadGateway
                | Self::Unavailable
                | Self::Unauthorized
                | Self::Forbidden
                | Self::ModelNotFound
                | Self::OutOfCredit
                | Self::NotJson
                | Self::UnexpectedShape
        )
    }
}
