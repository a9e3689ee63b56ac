//! How an arena grows.

use crate::layout::{DEFAULT_ALIGN, MAX_SIZE, round_up};
use std::fmt;

/// Sizes in bytes; they are rounded up to multiples of 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The first chunk; each further one is twice as large.
    pub first_chunk: usize,
    /// The bound of that.
    pub max_chunk: usize,
    /// What a reset may keep.
    pub keep: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { first_chunk: 4 << 10, max_chunk: 16 << 20, keep: 64 << 20 }
    }
}

impl Options {
    /// The same, rounded and checked.
    pub(super) fn checked(self) -> Result<Self, BadOptions> {
        let rounded = |size| round_up(size, DEFAULT_ALIGN).filter(|&size| size > 0 && size <= MAX_SIZE / 2);
        let first_chunk = rounded(self.first_chunk).ok_or(BadOptions::Size(self.first_chunk))?;
        let max_chunk = rounded(self.max_chunk).ok_or(BadOptions::Size(self.max_chunk))?;
        if first_chunk > max_chunk {
            return Err(BadOptions::Order { first_chunk: self.first_chunk, max_chunk: self.max_chunk });
        }
        Ok(Self { first_chunk, max_chunk, ..self })
    }
}

/// Options that no arena can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadOptions {
    /// No chunk has this size.
    Size(usize),
    /// The first chunk passes the bound of all.
    Order {
        /// Bytes of the first chunk.
        first_chunk: usize,
        /// The bound in bytes.
        max_chunk: usize,
    },
}

impl fmt::Display for BadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => write!(f, "a chunk of {size} bytes can't be: 1 to {} can", MAX_SIZE / 2),
            Self::Order { first_chunk, max_chunk } => {
                write!(f, "first_chunk ({first_chunk} bytes) is larger than max_chunk ({max_chunk} bytes)")
            }
        }
    }
}

impl std::error::Error for BadOptions {}
