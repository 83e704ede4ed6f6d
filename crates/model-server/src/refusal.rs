//! Why a request is refused: a kind to count by, and what the service that is played says of it.

/// What is wrong with a request. The kinds are those of both shapes, so that a test can ask for one of them whatever the
/// service's words are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// There is nothing at this path, or not for this method.
    Path,
    /// No key, or not the right one.
    Key,
    /// No `anthropic-version`, or one that there never was.
    Version,
    /// The content is not called JSON.
    ContentType,
    /// More bytes than a service reads.
    TooLarge,
    /// No JSON: a syntax error, invalid UTF-8, or half of a surrogate pair.
    Json,
    /// A field that the reference does not have.
    UnknownField,
    /// A field that has to be there.
    MissingField,
    /// A value of the wrong type, or outside of the values that the field has.
    Value,
    /// A model that the service does not have.
    UnknownModel,
    /// A limit for the output that is none, or two of them.
    OutputLimit,
    /// A temperature outside of its range.
    Temperature,
    /// What thinking does not go together with.
    Thinking,
    /// No messages.
    NoMessages,
    /// The first message is not the user's.
    FirstMessage,
    /// A role that there is not.
    Role,
    /// A message without content.
    EmptyContent,
    /// A text that is empty or white.
    EmptyText,
    /// The text that the model is to go on with ends in white space.
    TrailingSpace,
    /// A block that does not belong into a message of its role, or that nobody knows.
    Block,
    /// A call without a result right after it.
    ResultMissing,
    /// A result without a call right before it.
    ResultOrphan,
    /// Two results for one call.
    ResultTwice,
    /// An id of a call that is too long or has characters that it must not have.
    CallId,
    /// An id that two calls have.
    CallIdTwice,
    /// Arguments that are not of the shape's type.
    Arguments,
    /// A tool's name that is too long or has characters that it must not have.
    ToolName,
    /// A name that two tools have.
    ToolNameTwice,
    /// More tools than a request may have, or an empty list of them.
    ToolCount,
    /// A tool's schema that is not one of an object.
    Schema,
    /// More cache marks than a request may have.
    CacheMarks,
    /// A cache mark where none may be.
    CacheMarkPlace,
    /// The last calls come back without the thinking that was before them.
    ThinkingMissing,
    /// A signed block that is not as it was given.
    ThinkingAltered,
    /// More tokens than the window has.
    TooLong,
}

impl Kind {
    /// True where the request is wrong in itself: no other key, model or window would help.
    pub fn is_malformed(self) -> bool {
        !matches!(self, Self::Key | Self::UnknownModel | Self::TooLong)
    }
}

/// A refusal in the words of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub kind: Kind,
    pub status: u16,
    /// The error's `type`.
    pub error: &'static str,
    /// The error's `code`, in the shape that has one.
    pub code: Option<&'static str>,
    /// The field that it is about, in the shape that names it apart.
    pub param: Option<String>,
    pub message: String,
}

pub(crate) type Checked = Result<(), Refusal>;
