//! An arena's chunks.

use super::list::List;
use super::upstream::Upstream;
use crate::allocator::AllocError;
use crate::layout::{DEFAULT_ALIGN, round_down};
use std::ptr::NonNull;

/// Chunks begin and end at multiples of this, which is what `malloc` gives without being asked.
pub(super) const CHUNK_ALIGN: usize = 16;

/// A piece of memory to be cut from its end.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub(super) start: NonNull<u8>,
    pub(super) size: usize,
    /// Bytes that were in use when the next chunk's turn came.
    pub(super) used: usize,
}

impl Chunk {
    pub(super) fn end(&self) -> NonNull<u8> {
        // SAFETY: the end of its block.
        unsafe { self.start.add(self.size) }
    }
}

/// The chunks in the order in which they are used, and how large the next new one is.
pub(super) struct Chunks {
    pub(super) list: List<Chunk, 8>,
    pub(super) next: usize,
}

impl Chunks {
    pub(super) const fn new(next: usize) -> Self {
        Self { list: List::new(), next }
    }

    /// Looks for a chunk of at least `need` bytes from the one at `index` on, and puts it there; whether there is one.
    #[inline]
    pub(super) fn find(&mut self, index: usize, need: usize) -> bool {
        let found = (index..self.list.len()).find(|&at| self.list[at].size >= need);
        if let Some(at) = found {
            self.list.swap(index, at);
        }
        found.is_some()
    }

    /// Takes a new chunk of at least `need` bytes, a multiple of [`CHUNK_ALIGN`], and puts it at `index`. Where there is not as much
    /// as there should be it takes less.
    #[inline]
    pub(super) fn take(
        &mut self,
        index: usize,
        need: usize,
        upstream: &Upstream,
        most: usize,
    ) -> Result<(), AllocError> {
        self.list.reserve(need)?;
        let mut size = self.next.max(need);
        let start = loop {
            match upstream.take(size, CHUNK_ALIGN, false) {
                Ok(block) => break block.address,
                Err(error) if size == need => return Err(AllocError { asked: need, ..error }),
                Err(_) => size = round_down(size / 2, DEFAULT_ALIGN).max(need),
            }
        };
        self.next = size.saturating_mul(2).min(most);
        self.list.insert(index, Chunk { start, size, used: 0 });
        Ok(())
    }

    /// Gives back those from `index` on that `gone` says.
    pub(super) fn give_back(&mut self, index: usize, upstream: &Upstream, mut gone: impl FnMut(&Chunk) -> bool) {
        let mut at = 0;
        self.list.retain(|chunk| {
            at += 1;
            let goes = at > index && gone(chunk);
            if goes {
                // SAFETY: it came from there, lives until now, and what is beyond the depth nobody uses.
                unsafe { upstream.give(chunk.start, chunk.size, CHUNK_ALIGN) };
            }
            !goes
        });
    }

    /// Gives back all, in the end.
    #[inline]
    pub(super) fn give_back_all(&mut self, upstream: &Upstream) {
        for chunk in self.list.iter() {
            // SAFETY: as above; nobody asks for the list again.
            unsafe { upstream.give(chunk.start, chunk.size, CHUNK_ALIGN) };
        }
    }

    /// Bytes held.
    pub(super) fn held(&self) -> usize {
        self.list.iter().map(|chunk| chunk.size).sum()
    }
}
