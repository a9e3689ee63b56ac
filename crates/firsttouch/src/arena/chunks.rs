//! An arena's chunks.

use super::upstream::Upstream;
use crate::allocator::{AllocError, Limit, Request};
use crate::layout::{DEFAULT_ALIGN, round_down};
use std::ptr::NonNull;

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
    pub(super) list: Vec<Chunk>,
    pub(super) next: usize,
}

impl Chunks {
    pub(super) const fn new(next: usize) -> Self {
        Self { list: Vec::new(), next }
    }

    /// Looks for a chunk of at least `need` bytes from the one at `index` on, and puts it there; whether there is one.
    pub(super) fn find(&mut self, index: usize, need: usize) -> bool {
        let found = (index..self.list.len()).find(|&at| self.list[at].size >= need);
        if let Some(at) = found {
            self.list.swap(index, at);
        }
        found.is_some()
    }

    /// Takes a new chunk of at least `need` bytes, a multiple of 64, and puts it at `index`. Where there is not as much
    /// as there should be it takes less.
    pub(super) fn take(
        &mut self,
        index: usize,
        need: usize,
        upstream: &Upstream,
        most: usize,
    ) -> Result<(), AllocError> {
        self.list.try_reserve(1).map_err(|_| AllocError::new(need, Limit::Upstream))?;
        let mut size = self.next.max(need);
        let start = loop {
            match upstream.take(Request::bytes(size)) {
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
                unsafe { upstream.give(chunk.start) };
            }
            !goes
        });
    }

    /// Bytes held.
    pub(super) fn held(&self) -> usize {
        self.list.iter().map(|chunk| chunk.size).sum()
    }
}
