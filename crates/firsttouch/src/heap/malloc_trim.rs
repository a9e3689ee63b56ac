//! Returns freed memory that glibc's `malloc` keeps, beside our pools, to the system.
//!
//! By itself, glibc returns the ends of its heaps; what is free below them stays resident. `malloc_trim` returns whole pages
//! from everywhere, but walks all free blocks under the heaps' locks, and what is used again has to be faulted in again. So
//! the purger's thread asks how much is free, and trims where much has been free for a while (`Watch`); and however long
//! that took, it rests for a hundred times as long. The same thread has the front ask the pools of other libraries.

#![allow(unsafe_code)] // Safety: functions of glibc that have no preconditions.

use crate::heap::purger;
use crate::os;
pub use crate::policy::{TRIM_AFTER, TRIM_SHARE, WORTH_A_TRIM};
use crate::sync::OnceBox;
use crate::sync::lock::Lock;
use std::ffi::{c_int, c_void};
use std::mem::{replace, transmute};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// glibc's `mallinfo2`, which is of version 2.33, and `malloc_trim`.
type Functions = (unsafe extern "C" fn() -> Info, unsafe extern "C" fn(usize) -> c_int);

/// `struct mallinfo2`.
#[repr(C)]
struct Info {
    _others: [usize; 8],
    free: usize,
    _top: usize,
}

fn functions() -> Option<&'static Functions> {
    static FOUND: OnceBox<Option<Functions>> = OnceBox::new();
    let find = || {
        let (mallinfo2, trim) = (os::symbol(c"mallinfo2")?.as_ptr(), os::symbol(c"malloc_trim")?.as_ptr());
        // SAFETY: glibc's functions of these names have had these types since they exist.
        Some(unsafe {
            let mallinfo2 = transmute::<*mut c_void, unsafe extern "C" fn() -> Info>(mallinfo2);
            (mallinfo2, transmute::<*mut c_void, unsafe extern "C" fn(usize) -> c_int>(trim))
        })
    };
    FOUND.get_or_init(|| Box::new(find())).as_ref()
}

/// Decides when to trim. What was trimmed is still free for glibc, and no longer resident.
pub(super) struct Watch {
    /// The time at the first tick, from which all others are counted.
    start: Option<Instant>,
    /// The least that was free at any look since the last trim: that much cannot be returned, or is not resident.
    left: usize,
    /// Resident bytes after the last trim; memory that was used and freed again between two looks raises them.
    resident: usize,
    /// The least that was free at any look since `since`.
    least: usize,
    since: Duration,
    /// When to look next.
    next: Duration,
}

impl Watch {
    pub(super) const fn new() -> Self {
        let (never, begin) = (usize::MAX, Duration::ZERO);
        Self { start: None, left: never, resident: never, least: never, since: begin, next: begin }
    }

    /// Looks how much is free in glibc's heaps, and says whether to trim. To tell what is `resident` takes a file, which a program
    /// may count among its own, so it is asked only where it matters.
    pub(super) fn look(
        &mut self,
        now: Duration,
        free: impl FnOnce() -> usize,
        resident: impl FnOnce() -> usize,
    ) -> bool {
        if now < self.next {
            return false;
        }
        let free = free();
        self.left = self.left.min(free);
        self.least = self.least.min(free);
        if now - self.since < TRIM_AFTER {
            return false;
        }
        let least = replace(&mut self.least, free);
        self.since = now;
        least - self.left >= WORTH_A_TRIM
            || (least >= WORTH_A_TRIM && resident().saturating_sub(self.resident) >= WORTH_A_TRIM)
    }

    /// A trim has left `free` bytes free and `resident` ones resident.
    pub(super) fn trimmed(&mut self, free: usize, resident: usize) {
        (self.left, self.least, self.resident) = (free, free, resident);
    }

    /// Looking, and perhaps trimming, took from `began` to `ended`.
    pub(super) fn took(&mut self, began: Duration, ended: Duration) {
        self.next = self.next.max(ended + (ended - began) * TRIM_SHARE);
    }
}

/// Locked by the purger's thread alone, which no fork interrupts.
static WATCH: Lock<Watch> = Lock::new(Watch::new());
/// Bytes that all trims have returned.
static RETURNED: AtomicUsize = AtomicUsize::new(0);
/// Once the purger trims: has other libraries asked to do so, without waiting for anything.
static ASK: OnceBox<fn()> = OnceBox::new();

/// Whether the purger trims, so that its thread goes on.
pub(super) fn has_begun() -> bool {
    ASK.get().is_some()
}

/// A tick of the purger has passed.
pub(super) fn tick() {
    let Some(ask) = ASK.get() else { return };
    let mut watch = WATCH.lock();
    let start = *watch.start.get_or_insert_with(Instant::now);
    let began = start.elapsed();
    if watch.look(began, free, os::resident) {
        trim();
        watch.trimmed(free(), os::resident());
    }
    watch.took(began, start.elapsed());
    ask();
}

/// Lets the purger return, from now on, what glibc's heaps keep for no use, and call `ask` at each tick. For processes whose
/// `malloc` is glibc's own. Returns whether that is new.
pub fn begin(ask: fn()) -> bool {
    let is_new = functions().is_some() && ASK.set(Box::new(ask)).is_ok();
    if is_new {
        purger::ensure();
    }
    is_new
}

/// Has glibc return all that it can now; returns the bytes by which the process shrank.
pub fn trim() -> usize {
    let Some((_, malloc_trim)) = functions() else { return 0 };
    let before = os::resident();
    // SAFETY: the function takes its own locks, and may be called by any thread.
    unsafe { malloc_trim(0) };
    let returned = before.saturating_sub(os::resident());
    RETURNED.fetch_add(returned, Relaxed);
    returned
}

/// Bytes that are free in glibc's heaps, resident or not.
pub fn free() -> usize {
    // SAFETY: as above.
    functions().map_or(0, |(mallinfo2, _)| unsafe { mallinfo2() }.free)
}

/// Bytes that trims have returned so far.
pub fn returned() -> usize {
    RETURNED.load(Relaxed)
}
