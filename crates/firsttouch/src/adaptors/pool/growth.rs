//! When fresh memory for blocks that are too small for huge pages comes on huge pages all the same.
//!
//! A program that makes many small blocks and keeps them takes a page fault for each base page. On a huge page the blocks
//! made next lie beside the first one, so a fault serves them all; what they leave of it is memory for nothing. So the pool
//! waits until it has grown by as much as a huge page: what is left of the next one is then less than what is in use.
//! Zeroed blocks may be sparse, and should not lie where a neighbour makes their pages real: with them the count starts
//! again, and they are given base pages. Others may be sparse, too, such as buffers made large enough for the worst case.
//! So the pool looks at some that it handed out a while ago, again each time that it has doubled. Where one in two blocks is
//! filled, all of them are in one of eight times.

use super::Pool;
use super::density::is_filled;
use super::huge_min::{huge_min, shares};
use crate::allocator::Request;
use crate::heap::heap;
use crate::heap::region::Span;
use crate::heap::shape::{Fresh, Kind, huge_page};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Bytes of fresh memory between two marks, in the mean. The distance varies, or a program whose blocks come in a cycle
/// would show the same one each time.
const STEP: usize = 1 << 17;
/// Blocks that are marked at a time, a power of two.
const MARKS: usize = 4;

/// How a pool has grown since the last zeroed small block.
#[derive(Default)]
pub(super) struct Growth {
    /// Fresh bytes for small blocks, less what was given back.
    bytes: AtomicUsize,
    /// As many of them at which a block was found filled. Up to twice that, blocks are taken to be filled.
    filled: AtomicUsize,
    /// The last blocks that were marked. The program may be about to fill the newest one.
    marked: [AtomicUsize; MARKS],
    /// How many were marked, ever.
    marks: AtomicUsize,
    /// The bytes at which one is marked next.
    next: AtomicUsize,
}

impl Growth {
    /// Records that `fresh` bytes were taken for the small block in a span, and how many of them on huge pages. All pages of
    /// a huge one are there once one of them is used, so a block on it says nothing.
    pub(super) fn taken(&self, span: Span, fresh: usize, huge: usize, request: Request) {
        if request.is_zeroed() {
            self.restart();
        }
        if request.is_zeroed() || !is_small(request) {
            return;
        }
        let bytes = self.bytes.fetch_add(fresh, Relaxed) + fresh;
        if bytes >= self.next.load(Relaxed) {
            let mark = self.marks.fetch_add(1, Relaxed);
            self.marked[mark % MARKS].store(if huge == 0 { span.block() } else { 0 }, Relaxed);
            self.next.store(bytes + distance(mark), Relaxed);
        }
    }

    /// Records that bytes of the region for base pages were given back: a pool that fills and empties does not grow.
    pub(super) fn given_back(&self, bytes: usize) {
        let _ = self.bytes.fetch_update(Relaxed, Relaxed, |now| Some(now.saturating_sub(bytes)));
        let bytes = self.bytes.load(Relaxed);
        self.filled.fetch_min(bytes, Relaxed);
        self.next.fetch_min(bytes + STEP, Relaxed);
    }

    fn restart(&self) {
        self.bytes.store(0, Relaxed);
        self.next.store(0, Relaxed);
        self.filled.store(0, Relaxed);
    }

    fn is_large(&self) -> bool {
        self.bytes.load(Relaxed) >= huge_page()
    }

    /// Whether the program filled the blocks that were marked a while ago.
    fn were_filled(&self) -> bool {
        let bytes = self.bytes.load(Relaxed);
        if bytes < 2 * self.filled.load(Relaxed) {
            return true;
        }
        let marks = self.marks.load(Relaxed);
        for back in 2..=MARKS {
            let address = self.marked[marks.wrapping_sub(back) % MARKS].load(Relaxed);
            let Some((_, span)) = heap::span_at(address).filter(|_| heap::lives(address)) else { return false };
            if !is_filled(span.address(), span.bytes()) {
                self.restart();
                return false;
            }
        }
        self.filled.store(bytes, Relaxed);
        true
    }
}

/// Bytes of fresh memory from a mark to the next: from half of [`STEP`] to one and a half, as if by chance.
fn distance(mark: usize) -> usize {
    let golden = 0x9E37_79B9_7F4A_7C15; // of 2^64: its multiples lie as evenly as can be
    STEP / 2 + ((mark as u64).wrapping_mul(golden) >> (64 - STEP.ilog2())) as usize
}

/// Whether a block is small. Where a large one comes from base pages, that was decided for it (`guest.rs`).
fn is_small(request: Request) -> bool {
    request.size() < huge_min(false)
}

impl Pool {
    /// How fresh memory for a request is mapped. Without decay every block is fresh, and huge pages would be for nothing; the
    /// rest of one that is larger than usual would be too much.
    pub(super) fn fresh(&self, kind: Kind, request: Request) -> Fresh {
        let may = self.options.huge && self.options.decay != Some(Duration::ZERO) && shares();
        let wants = kind == Kind::Small && is_small(request) && !request.is_zeroed() && self.growth.is_large();
        if may && wants && self.growth.were_filled() { Fresh::HugePages } else { Fresh::Extents }
    }
}
