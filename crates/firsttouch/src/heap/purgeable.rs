//! What the background purger works on.

use std::sync::Arc;

/// What keeps idle memory. All functions are called under the purger's lock, so they must call nothing that could wait
/// for it: what has to be returned to an upstream is a [`DeferredTrim`].
pub trait Purgeable: Sync {
    /// A tick has passed. Returns what is to be returned to an upstream now.
    fn tick(&self) -> Option<Arc<dyn DeferredTrim>> {
        None
    }
    /// Whether ticks decay what it keeps: they stop while the purger is [paused](super::purger::pause).
    fn decays(&self) -> bool {
        true
    }
    /// Whether it keeps nothing.
    fn is_idle(&self) -> bool {
        true
    }
    /// Purges all idle memory, as far as that runs no code but this library's.
    fn trim_idle(&self) {}
    /// What trims the rest.
    fn deferred_trim(&self) -> Option<Arc<dyn DeferredTrim>> {
        None
    }
    /// Takes all locks.
    fn hold(&self);
    /// Ends `hold`.
    ///
    /// # Safety
    /// The locks are held by `hold`.
    unsafe fn release(&self);
}

/// Returning idle memory to an upstream. It keeps its allocator alive; if it held the last reference, the allocator is
/// dropped with it.
pub trait DeferredTrim: Send + Sync {
    /// Returns what is too old or too much, or all that is idle.
    fn run(&self, all: bool);
}
