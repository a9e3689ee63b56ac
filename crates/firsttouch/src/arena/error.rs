//! Why nothing was allocated.

use crate::failure::AllocError;
use crate::layout::LayoutError;
use std::fmt;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No memory has that layout.
    Layout(LayoutError),
    /// There is no memory.
    Memory(AllocError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match self {
            Self::Layout(error) => error,
            Self::Memory(error) => error,
        })
    }
}

impl From<LayoutError> for Error {
    fn from(error: LayoutError) -> Self {
        Self::Layout(error)
    }
}

impl From<AllocError> for Error {
    fn from(error: AllocError) -> Self {
        Self::Memory(error)
    }
}
