//! A lock of four bytes that needs no allocator and can be held across a fork (Drepper, "Futexes are tricky", 2011).

use crate::os;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

const FREE: u32 = 0;
const HELD: u32 = 1;
const WANTED: u32 = 2; // held, and a thread sleeps on it

/// A lock without its value, as a fork takes it.
pub struct RawLock(AtomicU32);

/// A value that only one thread at a time may use.
pub struct Lock<T> {
    raw: RawLock,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only by the thread that holds the lock (law 6).
unsafe impl<T: Send> Sync for Lock<T> {}
// SAFETY: the value moves with the lock.
unsafe impl<T: Send> Send for Lock<T> {}

/// The right to use a [`Lock`]'s value until it is dropped.
pub struct Guard<'a, T>(&'a Lock<T>, PhantomData<&'a mut T>);

/// Under the model checker, any other thread may run before a lock is acquired and after it is released. A lock that is never
/// released shows as a program that does not end. (The checker's own mutexes cannot outlive a run, as our statics do.)
fn let_others_run() {
    #[cfg(shuttle)]
    if !std::thread::panicking() {
        shuttle::thread::yield_now();
    }
}

impl RawLock {
    /// Acquires the lock and keeps it until [`RawLock::release`].
    #[inline]
    pub fn hold(&self) {
        let_others_run();
        if !self.acquires() {
            self.wait();
        }
    }

    #[inline]
    fn acquires(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..100 {
            if self.0.load(Relaxed) == FREE && self.acquires() {
                return;
            }
            std::hint::spin_loop();
        }
        while self.0.swap(WANTED, Acquire) != FREE {
            if cfg!(shuttle) {
                let_others_run();
            } else {
                os::wait(&self.0, WANTED, None);
            }
        }
    }

    /// Ends [`RawLock::hold`], in the parent and in the child of a fork.
    ///
    /// # Safety
    /// The lock is held by `hold`.
    #[inline]
    pub unsafe fn release(&self) {
        if self.0.swap(FREE, Release) == WANTED {
            os::wake(&self.0);
        }
        let_others_run();
    }
}

impl<T> Lock<T> {
    /// Creates a lock that is not held.
    pub const fn new(value: T) -> Self {
        Self { raw: RawLock(AtomicU32::new(FREE)), value: UnsafeCell::new(value) }
    }

    /// Acquires the lock, waiting for its holder.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        self.raw.hold();
        Guard(self, PhantomData)
    }

    /// Acquires the lock if it is not held.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        let_others_run();
        self.raw.acquires().then(|| Guard(self, PhantomData)) // lazily: dropping a guard releases the lock
    }

    /// The lock without its value.
    pub fn raw(&self) -> &RawLock {
        &self.raw
    }

    /// The value, while the raw lock is held.
    ///
    /// # Safety
    /// It is held by [`RawLock::hold`], and there is no other reference to the value.
    #[allow(clippy::mut_from_ref)] // as a guard would
    pub unsafe fn held(&self) -> &mut T {
        // SAFETY: as demanded.
        unsafe { &mut *self.value.get() }
    }
}

/// A value in cache lines of its own: two, which the prefetcher loads together.
#[repr(align(128))]
pub struct Padded<T>(pub T);

/// An owner of locks, which the forking thread holds meanwhile (see `fork.rs`).
pub trait AtFork: Sync {
    /// Calls `each` with all of its locks, in the order in which they are taken.
    fn locks(&self, each: &mut dyn FnMut(&RawLock));
    /// A fork has passed, on either side.
    fn after_fork(&self) {}
}

impl<T: Send> AtFork for Lock<T> {
    fn locks(&self, each: &mut dyn FnMut(&RawLock)) {
        each(self.raw());
    }
}

impl<T: Send, const N: usize> AtFork for [Padded<Lock<T>>; N] {
    fn locks(&self, each: &mut dyn FnMut(&RawLock)) {
        self.iter().for_each(|padded| each(padded.0.raw()));
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
        // SAFETY: the guard holds it.
        unsafe { self.0.raw.release() }
    }
}
