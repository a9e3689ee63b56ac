//! A lock for work that is soon done and that one thread does most of the time: giving it up costs a plain store, half
//! of what a swap would add (8 of 17 ns on a cloud machine's Xeon). Who waits is not woken but looks again, at first at
//! once, then every fraction of a millisecond. It needs no allocator and can be held across a fork.

use crate::os;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Duration;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Looks before the first sleep.
const LOOKS: u32 = 200;
/// The first sleep, which doubles up to the last.
const FIRST: Duration = Duration::from_micros(20);
const LAST: Duration = Duration::from_millis(1);

/// A value that one thread at a time may use.
pub(crate) struct BriefLock<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only by the thread that holds the lock (law 6).
unsafe impl<T: Send> Sync for BriefLock<T> {}
// SAFETY: the value moves with the lock.
unsafe impl<T: Send> Send for BriefLock<T> {}

/// The right to use a [`BriefLock`]'s value until it is dropped.
pub(crate) struct Guard<'a, T>(&'a BriefLock<T>);

impl<T> BriefLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { word: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.hold();
        Guard(self)
    }

    /// Takes the lock and keeps it, until [`BriefLock::release`].
    #[inline]
    pub(crate) fn hold(&self) {
        if !self.try_hold() {
            self.hold_slowly();
        }
    }

    #[inline]
    fn try_hold(&self) -> bool {
        self.word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn hold_slowly(&self) {
        for _ in 0..LOOKS {
            if self.word.load(Relaxed) == FREE && self.try_hold() {
                return;
            }
            std::hint::spin_loop();
        }
        let mut sleep = FIRST;
        while !self.try_hold() {
            os::wait(&self.word, HELD, Some(sleep));
            sleep = LAST.min(sleep * 2);
        }
    }

    /// The value, between [`BriefLock::hold`] and [`BriefLock::release`].
    ///
    /// # Safety
    /// The lock is held by `hold`, and no other reference to the value lives.
    #[allow(clippy::mut_from_ref)] // what a guard would do
    pub(crate) unsafe fn held(&self) -> &mut T {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.value.get() }
    }

    /// Ends [`BriefLock::hold`], in the parent and in the child of a fork.
    ///
    /// # Safety
    /// The lock is held by `hold`.
    pub(crate) unsafe fn release(&self) {
        self.word.store(FREE, Release);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.word.store(FREE, Release);
    }
}
