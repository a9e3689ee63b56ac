//! The spans freed last on each processor, newest last: warm in that processor's cache, and handed out again
//! unchanged.
//!
//! Large ones are kept apart only as long as requests fit them: the first that the shard cannot serve, of any size, sends
//! them to the heap before it looks there. So they are not missing where spans are joined, chosen and split.

use super::meter::Counts;
use super::policy::{LARGE_ROOM, ROOM, SHARD_SMALL};
use crate::heap::growing::Span;
use crate::heap::segment::PageKind;

/// A freed span that has not been joined with its neighbors yet.
#[derive(Clone, Copy)]
pub(super) struct Recent {
    pub span: Span,
    /// When it was freed.
    pub epoch: u8,
}

pub(super) type Large = [Option<Recent>; LARGE_ROOM];

#[derive(Default)]
pub(super) struct Shard {
    recent: [Option<Recent>; ROOM],
    count: usize,
    /// Those of more than [`SHARD_SMALL`] bytes, newest first.
    large: Large,
    pub counts: Counts,
}

impl Shard {
    /// Takes the warmest span of `kind` that holds `bytes` and wastes at most a sixteenth, or no unit of a large one.
    #[inline]
    pub(super) fn take(&mut self, kind: PageKind, bytes: usize) -> Option<Span> {
        if bytes > SHARD_SMALL {
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
        if recent.span.bytes() > SHARD_SMALL {
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
