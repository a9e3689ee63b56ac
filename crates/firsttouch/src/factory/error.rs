//! The errors of factories.

use crate::description::quoted;
use crate::error::AllocError;
use crate::expression::ParseError;
use std::fmt;

/// The most characters of an expression that a message quotes.
const SHOWN: usize = 200;

/// Why a call creates no allocator. Fronts convert each kind to an error of their language.
#[derive(Debug)]
pub enum Error {
    /// There is no factory of this name.
    NoFactory {
        /// The name, and the nearest known one.
        what: String,
        /// The known names.
        known: String,
    },
    /// The arguments do not match the parameters.
    Call(String),
    /// An argument is of the wrong type.
    Type(String),
    /// An argument or the expression itself has the right type but an invalid value.
    Value(String),
    /// This build lacks the allocator.
    Unsupported(String),
    /// There is no memory for the allocator itself.
    Memory(AllocError),
    /// A front's own error, for arguments that are its objects.
    Front(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// The same, with the expression that contains the call.
    #[must_use]
    pub fn within(self, text: &str) -> Self {
        let text = quoted(text, SHOWN);
        match self {
            Self::NoFactory { what, known } => Self::Value(format!("{what} in {text}: {known}")),
            Self::Call(message) => Self::Type(format!("{message} (in {text})")),
            other => other,
        }
    }
}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Self {
        Self::Value(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFactory { what, known } => write!(f, "{what}: {known}"),
            Self::Call(message) | Self::Type(message) | Self::Value(message) | Self::Unsupported(message) => {
                f.write_str(message)
            }
            Self::Memory(error) => error.fmt(f),
            Self::Front(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
