//! The spans freed last on each processor, newest last: warm in that processor's cache, and handed out again
//! unchanged.
//!
//! Large ones are kept apart only as long as requests fit them: the first that the shard cannot serve, of any size, sends
//! them to the heap before it looks there. So they are not missing where spans are joined, chosen and split.

use crate::heap::growing::Span;
use crate::heap::segment::PageKind;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering::Relaxed};

/// The number of spans that a shard remembers.
const ROOM: usize = 8;
/// The same of large ones.
const LARGE_ROOM: usize = 4;
/// Spans up to this size may be missing in the heap: blocks of 512 KiB, with the unit more in which they begin at different
/// places. Of larger ones that would take more memory (a sixth for random sizes up to 16 MiB).
const SMALL_MAX: usize = (512 + 64) << 10;
/// The largest span that a shard remembers, likewise.
pub(super) const MAX: usize = (4096 + 64) << 10;

/// A freed span that has not been joined with its neighbors yet.
#[derive(Clone, Copy)]
pub(super) struct Recent {
    pub span: Span,
    /// When it was freed.
    pub epoch: u8,
}

/// The counts of one processor, in bytes or numbers; the pool's counts are the sums over the shards.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub allocations: u64,
    pub recycled: u64,
    pub allocated_bytes: u64,
    pub recycled_bytes: u64,
    pub blocks: isize,
    /// Changes of the bytes in use and active that were not reported to the meter yet.
    pub in_use: isize,
    pub active: isize,
    /// The highest that these were since.
    most_in_use: isize,
    most_active: isize,
}

pub(super) type Large = [Option<Recent>; LARGE_ROOM];

#[derive(Default)]
pub(super) struct Shard {
    recent: [Option<Recent>; ROOM],
    count: usize,
    /// Those of more than [`SMALL_MAX`] bytes, newest first.
    large: Large,
    pub counts: Counts,
}

impl Shard {
    /// Takes the warmest span of `kind` that holds `bytes` and wastes at most a sixteenth, or no unit of a large one.
    #[inline]
    pub(super) fn take(&mut self, kind: PageKind, bytes: usize) -> Option<Span> {
        if bytes > SMALL_MAX {
            return self.take_large(kind, bytes);
        }
        for at in (0..self.count).rev() {
            let recent = self.recent[at]?;
            let has = recent.span.bytes();
            if recent.span.kind() == kind && has >= bytes && has - bytes < (bytes >> 4) + recent.span.segment.unit() {
                self.remove(at);
                return Some(recent.span);
            }
        }
        None
    }

    #[inline(never)] // what is smaller does not pay for it
    fn take_large(&mut self, kind: PageKind, bytes: usize) -> Option<Span> {
        let fits = |recent: &Recent| {
            let has = recent.span.bytes();
            recent.span.kind() == kind && has >= bytes && has - bytes < recent.span.segment.unit()
        };
        let at = self.large.iter().position(|large| large.as_ref().is_some_and(fits))?;
        let found = self.large[at].take();
        self.large[at..].rotate_left(1);
        found.map(|found| found.span)
    }

    /// Removes the large spans.
    pub(super) fn pop_large(&mut self) -> Large {
        std::mem::take(&mut self.large)
    }

    /// Remembers a freed span; removes and returns the oldest if there is no room.
    #[inline]
    pub(super) fn put(&mut self, recent: Recent) -> Option<Recent> {
        if recent.span.bytes() > SMALL_MAX {
            return self.put_large(recent);
        }
        let oldest = if self.count == ROOM { self.remove(0) } else { None };
        self.recent[self.count] = Some(recent);
        self.count += 1;
        oldest
    }

    #[inline(never)]
    fn put_large(&mut self, recent: Recent) -> Option<Recent> {
        self.large.rotate_right(1);
        self.large[0].replace(recent)
    }

    /// Removes and returns the oldest span if `old` returns `true` for its epoch.
    pub(super) fn pop_oldest(&mut self, old: impl Fn(u8) -> bool) -> Option<Recent> {
        if self.count > 0 && self.recent[0].is_some_and(|recent| old(recent.epoch)) {
            return self.remove(0);
        }
        self.large.iter_mut().rev().find_map(|large| large.take_if(|large| old(large.epoch)))
    }

    fn remove(&mut self, at: usize) -> Option<Recent> {
        let gone = self.recent[at];
        self.recent.copy_within(at + 1..self.count, at);
        self.count -= 1;
        gone
    }

    /// Bytes of the remembered spans.
    pub(super) fn bytes(&self) -> usize {
        self.recent[..self.count].iter().chain(&self.large).flatten().map(|recent| recent.span.bytes()).sum()
    }
}

/// Changes of this size are reported to the meter.
const STEP: usize = 1 << 20;

/// Bytes in use, and their peak. Each shard reports when its changes add up to [`STEP`], so that processors do not contend
/// for one counter; peaks are exact where one processor makes them, and accurate to that for each further one.
#[derive(Default)]
pub(super) struct Meter {
    pub in_use: AtomicIsize,
    pub active: AtomicIsize,
    pub peak_in_use: AtomicIsize,
    pub peak_active: AtomicIsize,
    pub peak_held: AtomicIsize,
    pub first_touched_small: AtomicU64,
    pub first_touched_huge: AtomicU64,
    pub purged: AtomicU64,
    /// Bytes taken fresh in place of idle ones that did not suit the request: what the kernel clears faster, what lay on
    /// another node, or on base pages.
    pub renewed: AtomicU64,
    pub failures: AtomicU64,
}

impl Meter {
    /// Records that a block of `asked` bytes in a span of `bytes` was allocated or (if negative) freed.
    #[inline]
    pub(super) fn note(&self, counts: &mut Counts, asked: isize, bytes: isize) {
        counts.in_use += asked;
        counts.active += bytes;
        counts.most_in_use = counts.most_in_use.max(counts.in_use);
        counts.most_active = counts.most_active.max(counts.active);
        if counts.active.unsigned_abs() >= STEP || counts.in_use.unsigned_abs() >= STEP {
            self.report(counts);
        }
    }

    /// Bytes of spans that hold blocks.
    pub(super) fn active(&self) -> usize {
        self.active.load(Relaxed).max(0) as usize
    }

    /// The same at their peak.
    pub(super) fn most_active(&self) -> usize {
        self.active().max(self.peak_active.load(Relaxed).max(0) as usize)
    }

    pub(super) fn report(&self, counts: &mut Counts) {
        add(&self.in_use, &self.peak_in_use, counts.in_use, counts.most_in_use);
        add(&self.active, &self.peak_active, counts.active, counts.most_active);
        (counts.in_use, counts.most_in_use) = (0, 0);
        (counts.active, counts.most_active) = (0, 0);
    }
}

fn add(now: &AtomicIsize, peak: &AtomicIsize, change: isize, most: isize) {
    let before = now.fetch_add(change, Relaxed);
    if most > 0 {
        peak.fetch_max(before + most, Relaxed);
    }
}
