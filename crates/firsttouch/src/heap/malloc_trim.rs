//! What glibc's `malloc` keeps of freed memory, beside our pools, and its way back to the system.
//!
//! By itself, glibc returns the ends of its heaps; what is free below them stays resident. `malloc_trim` returns whole pages
//! from everywhere, but walks all free blocks under the heaps' locks, and what is used again has to be faulted in again. So
//! the purger's thread asks how much is free, and trims where much has been free for a while (`Watch`); and however long
//! that took, it rests for a hundred times as long. Where there is little to return, now or later, it does not keep the
//! thread alive: that starts again with the next memory of a pool.

#![allow(unsafe_code)] // Safety: functions of glibc that have no preconditions.

use crate::heap::purger;
use crate::os;
use crate::policy::{TRIM_AFTER, TRIM_LITTLE, TRIM_SHARE, WORTH_A_TRIM};
use crate::sync::OnceBox;
use crate::sync::lock::Lock;
use std::ffi::{c_int, c_void};
use std::mem::{replace, transmute};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// glibc's functions, where they can be had: `mallinfo2` is of version 2.33.
struct Functions {
    mallinfo2: unsafe extern "C" fn() -> Info,
    trim: unsafe extern "C" fn(usize) -> c_int,
}

/// `struct mallinfo2`.
#[repr(C)]
struct Info {
    _others: [usize; 7],
    used: usize,
    free: usize,
    _top: usize,
}

fn functions() -> Option<&'static Functions> {
    static FOUND: OnceBox<Option<Functions>> = OnceBox::new();
    let find = || {
        let (mallinfo2, trim) = (os::symbol(c"mallinfo2")?.as_ptr(), os::symbol(c"malloc_trim")?.as_ptr());
        // SAFETY: glibc's functions of these names have had these types since they exist.
        Some(unsafe {
            Functions {
                mallinfo2: transmute::<*mut c_void, unsafe extern "C" fn() -> Info>(mallinfo2),
                trim: transmute::<*mut c_void, unsafe extern "C" fn(usize) -> c_int>(trim),
            }
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
    /// What was resident after the last trim: what was used and freed again between two looks makes it more.
    resident: usize,
    /// The least that was free at any look since `since`.
    least: usize,
    since: Duration,
    /// When to look next.
    next: Duration,
}

/// What a look leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Trim,
    Wait,
    /// There is little to return, now or later.
    Rest,
}

impl Watch {
    pub(super) const fn new() -> Self {
        let (never, begin) = (usize::MAX, Duration::ZERO);
        Self { start: None, left: never, resident: never, least: never, since: begin, next: begin }
    }

    /// Looks how much glibc's heaps have in use and free. To tell what is `resident` takes a file, which a program may count among
    /// its own, so it is asked only where it matters.
    pub(super) fn look(
        &mut self,
        now: Duration,
        used_and_free: impl FnOnce() -> (usize, usize),
        resident: impl FnOnce() -> usize,
    ) -> Action {
        if now < self.next {
            return Action::Wait;
        }
        let (used, free) = used_and_free();
        self.left = self.left.min(free);
        self.least = self.least.min(free);
        if now - self.since < TRIM_AFTER {
            return Action::Wait;
        }
        let least = replace(&mut self.least, free);
        self.since = now;
        if least - self.left >= WORTH_A_TRIM
            || (least >= WORTH_A_TRIM && resident().saturating_sub(self.resident) >= WORTH_A_TRIM)
        {
            Action::Trim
        } else if used < TRIM_LITTLE && free - self.left < WORTH_A_TRIM {
            Action::Rest
        } else {
            Action::Wait
        }
    }

    /// A trim has left so many bytes free and resident.
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
/// Whether the purger trims.
static BEGAN: AtomicBool = AtomicBool::new(false);
/// Whether nothing here needs its thread, as far as the last tick tells.
static RESTS: AtomicBool = AtomicBool::new(true);

/// A tick of the purger has passed. Returns whether nothing here needs its thread.
pub(super) fn tick() -> bool {
    if !BEGAN.load(Relaxed) {
        return true;
    }
    let mut watch = WATCH.lock();
    let start = *watch.start.get_or_insert_with(Instant::now);
    let began = start.elapsed();
    let verdict = watch.look(began, look, os::resident);
    if verdict == Action::Trim {
        trim();
        watch.trimmed(free(), os::resident());
    }
    watch.took(began, start.elapsed());
    RESTS.store(verdict == Action::Rest, Relaxed);
    verdict == Action::Rest
}

/// The same, as of the last tick.
pub(super) fn rests() -> bool {
    RESTS.load(Relaxed)
}

/// Lets the purger return, from now on, what glibc's heaps keep for no use. For processes whose `malloc` is glibc's own.
pub fn begin() {
    if functions().is_some() {
        BEGAN.store(true, Relaxed);
        RESTS.store(false, Relaxed);
        purger::ensure();
    }
}

/// Returns now what can be returned; the bytes by which the process shrank.
pub fn trim() -> usize {
    let Some(functions) = functions() else { return 0 };
    let before = os::resident();
    // SAFETY: the function takes its own locks, and may be called by any thread.
    unsafe { (functions.trim)(0) };
    let returned = before.saturating_sub(os::resident());
    RETURNED.fetch_add(returned, Relaxed);
    returned
}

/// Bytes in use and free in glibc's heaps, resident or not.
fn look() -> (usize, usize) {
    let Some(functions) = functions() else { return (0, 0) };
    // SAFETY: as above.
    let Info { used, free, .. } = unsafe { (functions.mallinfo2)() };
    (used, free)
}

/// Bytes that are free in glibc's heaps, resident or not.
pub fn free() -> usize {
    look().1
}

/// Bytes that trims have returned so far.
pub fn returned() -> usize {
    RETURNED.load(Relaxed)
}
