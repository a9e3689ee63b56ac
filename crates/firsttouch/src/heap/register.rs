//! What the purger works on, in the order in which it came.

use super::purgeable::{DeferredTrim, Purgeable};
use std::sync::Arc;

struct Entry {
    /// Rises from entry to entry, so that a round continues where it was if entries change meanwhile.
    number: u64,
    /// No reference, as whoever leaves may hold the only one.
    what: *const dyn Purgeable,
}

pub(super) struct Register {
    entries: Vec<Entry>,
    last: u64,
}

// SAFETY: what is entered is `Sync`.
unsafe impl Send for Register {}

impl Register {
    pub(super) const fn new() -> Self {
        Self { entries: Vec::new(), last: 0 }
    }

    /// # Safety
    /// `what` lives until it leaves.
    pub(super) unsafe fn enter(&mut self, what: *const dyn Purgeable) {
        self.last += 1;
        self.entries.push(Entry { number: self.last, what });
    }

    pub(super) fn leave(&mut self, what: *const dyn Purgeable) {
        self.entries.retain(|other| !std::ptr::addr_eq(other.what, what));
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &dyn Purgeable> {
        self.entries.iter().map(Entry::what)
    }

    /// The next deferred trim behind entry `number`, which moves on.
    pub(super) fn next(
        &self,
        number: &mut u64,
        ask: impl Fn(&dyn Purgeable) -> Option<Arc<dyn DeferredTrim>>,
    ) -> Option<Arc<dyn DeferredTrim>> {
        let at = self.entries.partition_point(|entry| entry.number <= *number);
        self.entries[at..].iter().find_map(|entry| {
            *number = entry.number;
            ask(entry.what())
        })
    }

    pub(super) fn is_idle(&self) -> bool {
        self.all().all(Purgeable::is_idle)
    }
}

impl Entry {
    fn what(&self) -> &dyn Purgeable {
        // SAFETY: whoever entered it (`purger::enter`, `purger::enter_once`) promised that it lives until it leaves.
        unsafe { &*self.what }
    }
}
