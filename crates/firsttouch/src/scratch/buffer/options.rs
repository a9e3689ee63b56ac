//! The options of a buffer, and which of them contradict each other.

use super::super::space::GRANULE;
use crate::layout::round_up;
use crate::size::Bytes;
use std::fmt;

/// The largest chunk size allowed.
const MOST: usize = 1 << 37;
/// Chunks double on demand, up to this many times the requested size.
const GROWTH: usize = 16;
/// Blocks of more than this fraction of a chunk have memory of their own.
const LARGE: usize = 8;

/// The options of a growing buffer.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The size of a chunk in bytes. On demand chunks double, up to sixteen times this size.
    pub chunk_size: usize,
    /// The most bytes that may be held; `None` for no limit.
    pub limit: Option<usize>,
    /// Whether freed memory is filled with a pattern and checked.
    pub debug: bool,
    /// Called for every block; its result is recorded.
    pub site: Option<fn() -> u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { chunk_size: 1 << 20, limit: None, debug: false, site: None }
    }
}

/// The error returned for invalid [`Options`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadOptions {
    /// The chunk size is zero, or larger than the memory of any machine.
    ChunkSize(usize),
    /// The limit is smaller than a chunk.
    Limit {
        /// The limit in bytes.
        limit: usize,
        /// The chunk size in bytes.
        chunk_size: usize,
    },
}

impl fmt::Display for BadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChunkSize(given) => {
                write!(f, "invalid chunk size {given}: it must be from 1 to {MOST} bytes (128 GiB)")
            }
            Self::Limit { limit, chunk_size } => write!(
                f,
                "a limit of {} is less than one chunk of {}: raise the limit or choose smaller chunks",
                Bytes(*limit),
                Bytes(*chunk_size)
            ),
        }
    }
}

impl std::error::Error for BadOptions {}

/// Sizes derived from the options.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// The size of the first chunk.
    pub chunk: usize,
    /// The size of the largest chunk.
    pub most: usize,
    /// Blocks with a larger size or alignment have memory of their own.
    pub bumped: usize,
    /// The most bytes that may be held.
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
