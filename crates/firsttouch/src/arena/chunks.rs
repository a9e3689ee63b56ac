//! The memory of a growing arena: chunks, and blocks of their own for large requests.

use super::error::ArenaOptionsError;
use super::inline_vec::InlineVec;
use super::upstream::Upstream;
use crate::allocator::{AllocError, Block};
use crate::failure;
use crate::layout::{DEFAULT_ALIGN, MAX_SIZE, round_down, round_up};
use std::ptr::NonNull;

/// How an arena grows. Sizes are in bytes and are rounded up to multiples of 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArenaOptions {
    /// Size of the first chunk; each further chunk is twice as large.
    pub first_chunk: usize,
    /// Size of the largest chunk.
    pub max_chunk: usize,
    /// How much memory [`reset`](super::Arena::reset) may keep.
    pub keep: usize,
}

impl Default for ArenaOptions {
    fn default() -> Self {
        Self { first_chunk: 4 << 10, max_chunk: 16 << 20, keep: 64 << 20 }
    }
}

impl ArenaOptions {
    /// Returns the options with rounded sizes.
    pub(super) fn validated(self) -> Result<Self, ArenaOptionsError> {
        let rounded = |size| round_up(size, DEFAULT_ALIGN).filter(|&size| size > 0 && size <= MAX_SIZE / 2);
        let first_chunk = rounded(self.first_chunk).ok_or(ArenaOptionsError::ChunkSize(self.first_chunk))?;
        let max_chunk = rounded(self.max_chunk).ok_or(ArenaOptionsError::ChunkSize(self.max_chunk))?;
        if first_chunk > max_chunk {
            return Err(ArenaOptionsError::Order { first_chunk: self.first_chunk, max_chunk: self.max_chunk });
        }
        Ok(Self { first_chunk, max_chunk, ..self })
    }
}

/// Chunks begin and end at multiples of this, the alignment that `malloc` guarantees.
pub(super) const CHUNK_ALIGN: usize = 16;

/// A piece of memory, used from its end downwards.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub(super) start: NonNull<u8>,
    pub(super) size: usize,
    /// Bytes that were in use when the next chunk became current.
    pub(super) used: usize,
}

impl Chunk {
    pub(super) fn end(&self) -> NonNull<u8> {
        // SAFETY: one past the end of the chunk's block.
        unsafe { self.start.add(self.size) }
    }
}

/// The chunks in the order of their use.
pub(super) struct Chunks {
    pub(super) list: InlineVec<Chunk, 8>,
    /// Size of the next new chunk.
    pub(super) next_size: usize,
}

impl Chunks {
    pub(super) const fn new(next_size: usize) -> Self {
        Self { list: InlineVec::new(), next_size }
    }

    /// Moves the first chunk of at least `need` bytes, from `index` on, to `index`; returns whether there is one.
    #[inline]
    pub(super) fn find(&mut self, index: usize, need: usize) -> bool {
        let found = (index..self.list.len()).find(|&at| self.list[at].size >= need);
        if let Some(at) = found {
            self.list.swap(index, at);
        }
        found.is_some()
    }

    /// Allocates a chunk of at least `need` bytes, a multiple of [`CHUNK_ALIGN`], and inserts it at `index`. Halves the
    /// intended size as long as the upstream refuses.
    #[inline]
    pub(super) fn allocate(
        &mut self,
        index: usize,
        need: usize,
        upstream: &Upstream,
        max_chunk: usize,
    ) -> Result<(), AllocError> {
        self.list.reserve(need)?;
        let mut size = self.next_size.max(need);
        let start = loop {
            let before = failure::now();
            match upstream.allocate(size, CHUNK_ALIGN, false) {
                Ok(block) => break block.address,
                Err(error) if size == need => return Err(AllocError { asked: need, ..error }),
                Err(_) => {
                    failure::retract(before);
                    size = round_down(size / 2, DEFAULT_ALIGN).max(need);
                }
            }
        };
        self.next_size = size.saturating_mul(2).min(max_chunk);
        self.list.insert(index, Chunk { start, size, used: 0 });
        Ok(())
    }

    /// Frees the chunks from `index` on whose size satisfies `release`. They must not be in use.
    pub(super) fn release(&mut self, index: usize, upstream: &Upstream, mut release: impl FnMut(usize) -> bool) {
        let mut at = 0;
        self.list.retain(|chunk| {
            at += 1;
            let goes = at > index && release(chunk.size);
            if goes {
                // SAFETY: it came from the upstream, is live, and not in use.
                unsafe { upstream.deallocate(chunk.start, chunk.size, CHUNK_ALIGN) };
            }
            !goes
        });
    }

    /// Frees all chunks when the arena is dropped.
    #[inline]
    pub(super) fn release_all(&mut self, upstream: &Upstream) {
        for chunk in self.list.iter() {
            // SAFETY: as above; the list is not used again.
            unsafe { upstream.deallocate(chunk.start, chunk.size, CHUNK_ALIGN) };
        }
    }

    /// Returns the size of all chunks.
    pub(super) fn capacity(&self) -> usize {
        self.list.iter().map(|chunk| chunk.size).sum()
    }
}

/// A request to an arena: not of zero bytes, at any alignment.
#[derive(Clone, Copy)]
pub(super) struct ArenaRequest {
    pub(super) size: usize,
    pub(super) align: usize,
    pub(super) zeroed: bool,
}

#[derive(Clone, Copy)]
struct LargeBlock {
    address: NonNull<u8>,
    size: usize,
    align: usize,
    requested: usize,
}

/// Blocks of their own, for requests that would waste much of a chunk. After a rewind they stay in the list, so that the
/// next round, which often requests the same sizes in the same order, finds them.
pub(super) struct LargeBlocks(InlineVec<LargeBlock, 1>);

/// A large block may be recycled for a request that is smaller by half and this many bytes.
const MAX_WASTE: usize = 64 << 10;

impl LargeBlocks {
    pub(super) const fn new() -> Self {
        Self(InlineVec::new())
    }

    /// Returns a block for the request at `index`: the one that is there, if it fits, or a new one.
    pub(super) fn allocate(
        &mut self,
        index: usize,
        request: ArenaRequest,
        upstream: &Upstream,
    ) -> Result<Block, AllocError> {
        let ArenaRequest { size, align, zeroed } = request;
        if let Some(large) = self.0.get_mut(index) {
            let aligned = large.address.as_ptr().addr().is_multiple_of(align);
            if aligned && large.size >= size && large.size / 2 <= size.saturating_add(MAX_WASTE) {
                large.requested = size;
                return Ok(Block { address: large.address, size, zeroed: false });
            }
            let misfit = large.address; // not in use, as it lies beyond the depth
            self.retain(upstream, |_, large| large.address != misfit);
        }
        self.0.reserve(size)?;
        let block = upstream.allocate(size, align, zeroed)?;
        self.0.insert(index, LargeBlock { address: block.address, size: block.size, align, requested: size });
        Ok(block)
    }

    /// Frees the blocks from `index` on whose size satisfies `release`. They must not be in use.
    pub(super) fn release(&mut self, index: usize, upstream: &Upstream, mut release: impl FnMut(usize) -> bool) {
        self.retain(upstream, |at, large| at < index || !release(large.size));
    }

    fn retain(&mut self, upstream: &Upstream, mut keep: impl FnMut(usize, &LargeBlock) -> bool) {
        let mut at = 0;
        self.0.retain(|large| {
            let kept = keep(at, large);
            at += 1;
            if !kept {
                // SAFETY: it came from the upstream, is live, and not in use.
                unsafe { upstream.deallocate(large.address, large.size, large.align) };
            }
            kept
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the size of all blocks.
    pub(super) fn capacity(&self) -> usize {
        self.0.iter().map(|large| large.size).sum()
    }

    /// Returns the bytes requested of the first `count` blocks.
    pub(super) fn requested(&self, count: usize) -> usize {
        self.0[..count].iter().map(|large| large.requested).sum()
    }
}
