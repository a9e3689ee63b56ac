//! A lock of four bytes that needs no allocator and can be held across a fork (Drepper, "Futexes are tricky", 2011).

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

#[cfg(not(shuttle))]
use crate::os;
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

const FREE: u32 = 0;
const HELD: u32 = 1;
#[cfg(not(shuttle))]
const WANTED: u32 = 2; // held, and a thread sleeps on it

/// The word of a lock: how it is acquired and released.
pub trait Word {
    /// A word that is not held.
    #[allow(clippy::declare_interior_mutable_const)] // each lock has its own copy
    const FREE: Self;
    /// Acquires it, waiting for its holder.
    fn lock(&self);
    /// Acquires it if it is not held; returns whether it did.
    fn try_lock(&self) -> bool;
    /// Releases it.
    fn unlock(&self);
}

/// A word that wakes the threads that sleep on it.
pub struct Futex(AtomicU32);

#[cfg(not(shuttle))]
impl Futex {
    #[cold]
    fn lock_slowly(&self) {
        for _ in 0..100 {
            if self.0.load(Relaxed) == FREE && self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok() {
                return;
            }
            std::hint::spin_loop();
        }
        while self.0.swap(WANTED, Acquire) != FREE {
            os::wait(&self.0, WANTED, None);
        }
    }
}

#[cfg(not(shuttle))]
impl Word for Futex {
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const FREE: Self = Self(AtomicU32::new(FREE));

    #[inline]
    fn lock(&self) {
        if self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_err() {
            self.lock_slowly();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    #[inline]
    fn unlock(&self) {
        if self.0.swap(FREE, Release) == WANTED {
            os::wake(&self.0);
        }
    }
}

/// Under the model checker, any other thread may run before a lock is acquired and after it is released. A lock that
/// is never released shows as a program that does not end. (The checker's own mutexes cannot outlive a run, as our
/// statics do.)
#[cfg(shuttle)]
impl Word for Futex {
    #[allow(clippy::declare_interior_mutable_const)] // as in the trait
    const FREE: Self = Self(AtomicU32::new(FREE));

    fn lock(&self) {
        shuttle::thread::yield_now();
        while self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_err() {
            shuttle::thread::yield_now();
        }
    }

    fn try_lock(&self) -> bool {
        shuttle::thread::yield_now();
        self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    fn unlock(&self) {
        self.0.store(FREE, Release);
        if !std::thread::panicking() {
            shuttle::thread::yield_now();
        }
    }
}

/// A value that only one thread at a time may use.
pub struct Lock<T, W: Word = Futex> {
    word: W,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only by the thread that holds the lock (law 6).
unsafe impl<T: Send, W: Word + Sync> Sync for Lock<T, W> {}
// SAFETY: the value moves with the lock.
unsafe impl<T: Send, W: Word + Send> Send for Lock<T, W> {}

/// The right to use a [`Lock`]'s value until it is dropped.
pub struct Guard<'a, T, W: Word = Futex>(&'a Lock<T, W>);

impl<T, W: Word> Lock<T, W> {
    /// Creates a lock that is not held.
    pub const fn new(value: T) -> Self {
        Self { word: W::FREE, value: UnsafeCell::new(value) }
    }

    /// Acquires the lock, waiting for its holder.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T, W> {
        self.word.lock();
        Guard(self)
    }

    /// Acquires the lock if it is not held.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T, W>> {
        self.word.try_lock().then(|| Guard(self)) // lazily: dropping a guard releases the lock
    }

    /// Acquires the lock and keeps it until [`Lock::release`].
    pub fn hold(&self) {
        self.word.lock();
    }

    /// The value, between [`Lock::hold`] and [`Lock::release`].
    ///
    /// # Safety
    /// The lock is held by `hold`, and there is no other reference to the value.
    #[allow(clippy::mut_from_ref)] // as a guard would
    pub unsafe fn held(&self) -> &mut T {
        // SAFETY: `hold` acquired the lock, and there is no other reference (forks, `Pool::gather`).
        unsafe { &mut *self.value.get() }
    }

    /// Ends [`Lock::hold`], in the parent and in the child of a fork.
    ///
    /// # Safety
    /// The lock is held by `hold`.
    pub unsafe fn release(&self) {
        self.word.unlock();
    }
}

/// A value in cache lines of its own: two, which the prefetcher loads together.
#[repr(align(128))]
pub struct Padded<T>(pub T);

impl<T, W: Word> Deref for Guard<'_, T, W> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T, W: Word> DerefMut for Guard<'_, T, W> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T, W: Word> Drop for Guard<'_, T, W> {
    #[inline]
    fn drop(&mut self) {
        self.0.word.unlock();
    }
}
