//! The errors of arenas.

use crate::error::AllocError;
use crate::layout::{LayoutError, MAX_SIZE};
use std::fmt;

/// The error returned when an arena cannot allocate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArenaError {
    /// The requested layout is invalid.
    Layout(LayoutError),
    /// There is no memory.
    Memory(AllocError),
}

impl fmt::Display for ArenaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ArenaError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match self {
            Self::Layout(error) => error,
            Self::Memory(error) => error,
        })
    }
}

impl From<LayoutError> for ArenaError {
    fn from(error: LayoutError) -> Self {
        Self::Layout(error)
    }
}

impl From<AllocError> for ArenaError {
    fn from(error: AllocError) -> Self {
        Self::Memory(error)
    }
}

/// The error returned for invalid [`ArenaOptions`](super::ArenaOptions).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArenaOptionsError {
    /// A chunk size is out of range.
    ChunkSize(usize),
    /// The first chunk is larger than the largest.
    Order {
        /// Size of the first chunk in bytes.
        first_chunk: usize,
        /// Size of the largest chunk in bytes.
        max_chunk: usize,
    },
}

impl fmt::Display for ArenaOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChunkSize(size) => write!(f, "invalid chunk size {size}: it must be 1 to {} bytes", MAX_SIZE / 2),
            Self::Order { first_chunk, max_chunk } => {
                write!(f, "first_chunk ({first_chunk} bytes) is larger than max_chunk ({max_chunk} bytes)")
            }
        }
    }
}

impl std::error::Error for ArenaOptionsError {}

/// The error returned when an arena cannot be rewound to a [`Mark`](super::Mark).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkError {
    /// The mark belongs to another arena.
    OtherArena,
    /// The arena was reset, or rewound to an earlier mark, after this mark was made.
    WrongOrder,
}

impl fmt::Display for MarkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherArena => "the mark belongs to another arena: rewind the arena that made it",
            Self::WrongOrder => {
                "the arena was reset, or rewound to an earlier mark, since this mark was made: rewind to the latest mark \
                 first"
            }
        })
    }
}

impl std::error::Error for MarkError {}

/// The error returned when an address does not hold a valid [`ScratchTable`](super::ScratchTable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScratchTableError {
    /// The address is null or not aligned.
    Address(usize),
    /// The named function is null.
    Function(&'static str),
}

impl fmt::Display for ScratchTableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "no scratch table can stand at address {address:#x}"),
            Self::Function(name) => write!(f, "the scratch table's function {name} is null"),
        }
    }
}

impl std::error::Error for ScratchTableError {}
