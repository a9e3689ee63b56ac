//! Scopes, whose memory is free again at their end.

use super::alloc_methods::{Zeroable, alloc_methods};
use super::bump::{Bump, Position};
use super::error::ArenaError;
use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice::from_raw_parts_mut;

/// A scope of an arena, made by [`Arena::scope`](super::Arena::scope). References into it cannot leave it:
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
/// While an inner scope is open, references of the outer scope can be used, but nothing can be allocated in the outer
/// scope, as it would be rewound with the inner one:
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
/// A scope cannot be shared with other threads:
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
    alloc_methods!('s);

    /// Calls `f` with a scope inside this one.
    ///
    /// ```
    /// # use firsttouch::arena::{Arena, ArenaError};
    /// let mut arena = Arena::new();
    /// arena.scope(|outer| {
    ///     let total = outer.alloc(0)?;
    ///     for n in 0..1000 {
    ///         // Each iteration uses the same memory.
    ///         *total += outer.scope(|s| Ok::<_, ArenaError>(s.alloc_slice_with(n, |i| i)?.iter().sum::<usize>()))?;
    ///     }
    ///     assert_eq!(*total, 166_167_000);
    ///     Ok::<_, ArenaError>(())
    /// })?;
    /// # Ok::<(), ArenaError>(())
    /// ```
    #[inline]
    pub fn scope<R>(&mut self, f: impl for<'i> FnOnce(&mut Scope<'i>) -> R) -> R {
        // SAFETY: this scope and all around it are borrowed until the end, so none of them can be rewound.
        let guard = unsafe { ScopeGuard::new(self.bump) };
        let result = f(&mut guard.scope());
        guard.end();
        result
    }
}

/// Rewinds when a scope ends: by [`end`](Self::end), or by a panic when it is dropped.
pub(super) struct ScopeGuard<'s, 'a> {
    bump: &'s Bump<'a>,
    at: Position,
}

impl<'s, 'a> ScopeGuard<'s, 'a> {
    /// Begins a scope.
    ///
    /// # Safety
    /// Until the guard is gone, only it and later guards rewind, and memory is allocated only through
    /// [`scope`](Self::scope).
    #[inline(always)]
    pub(super) unsafe fn new(bump: &'s Bump<'a>) -> Self {
        Self { bump, at: bump.position() }
    }

    /// Returns the scope.
    #[inline(always)]
    pub(super) fn scope(&self) -> Scope<'_> {
        Scope { bump: self.bump }
    }

    /// Ends the scope; returns whether that took more than moving the pointer.
    #[inline(always)]
    pub(super) fn end(self) -> bool {
        let (bump, at) = (self.bump, self.at);
        std::mem::forget(self);
        // SAFETY: what was allocated in the scope borrows from `self`, so no reference to it is left; no earlier
        // position was rewound to, as promised to `new` (law 8).
        unsafe { bump.rewind(at) }
    }
}

impl Drop for ScopeGuard<'_, '_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: as in `end`. By value, so that the guard can stay in registers.
        unsafe { self.bump.unwind(self.at) };
    }
}
