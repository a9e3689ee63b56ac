//! Blocks of their own, for requests that would leave much of a chunk unused. They stay in the list when an arena goes
//! back, so that the next round, which often asks for the same sizes in the same order, finds them.

use super::upstream::Upstream;
use crate::allocator::{AllocError, Block, Limit, Request};
use std::ptr::NonNull;

struct Large {
    address: NonNull<u8>,
    size: usize,
    asked: usize,
}

/// See the module.
pub(super) struct Larges(Vec<Large>);

/// A block may be this much larger than what is asked.
const SPARE: usize = 64 << 10;

impl Larges {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The block at `index` for a request: the one that is there, if it fits, or a new one in its place.
    pub(super) fn take(&mut self, index: usize, request: Request, upstream: &Upstream) -> Result<Block, AllocError> {
        let Request { size, align, .. } = request;
        if let Some(large) = self.0.get_mut(index) {
            let aligned = large.address.as_ptr().addr().is_multiple_of(align);
            if aligned && large.size >= size && large.size / 2 <= size.saturating_add(SPARE) {
                large.asked = size;
                return Ok(Block { address: large.address, size, zeroed: false });
            }
            let gone = self.0.remove(index);
            // SAFETY: it came from there, and nobody uses it, as it lies beyond the depth.
            unsafe { upstream.give(gone.address) };
        }
        self.0.try_reserve(1).map_err(|_| AllocError::new(size, Limit::Upstream))?;
        let block = upstream.take(request)?;
        self.0.insert(index, Large { address: block.address, size: block.size, asked: size });
        Ok(block)
    }

    /// Gives back those from `index` on that `gone` says of their sizes.
    pub(super) fn give_back(&mut self, index: usize, upstream: &Upstream, mut gone: impl FnMut(usize) -> bool) {
        let mut at = 0;
        self.0.retain(|large| {
            at += 1;
            let goes = at > index && gone(large.size);
            if goes {
                // SAFETY: as above.
                unsafe { upstream.give(large.address) };
            }
            !goes
        });
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes held.
    pub(super) fn held(&self) -> usize {
        self.0.iter().map(|large| large.size).sum()
    }

    /// Bytes that were asked of the first `count`.
    pub(super) fn asked(&self, count: usize) -> usize {
        self.0[..count].iter().map(|large| large.asked).sum()
    }
}
