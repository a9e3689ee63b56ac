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

use crate::{idle, next, report};
use firsttouch::address_map::is_foreign;
use libc::{c_int, c_uint, c_ulong, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// From the first page of a block that was altered to the last one; empty where none was. No lock: a signal handler may lock
/// memory or free it.
static ALTERED: [AtomicUsize; 2] = [AtomicUsize::new(usize::MAX), AtomicUsize::new(0)];

fn remember(start: *const c_void, size: usize) {
    let start = start as usize;
    if !is_foreign(start) && size > 0 {
        ALTERED[0].fetch_min(start, Relaxed);
        ALTERED[1].fetch_max(start.saturating_add(size), Relaxed);
    }
}

/// Whether the program may have altered pages of a block: of it, or of blocks around it. Its size is asked only where some
/// were.
#[inline]
pub fn may_be_altered(block: usize, size: impl FnOnce() -> usize) -> bool {
    let (page, [first, last]) = (firsttouch::os::page_size(), &ALTERED);
    block & !(page - 1) < last.load(Relaxed) && first.load(Relaxed) < (block + size()).next_multiple_of(page)
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
    // SAFETY: what madvise(2) demands of the program.
    unsafe { next::madvise(address, size, advice) }
}

/// Defines functions that alter the pages of a range.
macro_rules! altering {
    ($(fn $name:ident($address:ident: $type:ty, $size:ident: usize $(, $more:ident: $of:ty)*);)*) => { $(
        /// See the function of that name in section 2 of the manual.
        ///
        /// # Safety
        /// As stated there.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($address: $type, $size: usize $(, $more: $of)*) -> c_int {
            remember($address, $size);
            // SAFETY: what the manual demands of the program.
            unsafe { next::$name($address, $size $(, $more)*) }
        }
    )* };
}

altering! {
    fn mprotect(address: *mut c_void, size: usize, access: c_int);
    fn pkey_mprotect(address: *mut c_void, size: usize, access: c_int, key: c_int);
    fn mlock(address: *const c_void, size: usize);
    fn mlock2(address: *const c_void, size: usize, flags: c_uint);
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
    // SAFETY: what prctl(2) demands of the program; what it did not give is not looked at.
    unsafe { next::prctl(option, a, b, c, d) }
}
