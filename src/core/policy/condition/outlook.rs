//! Properties of a condition that its text shows before any call is known.

/// The possible results of a condition, as far as its text shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// True or false, depending on the call.
    Open,
    /// The same result for every call.
    Constant,
    /// The value of an argument: a valid result only if that is `true` or `false`.
    Unknown,
}

/// A test of a part of an argument: `args.command.startsWith('git diff')`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextTest {
    pub function: TextFunction,
    /// The argument, as `args.command`. Items of a list have the name of the list.
    pub argument: String,
    /// The text or pattern it is compared with; empty where it is not a literal.
    pub text: String,
}

/// A function that tests a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFunction {
    StartsWith,
    EndsWith,
    Contains,
    /// `matches`, with a regular expression.
    Matches,
}

impl TextFunction {
    /// Its name in a condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StartsWith => "startsWith",
            Self::EndsWith => "endsWith",
            Self::Contains => "contains",
            Self::Matches => "matches",
        }
    }
}
