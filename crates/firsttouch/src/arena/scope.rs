//! A scope: what is allocated in it is free again at its end.

use super::allocating::allocating;
use super::bump::{Bump, Position};
use super::error::Error;
use super::zeroable::Zeroable;
use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice::from_raw_parts_mut;

/// What [`Arena::scope`](super::Arena::scope) gives. References live to the scope's end, and can't leave it:
///
/// ```compile_fail,E0521
/// # use firsttouch::arena::Arena;
/// let mut arena = Arena::new();
/// let mut kept: Option<&mut i32> = None;
/// arena.scope(|s| kept = s.alloc(1).ok()); // borrowed data escapes
/// ```
///
/// ```compile_fail
/// # use firsttouch::arena::Arena;
/// let mut arena = Arena::new();
/// let dangling = arena.scope(|s| s.alloc_slice::<f64>(3).unwrap());
/// ```
///
/// Inside an inner scope the outer one's references can be used, but nothing can be allocated in it, as that would be
/// rewound too:
///
/// ```compile_fail,E0502
/// # use firsttouch::arena::Arena;
/// let mut arena = Arena::new();
/// arena.scope(|outer| {
///     outer.scope(|inner| {
///         inner.alloc(1).unwrap();
///         outer.alloc(2).unwrap(); // borrowed for the inner scope
///     });
/// });
/// ```
///
/// ```compile_fail,E0502
/// # use firsttouch::arena::Arena;
/// let mut arena = Arena::new();
/// arena.scope(|s| {
///     s.alloc(1).unwrap();
///     arena.alloc(2).unwrap(); // borrowed for the scope
/// });
/// ```
///
/// It stays in its thread:
///
/// ```compile_fail,E0277
/// # use firsttouch::arena::Arena;
/// let mut arena = Arena::new();
/// arena.scope(|s| std::thread::scope(|threads| {
///     threads.spawn(|| s.alloc(1).is_ok());
/// }));
/// ```
pub struct Scope<'s> {
    bump: &'s Bump<'s>,
}

impl<'s> Scope<'s> {
    allocating!('s);

    /// Runs `f` with a scope inside this one.
    ///
    /// ```
    /// # use firsttouch::arena::{Arena, Error};
    /// let mut arena = Arena::new();
    /// arena.scope(|outer| {
    ///     let total = outer.alloc(0)?;
    ///     for n in 0..1000 {
    ///         // Each turn has the same memory.
    ///         *total += outer.scope(|s| Ok::<_, Error>(s.alloc_slice_with(n, |i| i)?.iter().sum::<usize>()))?;
    ///     }
    ///     assert_eq!(*total, 166_167_000);
    ///     Ok::<_, Error>(())
    /// })?;
    /// # Ok::<(), Error>(())
    /// ```
    #[inline]
    pub fn scope<R>(&mut self, f: impl for<'i> FnOnce(&mut Scope<'i>) -> R) -> R {
        // SAFETY: this scope and all that stand before it are borrowed until the end, so nobody goes back further.
        let end = unsafe { End::new(self.bump) };
        let result = f(&mut end.scope());
        end.leave();
        result
    }
}

/// Goes back when a scope ends: by [`End::leave`], or by a panic when it is dropped.
pub(super) struct End<'s, 'a> {
    bump: &'s Bump<'a>,
    at: Position,
}

impl<'s, 'a> End<'s, 'a> {
    /// Notes where the scope begins.
    ///
    /// # Safety
    /// Until it is gone nobody but it, or one that was made later, goes back; what is allocated from now on is reached
    /// only by way of [`End::scope`].
    #[inline(always)]
    pub(super) unsafe fn new(bump: &'s Bump<'a>) -> Self {
        Self { bump, at: bump.position() }
    }

    /// The scope.
    #[inline(always)]
    pub(super) fn scope(&self) -> Scope<'_> {
        Scope { bump: self.bump }
    }

    /// Ends the scope; whether that took more than the pointer.
    #[inline(always)]
    pub(super) fn leave(self) -> bool {
        let (bump, at) = (self.bump, self.at);
        std::mem::forget(self);
        // SAFETY: what was allocated in the scope borrowed from `self`, so no reference to it lives; it is this scope's
        // turn to go back, as its maker promised (law 8).
        unsafe { bump.rewind(at) }
    }
}

impl Drop for End<'_, '_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: as in `leave`. By value, so that the guard can stay in registers.
        unsafe { self.bump.unwind(self.at) };
    }
}
