//! The arguments of a factory.

use super::{Error, allocator_from, allocator_from_expression};
use crate::allocator::Allocator;
use crate::description::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// The most characters of an argument that a message quotes.
const SHOWN: usize = 40;

/// An argument, as an object of the front.
pub trait Argument {
    /// The value that it represents.
    ///
    /// # Errors
    /// The front's own, if it cannot be read.
    fn given(&self) -> Result<Given, Error>;

    /// The allocator that it is, describes or implements, as the upstream of what `caller` creates.
    ///
    /// # Errors
    /// If it is not an allocator.
    fn upstream(&self, caller: &str) -> Result<Arc<dyn Allocator>, Error>;
}

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// A value that an expression can contain, or an existing allocator.
    Value(Value),
    /// An integer of more than 128 bits, as digits.
    Large(String),
    /// Any other value.
    Other {
        /// How the front displays it.
        shown: String,
        /// Its type, as the front names it.
        kind: String,
    },
}

impl Given {
    /// Whether it is `None`: the default of a parameter without a default value.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::Value(Value::None))
    }

    /// The argument for a message.
    pub fn shown(&self) -> Cow<'_, str> {
        let shown: Cow<'_, str> = match self {
            Self::Value(value) => value.to_string().into(),
            Self::Large(digits) => return digits.into(),
            Self::Other { shown, .. } => shown.into(),
        };
        match shown.char_indices().nth(SHOWN) {
            Some((at, _)) => shown[..at].to_owned().into(),
            None => shown,
        }
    }

    /// Its type for a message, with an article.
    pub fn kind(&self) -> String {
        let kind = match self {
            Self::Value(Value::None) => "NoneType",
            Self::Value(Value::Flag(_)) => "bool",
            Self::Value(Value::Integer(_) | Value::Address(_)) | Self::Large(_) => "int",
            Self::Value(Value::Float(_)) => "float",
            Self::Value(Value::Text(_)) => "str",
            Self::Value(Value::Several(_)) => "tuple",
            Self::Value(Value::Allocator(_)) => "Allocator",
            Self::Other { kind, .. } => kind,
        };
        let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
        format!("{article} {kind}")
    }
}

impl Argument for Value {
    fn given(&self) -> Result<Given, Error> {
        Ok(Given::Value(self.clone()))
    }

    fn upstream(&self, caller: &str) -> Result<Arc<dyn Allocator>, Error> {
        match self {
            Self::Allocator(description) => allocator_from(description),
            Self::Text(text) => allocator_from_expression(text),
            _ => {
                let given = self.given()?;
                let (kind, shown) = (given.kind(), given.shown());
                Err(Error::Type(format!("{caller} takes an allocator, like pool(), not {kind}: {shown}")))
            }
        }
    }
}
