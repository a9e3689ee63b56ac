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
use crate::sync::lock::Lock;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bytes that are worth a trim, or a line in a report.
pub(crate) const WORTH: usize = 8 << 20;
/// What is free at every look during such a time is idle.
const IDLE: Duration = Duration::from_millis(500);
/// Who holds less than this of glibc's heaps needs no thread that waits until it is freed.
const LITTLE: usize = 64 << 20;
/// Looking and trimming take at most one part in so many of the time.
const PARTS: u32 = 100;

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
    static FOUND: OnceLock<Option<Functions>> = OnceLock::new();
    let find = || {
        if !cfg!(all(target_os = "linux", target_env = "gnu")) {
            return None;
        }
        let (mallinfo2, trim) = (os::symbol(c"mallinfo2")?.as_ptr(), os::symbol(c"malloc_trim")?.as_ptr());
        // SAFETY: glibc's functions of these names have had these types since they exist.
        Some(unsafe {
            Functions {
                mallinfo2: transmute::<*mut c_void, unsafe extern "C" fn() -> Info>(mallinfo2),
                trim: transmute::<*mut c_void, unsafe extern "C" fn(usize) -> c_int>(trim),
            }
        })
    };
    FOUND.get_or_init(find).as_ref()
}

/// Bytes of glibc's heaps, resident or not.
#[derive(Clone, Copy)]
struct Look {
    used: usize,
    free: usize,
}

/// Decides when to trim. What was trimmed is still free, and no longer resident. Times count from any moment.
#[derive(Clone, Copy)]
struct Watch {
    /// The least that was free at any look since the last trim. That much cannot be returned, or is not resident.
    left: usize,
    /// What was resident after the last trim. What was used and freed again between two looks makes it more.
    resident: usize,
    /// The least that was free at any look since `since`.
    least: usize,
    since: Duration,
    /// When to look next.
    next: Duration,
    /// Whether this tick ended such a time, and there is little to return, now or later.
    is_idle: bool,
}

impl Watch {
    const fn new() -> Self {
        Self {
            left: usize::MAX,
            resident: usize::MAX,
            least: usize::MAX,
            since: Duration::ZERO,
            next: Duration::ZERO,
            is_idle: false,
        }
    }

    fn is_worth_it(&mut self, now: Duration, Look { used, free }: Look, resident: impl Fn() -> usize) -> bool {
        self.left = self.left.min(free);
        self.least = self.least.min(free);
        if now - self.since < IDLE {
            return false;
        }
        // To tell what is resident takes a file: a program may count its own, or close all it finds.
        let is_worth_it = self.least - self.left >= WORTH
            || (self.least >= WORTH && resident().saturating_sub(self.resident) >= WORTH);
        (self.least, self.since) = (free, now);
        self.is_idle = !is_worth_it && free - self.left < WORTH && used < LITTLE;
        is_worth_it
    }

    /// Whether to look again.
    fn is_due(&mut self, now: Duration) -> bool {
        self.is_idle = false;
        now >= self.next
    }

    /// Looks and, where it is worth it, trims; `clock` is read before and after.
    fn tick(
        &mut self,
        clock: impl Fn() -> Duration,
        look: impl Fn() -> Look,
        resident: impl Fn() -> usize,
        trim: impl FnOnce(),
    ) {
        let began = clock();
        if self.is_worth_it(began, look(), &resident) {
            trim();
            let free = look().free;
            (self.left, self.least, self.resident) = (free, free, resident());
        }
        let ended = clock();
        self.next = ended + (ended - began) * PARTS;
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

/// What time it is for the watch.
fn clock() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// A tick of the purger has passed. Returns whether nothing here needs its thread.
pub(super) fn tick() -> bool {
    if !BEGAN.load(Relaxed) {
        return true;
    }
    let mut watch = WATCH.lock();
    if watch.is_due(clock()) {
        watch.tick(clock, look, os::resident, || _ = trim());
    }
    RESTS.store(watch.is_idle, Relaxed);
    watch.is_idle
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

fn look() -> Look {
    let Some(functions) = functions() else { return Look { used: 0, free: 0 } };
    // SAFETY: as above.
    let Info { used, free, .. } = unsafe { (functions.mallinfo2)() };
    Look { used, free }
}

/// Bytes that are free in glibc's heaps, resident or not.
pub fn free() -> usize {
    look().free
}

/// Bytes that trims have returned so far.
pub fn returned() -> usize {
    RETURNED.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const MIB: usize = 1 << 20;

    /// Times in milliseconds at which a watch trims, where so much is free at each tick of 100 ms, and each look takes
    /// `look` milliseconds. A trim makes no difference to what is free, as glibc counts.
    fn trims(look: u64, free: impl Fn(u64) -> usize) -> Vec<u64> {
        trims_beside(look, free, |_| 900 * MIB)
    }

    fn trims_beside(look: u64, free: impl Fn(u64) -> usize, resident: impl Fn(u64) -> usize) -> Vec<u64> {
        let (mut watch, mut found) = (Watch::new(), Vec::new());
        for tick in (0..10_000).step_by(100) {
            let clock = Cell::new(tick);
            let looked = || {
                clock.set(clock.get() + look);
                Look { used: 0, free: free(tick) }
            };
            if watch.is_due(Duration::from_millis(tick)) {
                watch.tick(|| Duration::from_millis(clock.get()), looked, || resident(tick), || found.push(tick));
            }
        }
        found
    }

    #[test]
    fn what_stays_free_is_returned_once() {
        assert_eq!(trims(0, |_| 500 * MIB), []); // it was free from the start
        assert_eq!(trims(0, |now| if now < 1000 { MIB } else { 400 * MIB }), [1500]);
        assert_eq!(trims(0, |now| now as usize * MIB / 1000), [8500]); // 1 MiB a second: once it was worth it
    }

    #[test]
    fn what_is_used_again_stays() {
        let in_turn = |now: u64| if now.is_multiple_of(200) { MIB } else { 400 * MIB };
        assert_eq!(trims(0, in_turn), []);
        let after_a_second = |now: u64| if (now / 1000).is_multiple_of(2) { MIB } else { 400 * MIB };
        assert_eq!(trims(0, after_a_second), [1500, 3500, 5500, 7500, 9500]);
    }

    #[test]
    fn what_was_used_between_two_looks_is_returned() {
        let free = |now: u64| if now < 1000 { MIB } else { 400 * MIB };
        let resident = |now: u64| if now < 4000 { 100 * MIB } else { 400 * MIB };
        assert_eq!(trims_beside(0, free, resident), [1500, 4000]);
        let grows = |now: u64| now as usize * MIB / 1000; // of 1 MiB a second, none of it known to be free
        assert_eq!(trims_beside(0, free, grows), [1500, 9500]);
    }

    #[test]
    fn it_takes_a_hundredth_of_the_time() {
        let looks = Cell::new(0);
        let counted = |now| {
            looks.set(looks.get() + 1);
            if now < 1000 { MIB } else { 400 * MIB }
        };
        assert_eq!(trims(20, counted).len(), 1);
        assert!(looks.get() <= 6, "{}", looks.get()); // 10 s, of which five times 20 ms
    }

    /// Times at which a watch keeps no thread alive.
    fn idle(look: impl Fn(u64) -> Look) -> Vec<u64> {
        let mut watch = Watch::new();
        let is_idle = |tick: &u64| {
            if watch.is_due(Duration::from_millis(*tick)) {
                watch.tick(|| Duration::from_millis(*tick), || look(*tick), || 100 * MIB, || ());
            }
            watch.is_idle
        };
        (0..2000).step_by(100).filter(is_idle).collect()
    }

    #[test]
    fn it_keeps_no_thread_alive_for_little() {
        let look = |used: usize, free: usize| Look { used: used * MIB, free: free * MIB };
        assert_eq!(idle(|_| look(20, 7)), [500, 1000, 1500]);
        assert_eq!(idle(|_| look(300, 7)), []); // what is in use may be freed
        assert_eq!(idle(|now| if now < 400 { look(20, 7) } else { look(1, 26) }), [1500]); // trimmed at 1000
        assert_eq!(idle(|now| if now < 1400 { look(20, 7) } else { look(1, 26) }), [500, 1000]);
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn glibc_tells_and_trims() {
        let blocks: Vec<Vec<u8>> = (0..200_000).map(|number| vec![1; 200 + number % 7]).collect();
        let before = free();
        let mut kept = blocks;
        let mut number = 0;
        kept.retain(|_| {
            number += 1;
            number % 1000 == 0
        });
        assert!(free() >= before + 30 * MIB, "{} {before}", free());
        assert!(trim() >= 20 * MIB);
        drop(kept);
    }
}
