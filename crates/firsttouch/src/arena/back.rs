//! An arena's ways back: scopes, marks and resets.

use super::marks::{Mark, MarkError};
use super::scope::{End, Scope};
use super::whole::Arena;

impl Arena<'_> {
    /// Runs `f` with a scope: what is allocated in it is free again at its end. Unlike [`Arena::rewind`], it needs no
    /// check when the program runs.
    #[inline]
    pub fn scope<R>(&mut self, f: impl for<'i> FnOnce(&mut Scope<'i>) -> R) -> R {
        // SAFETY: the arena is borrowed until the end.
        let end = unsafe { End::new(&self.bump) };
        let result = f(&mut end.scope());
        if end.leave() && self.marks.is_empty() {
            // SAFETY: no scope is open, and no mark is left.
            unsafe { self.bump.settle() };
        }
        result
    }

    /// Marks how far the arena is used, to be rewound to once.
    #[inline]
    pub fn mark(&self) -> Mark {
        self.marks.put(self.bump.position())
    }

    /// Goes back to a mark. Marks that were made later mean nothing any more.
    ///
    /// # Errors
    /// Where another arena made the mark, or this one went back further since; nothing changes then.
    #[inline]
    pub fn rewind(&mut self, mark: Mark) -> Result<(), MarkError> {
        // SAFETY: nothing that was allocated is borrowed, as the arena is not.
        unsafe { self.go_back(&mark) }
    }

    /// The same from a shared reference.
    ///
    /// # Safety
    /// No scope is open, and nothing uses what was allocated since the mark.
    #[inline]
    pub(super) unsafe fn go_back(&self, mark: &Mark) -> Result<(), MarkError> {
        let at = self.marks.take(mark)?;
        // SAFETY: nothing uses what was allocated since (caller), and marks are taken in their order. Where no mark is
        // left, nobody holds a position, as no scope is open (caller).
        unsafe {
            if self.bump.rewind(at) && self.marks.is_empty() {
                self.bump.settle();
            }
        }
        Ok(())
    }

    /// Frees all that was allocated, and gives back what is beyond [`Options::keep`]. Marks mean nothing any more.
    #[inline]
    pub fn reset(&mut self) {
        self.marks.clear();
        self.numbered.get_mut().clear();
        // SAFETY: nothing that was allocated is borrowed, as the arena is not; no mark is left, no scope open.
        unsafe { self.bump.reset(self.keep) };
    }

    /// Gives back what is not in use.
    pub fn trim(&mut self) {
        if self.marks.is_empty() && self.used() == 0 {
            // SAFETY: nothing is allocated, no mark is left, and no scope open.
            unsafe { self.bump.reset(0) };
        }
        self.bump.give_back_idle(0);
    }

    /// Bytes in use, with what alignment left between them.
    pub fn used(&self) -> usize {
        self.bump.used()
    }

    /// Bytes held, in use or not.
    pub fn capacity(&self) -> usize {
        self.bump.capacity()
    }
}
