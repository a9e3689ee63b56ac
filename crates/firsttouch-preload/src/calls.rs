//! System calls of the program that concern the pool.
//!
//! **What it does to the pages of its blocks** outlives their use.
//! The C library unmaps a large block when it is freed; the pool keeps it. So if the program protected, locked or advised
//! pages of it, they are mapped anew before the pool gets them back: the next user could not write, would find zeros in a
//! child, or run into the limit on locked memory.
//!
//! **A sandbox** may allow what the C library's `malloc` needs (`mmap`, `munmap`, `mremap`, `mprotect`, `madvise`, `futex`)
//! and kill the process for any other call. Once the program announces one, the pool makes no others: it asks neither what
//! pages were used nor what limits there are, and starts no thread. The report is written before.

use crate::next::{Name, next};
use crate::{idle, report};
use firsttouch::address_map::is_foreign;
use libc::{c_int, c_uint, c_ulong, c_void};
use std::mem::transmute;
use std::sync::atomic::{
    AtomicBool, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// Ranges that are remembered; with more, the pages of every block are mapped anew.
const ROOM: usize = 512;
/// The start of a range that is being written.
const RESERVED: usize = 1;

/// A range of addresses; it starts at zero where there is none. No lock: a signal handler may lock memory or free it.
struct Range {
    start: AtomicUsize,
    end: AtomicUsize,
}

static RANGES: [Range; ROOM] = [const { Range { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; ROOM];
/// How many of them were ever used.
static USED: AtomicUsize = AtomicUsize::new(0);
static TOO_MANY: AtomicBool = AtomicBool::new(false);

fn remember(start: *const c_void, size: usize) {
    let start = start as usize;
    let end = start.saturating_add(size);
    if is_foreign(start) || size == 0 {
        return;
    }
    let known = |range: &Range| {
        let from = range.start.load(Acquire);
        from > RESERVED && from <= start && end <= range.end.load(Relaxed)
    };
    if RANGES[..USED.load(Acquire)].iter().any(known) {
        return;
    }
    let free = |range: &&Range| range.start.compare_exchange(0, RESERVED, AcqRel, Relaxed).is_ok();
    match RANGES.iter().enumerate().find(|(_, range)| free(range)) {
        Some((at, range)) => {
            range.end.store(end, Relaxed);
            range.start.store(start, Release);
            USED.fetch_max(at + 1, Release);
        }
        None => TOO_MANY.store(true, Relaxed),
    }
}

/// Whether the program altered pages of any block.
#[inline]
pub fn are_some() -> bool {
    USED.load(Relaxed) > 0
}

/// Whether the program altered pages of a block.
pub fn is_altered(block: usize, size: usize) -> bool {
    TOO_MANY.load(Relaxed) || any(block, size, |_| ())
}

/// Forgets what the program altered in a block.
pub fn forget(block: usize, size: usize) {
    any(block, size, |range| range.start.store(0, Release));
}

/// Whether there are ranges with pages of a block; calls `found` for those that lie within its pages.
fn any(block: usize, size: usize, found: impl Fn(&Range)) -> bool {
    let (page, used) = (firsttouch::os::page_size(), USED.load(Relaxed));
    let (from, to) = (block & !(page - 1), (block + size).next_multiple_of(page));
    let mut any = false;
    for range in &RANGES[..used] {
        let (start, end) = (range.start.load(Acquire), range.end.load(Relaxed));
        if start > RESERVED && start < to && from < end {
            any = true;
            if from <= start && end <= to {
                found(range);
            }
        }
    }
    any
}

/// See madvise(2).
///
/// # Safety
/// As stated there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(address: *mut c_void, size: usize, advice: c_int) -> c_int {
    const GUARD: c_int = 102;
    if matches!(
        advice,
        libc::MADV_DONTFORK | libc::MADV_WIPEONFORK | libc::MADV_DONTDUMP | libc::MADV_MERGEABLE | GUARD
    ) {
        remember(address, size);
    }
    type Function = unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int;
    // SAFETY: the function of that name, with what madvise(2) demands of the program.
    unsafe { transmute::<*mut c_void, Function>(next(Name::Madvise))(address, size, advice) }
}

/// See mprotect(2).
///
/// # Safety
/// As stated there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(address: *mut c_void, size: usize, access: c_int) -> c_int {
    remember(address, size);
    type Function = unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int;
    // SAFETY: the function of that name, with what mprotect(2) demands of the program.
    unsafe { transmute::<*mut c_void, Function>(next(Name::Mprotect))(address, size, access) }
}

/// See pkey_mprotect(2).
///
/// # Safety
/// As stated there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pkey_mprotect(address: *mut c_void, size: usize, access: c_int, key: c_int) -> c_int {
    remember(address, size);
    type Function = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int) -> c_int;
    // SAFETY: the function of that name, with what pkey_mprotect(2) demands of the program.
    unsafe { transmute::<*mut c_void, Function>(next(Name::PkeyMprotect))(address, size, access, key) }
}

/// See mlock(2).
///
/// # Safety
/// As stated there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock(address: *const c_void, size: usize) -> c_int {
    remember(address, size);
    // SAFETY: the function of that name, with what mlock(2) demands of the program.
    unsafe {
        transmute::<*mut c_void, unsafe extern "C" fn(*const c_void, usize) -> c_int>(next(Name::Mlock))(address, size)
    }
}

/// See mlock2(2).
///
/// # Safety
/// As stated there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock2(address: *const c_void, size: usize, flags: c_uint) -> c_int {
    remember(address, size);
    type Function = unsafe extern "C" fn(*const c_void, usize, c_uint) -> c_int;
    // SAFETY: the function of that name, with what mlock2(2) demands of the program.
    unsafe { transmute::<*mut c_void, Function>(next(Name::Mlock2))(address, size, flags) }
}

/// See prctl(2). Without more rights than others, every way to install a filter begins with one of these.
///
/// # Safety
/// As stated there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    if matches!(option, libc::PR_SET_NO_NEW_PRIVS | libc::PR_SET_SECCOMP) {
        report::write();
        idle::never_start_a_thread();
        firsttouch::os::ask_nothing();
    }
    type Function = unsafe extern "C" fn(c_int, ...) -> c_int;
    // SAFETY: the function of that name, with what prctl(2) demands of the program; what it did not give is not looked at.
    unsafe { transmute::<*mut c_void, Function>(next(Name::Prctl))(option, a, b, c, d) }
}
