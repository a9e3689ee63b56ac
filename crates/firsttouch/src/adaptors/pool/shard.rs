//! The spans freed last on each processor, newest last: warm in that processor's cache, and handed out again
//! unchanged.

use super::meter::Counts;
use super::policy::ROOM;
use crate::heap::growing::Span;
use crate::heap::segment::PageKind;

/// A freed span that has not been joined with its neighbors yet.
#[derive(Clone, Copy)]
pub(super) struct Recent {
    pub span: Span,
    /// When it was freed.
    pub epoch: u8,
}

#[derive(Default)]
pub(super) struct Shard {
    recent: [Option<Recent>; ROOM],
    count: usize,
    pub counts: Counts,
}

impl Shard {
    /// Takes the warmest span of `kind` that holds `bytes` and wastes at most a sixteenth.
    #[inline]
    pub(super) fn take(&mut self, kind: PageKind, bytes: usize) -> Option<Span> {
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

    /// Remembers a freed span; removes and returns the oldest if there is no room.
    #[inline]
    pub(super) fn put(&mut self, recent: Recent) -> Option<Recent> {
        let oldest = if self.count == ROOM { self.remove(0) } else { None };
        self.recent[self.count] = Some(recent);
        self.count += 1;
        oldest
    }

    /// Removes and returns the oldest span if `old` returns `true` for its epoch.
    pub(super) fn pop_oldest(&mut self, old: impl Fn(u8) -> bool) -> Option<Recent> {
        if self.count > 0 && self.recent[0].is_some_and(|recent| old(recent.epoch)) {
            return self.remove(0);
        }
        None
    }

    fn remove(&mut self, at: usize) -> Option<Recent> {
        let gone = self.recent[at];
        self.recent.copy_within(at + 1..self.count, at);
        self.count -= 1;
        gone
    }

    /// Bytes of the remembered spans.
    pub(super) fn bytes(&self) -> usize {
        self.recent[..self.count].iter().flatten().map(|recent| recent.span.bytes()).sum()
    }
}
