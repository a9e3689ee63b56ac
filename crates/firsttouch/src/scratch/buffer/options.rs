//! How a buffer is made, and which wishes contradict each other.

use super::super::space::GRANULE;
use crate::layout::round_up;
use std::fmt;

/// The largest chunk that can be asked for.
const MOST: usize = 1 << 37;
/// Chunks double under demand, up to this many times the size asked for.
const GROWTH: usize = 16;
/// Blocks of more than this part of a chunk have memory of their own.
const LARGE: usize = 8;

/// How a buffer that grows takes memory.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Bytes of a chunk. Under demand they double, up to sixteen times that.
    pub chunk_size: usize,
    /// Bytes that may be held; as many as there are where there is none.
    pub limit: Option<usize>,
    /// Whether freed memory is filled with a pattern, and checked.
    pub debug: bool,
    /// Is called for every block, and its answer noted.
    pub site: Option<fn() -> u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { chunk_size: 1 << 20, limit: None, debug: false, site: None }
    }
}

/// Why there is no such buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadOptions {
    /// A chunk of that many bytes is nothing, or more than any machine has.
    ChunkSize(usize),
    /// The limit does not allow a single chunk.
    Limit {
        /// The limit in bytes.
        limit: usize,
        /// Bytes of a chunk.
        chunk_size: usize,
    },
}

impl fmt::Display for BadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChunkSize(given) => write!(f, "a chunk has from 1 to {MOST} bytes (128 GiB), not {given}"),
            Self::Limit { limit, chunk_size } => write!(
                f,
                "a limit of {limit} bytes is less than one chunk of {chunk_size}: raise the limit or choose smaller \
                 chunks"
            ),
        }
    }
}

impl std::error::Error for BadOptions {}

/// Sizes that follow from the options.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// Bytes of the first chunk.
    pub chunk: usize,
    /// Bytes of the largest chunk.
    pub most: usize,
    /// Blocks or alignments above this have memory of their own.
    pub bumped: usize,
    /// Bytes that may be held.
    pub limit: usize,
}

impl Options {
    pub(super) fn sizes(&self) -> Result<Sizes, BadOptions> {
        let given = self.chunk_size;
        let chunk = round_up(given, GRANULE).filter(|_| (1..=MOST).contains(&given));
        let chunk = chunk.ok_or(BadOptions::ChunkSize(given))?;
        let limit = self.limit.unwrap_or(usize::MAX);
        if limit < chunk {
            return Err(BadOptions::Limit { limit, chunk_size: chunk });
        }
        Ok(Sizes { chunk, most: chunk.saturating_mul(GROWTH).min(MOST), bumped: chunk / LARGE, limit })
    }
}
