//! The functions that programs call in place of the C library's. The unsafe ones demand what the manual demands of their callers.
//!
//! reallocarray(3) is not among them: the C library's calls whichever `realloc` is in force, and a program that brings its
//! own `malloc`, which goes before ours, often brings no `reallocarray`. Nor are valloc(3) and pvalloc(3), which are obsolete:
//! their blocks are the C library's.

use crate::large::{self, is_large};
use crate::{idle, life, next, report};
use firsttouch::address_map::is_foreign;
use firsttouch::os::page_size;
use libc::{c_int, c_uint, c_ulong, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    if is_large(size) { large::malloc(size) } else { next::malloc(size) }
}

#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    if let Some(bytes) = count.checked_mul(size)
        && is_large(bytes)
        && let Some(address) = large::allocate(bytes, 1, true)
    {
        return address;
    }
    next::calloc(count, size)
}

/// See free(3). It keeps errno.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(address: *mut c_void) {
    // SAFETY: null or a live block, as free(3) demands of the program.
    unsafe { if is_foreign(address as usize) { next::free(address) } else { large::free(address) } }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(address: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: null or a live block, as realloc(3) demands of the program.
    unsafe {
        if !is_foreign(address as usize) {
            return large::reallocate(address, size);
        }
        if !is_large(size) {
            return next::realloc(address, size);
        }
        if address.is_null() {
            return malloc(size);
        }
        large::take_over(address, size)
    }
}

/// A block of the pool, if the pool serves this size and has memory.
fn aligned(align: usize, size: usize) -> Option<*mut c_void> {
    if is_large(size) && align.is_power_of_two() { large::allocate(size, align, false) } else { None }
}

#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    aligned(align, size).unwrap_or_else(|| next::memalign(align, size))
}

/// See aligned_alloc(3). Which alignments the C library refuses depends on its version.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    aligned(align, size).unwrap_or_else(|| next::aligned_alloc(align, size))
}

/// # Safety
/// `result` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(result: *mut *mut c_void, align: usize, size: usize) -> c_int {
    let is_valid = align.is_power_of_two() && align.is_multiple_of(size_of::<*mut c_void>());
    // SAFETY: `result` may be written, as posix_memalign(3) demands of the program.
    unsafe {
        match if is_valid { aligned(align, size) } else { None } {
            Some(address) => *result = address,
            None => return next::posix_memalign(result, align, size),
        }
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(address: *mut c_void) -> usize {
    // SAFETY: null or a live block, as malloc_usable_size(3) demands of the program.
    unsafe {
        match is_foreign(address as usize) {
            true => next::malloc_usable_size(address),
            false => large::usable_size(address),
        }
    }
}

/// C23's free(3) with the size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(address: *mut c_void, _size: usize) {
    // SAFETY: null or a live block, as free_sized(3) demands of the program.
    unsafe { free(address) }
}

/// The same for aligned blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(address: *mut c_void, _align: usize, _size: usize) {
    // SAFETY: null or a live block, as free_aligned_sized(3) demands of the program.
    unsafe { free(address) }
}

/// See malloc_trim(3): the pool gives back its idle memory as well.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(pad: usize) -> libc::c_int {
    let gone = if life::is_forking() { 0 } else { large::trim() };
    next::malloc_trim(pad) | libc::c_int::from(gone > 0)
}

// ---- System calls of the program that concern the pool ---------------------------------------------------------------
//
// Changes to the pages of a block outlive its use. The C library unmaps a large block when it is freed; the pool keeps it. So if
// the program protected, locked or advised pages of it, they are mapped anew before the pool gets them back: the next user could
// not write, would find zeros in a child, or run into the limit on locked memory.
//
// A sandbox may allow what the C library's `malloc` needs (`mmap`, `munmap`, `mremap`, `mprotect`, `madvise`, `futex`) and
// kill the process for any other call. Once the program announces one, the pool makes no others: it asks neither what pages
// were used nor what limits there are, and starts no thread. The report is written before.

/// From the first altered page of a block to the last one; empty if none was altered. No lock: a signal handler may lock memory or
/// free it.
static ALTERED: [AtomicUsize; 2] = [AtomicUsize::new(usize::MAX), AtomicUsize::new(0)];

fn remember(start: *const c_void, size: usize) {
    let start = start as usize;
    if !is_foreign(start) && size > 0 {
        ALTERED[0].fetch_min(start, Relaxed);
        ALTERED[1].fetch_max(start.saturating_add(size), Relaxed);
    }
}

/// Whether the program may have altered pages of a block. May be true for a block that merely lies between altered ones. Its size
/// is asked for only where pages were altered.
#[inline]
pub fn may_be_altered(block: usize, size: impl FnOnce() -> usize) -> bool {
    let (page, [first, last]) = (page_size(), &ALTERED);
    block & !(page - 1) < last.load(Relaxed) && first.load(Relaxed) < (block + size()).next_multiple_of(page)
}

/// Whether the program asked for huge pages in blocks of ours, as NumPy does for large arrays.
static ADVISES: AtomicBool = AtomicBool::new(false);

pub fn advises_huge() -> bool {
    ADVISES.load(Relaxed)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(address: *mut c_void, size: usize, advice: c_int) -> c_int {
    const GUARD: c_int = 102;
    if matches!(
        advice,
        libc::MADV_DONTFORK | libc::MADV_WIPEONFORK | libc::MADV_DONTDUMP | libc::MADV_MERGEABLE | GUARD
    ) {
        remember(address, size);
    }
    if advice == libc::MADV_HUGEPAGE && !is_foreign(address as usize) && !life::is_inside() {
        ADVISES.store(true, Relaxed);
    }
    // SAFETY: what madvise(2) demands of the program.
    unsafe { next::madvise(address, size, advice) }
}

/// Defines functions that alter the pages of a range.
macro_rules! altering {
    ($(fn $name:ident($address:ident: $type:ty, $size:ident: usize $(, $more:ident: $of:ty)*);)*) => { $(
        /// See the function of that name in section 2 of the manual.
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
