//! Blocks of their own, for requests that would leave much of a chunk unused. They stay in the list when an arena goes
//! back, so that the next round, which often asks for the same sizes in the same order, finds them.

use super::growing::Wanted;
use super::list::List;
use super::upstream::Upstream;
use crate::allocator::{AllocError, Block};
use std::ptr::NonNull;

#[derive(Clone, Copy)]
pub(super) struct Large {
    address: NonNull<u8>,
    pub(super) size: usize,
    align: usize,
    asked: usize,
}

/// See the module.
pub(super) struct Larges(List<Large, 1>);

/// A block may be this much larger than what is asked.
const SPARE: usize = 64 << 10;

impl Larges {
    pub(super) const fn new() -> Self {
        Self(List::new())
    }

    /// The block at `index` for a request: the one that is there, if it fits, or a new one in its place.
    pub(super) fn take(&mut self, index: usize, request: Wanted, upstream: &Upstream) -> Result<Block, AllocError> {
        let Wanted { size, align, zeroed } = request;
        if let Some(large) = self.0.get_mut(index) {
            let aligned = large.address.as_ptr().addr().is_multiple_of(align);
            if aligned && large.size >= size && large.size / 2 <= size.saturating_add(SPARE) {
                large.asked = size;
                return Ok(Block { address: large.address, size, zeroed: false });
            }
            // What does not fit goes; it lies beyond the depth, where nobody uses it.
            let gone = large.address;
            self.give_back(index, upstream, |large| large.address == gone);
        }
        self.0.reserve(size)?;
        let block = upstream.take(size, align, zeroed)?;
        self.0.insert(index, Large { address: block.address, size: block.size, align, asked: size });
        Ok(block)
    }

    /// Gives back those from `index` on that `gone` says of their sizes.
    pub(super) fn give_back(&mut self, index: usize, upstream: &Upstream, mut gone: impl FnMut(&Large) -> bool) {
        let mut at = 0;
        self.0.retain(|large| {
            at += 1;
            let goes = at > index && gone(large);
            if goes {
                // SAFETY: it came from there, lives until now, and what is beyond the depth nobody uses.
                unsafe { upstream.give(large.address, large.size, large.align) };
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
