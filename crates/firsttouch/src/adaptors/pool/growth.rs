//! When fresh memory for blocks that are too small for huge pages comes on huge pages all the same.
//!
//! A program that makes many small blocks and keeps them takes a page fault for each base page. On a huge page the blocks
//! made next lie beside the first one, so a fault serves them all; what they leave of it is memory for nothing. So the pool
//! waits until it has grown by as much as a huge page: what is left of the next one is then less than what is in use.
//! Zeroed blocks may be sparse, and should not lie where a neighbour makes their pages real: with them the count starts
//! again, and they are given base pages.

use super::Pool;
use crate::allocator::Request;
use crate::heap::shape::{Fresh, Kind, huge_page};
use crate::os;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Bytes of fresh memory for small blocks since the last zeroed one.
#[derive(Default)]
pub(super) struct Growth(AtomicUsize);

impl Growth {
    /// Records that `fresh` bytes were taken for a small block.
    pub(super) fn taken(&self, fresh: usize, zeroed: bool) {
        if zeroed {
            self.0.store(0, Relaxed);
        } else {
            self.0.fetch_add(fresh, Relaxed);
        }
    }

    fn is_dense(&self) -> bool {
        self.0.load(Relaxed) >= huge_page()
    }
}

impl Pool {
    /// How fresh memory for a request is mapped. In a program that was not written for pools a block may be sparse, and
    /// without decay every block is fresh.
    pub(super) fn fresh(&self, kind: Kind, request: Request) -> Fresh {
        let may = self.options.huge && self.guest.is_none() && self.options.decay != Some(Duration::ZERO);
        let wants = kind == Kind::Small && !request.is_zeroed() && self.growth.is_dense();
        if may && wants && os::huge_page_size().is_some() { Fresh::HugePages } else { Fresh::Extents }
    }
}
