//! Keeps the thresholds of glibc's `malloc` where NumPy's arrays would have put them.
//!
//! glibc maps large blocks one by one and returns them when they are freed, until the first such free: then it raises the
//! size from which on it does so to that of the block, and keeps twice as much at the top of its heap (`M_MMAP_THRESHOLD`
//! in mallopt(3)). Where a pool serves NumPy, glibc sees none of the large blocks, and goes on mapping and returning those
//! of everybody else in the process: a program that joins tables with pandas took 59,000 page faults on the pool instead
//! of 26,000.

#![allow(unsafe_code)] // Safety: a block of the C library's is freed at once.

use firsttouch::os;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// glibc's initial threshold.
const INITIAL: usize = 128 << 10;
/// Its thresholds follow blocks up to this size (`DEFAULT_MMAP_THRESHOLD_MAX`, less the chunk's header and rounding).
const MOST: usize = (32 << 20) - (64 << 10);

/// The size that the thresholds were raised for; the largest where they are left alone.
static RAISED: AtomicUsize = AtomicUsize::new(MOST);

/// The largest size that was freed, of those that the thresholds follow.
static FREED: AtomicUsize = AtomicUsize::new(0);

/// Begins to raise the thresholds, if `malloc` is glibc's own. Another one would only keep the blocks, and glibc's would
/// fill them where `MALLOC_PERTURB_` is set.
pub fn prepare() {
    #[cfg(target_env = "gnu")]
    {
        use crate::numpy::c_api::library_of;
        let is_own = library_of(libc::malloc as *const _) == library_of(libc::gnu_get_libc_version as *const _);
        let tunables = std::env::var("GLIBC_TUNABLES").unwrap_or_default();
        let fills = std::env::var_os("MALLOC_PERTURB_").is_some() || tunables.contains("glibc.malloc.perturb");
        if is_own && !fills {
            RAISED.store(INITIAL, Relaxed);
        }
    }
}

/// Notes that a block was freed that glibc does not see: its thresholds wait for the free, too, so that a program whose
/// arrays live on keeps no more than plainly. They are raised later, as a free allocates nothing.
#[inline]
pub fn freed(size: usize) {
    if size <= MOST && size > FREED.load(Relaxed) {
        FREED.fetch_max(size, Relaxed);
    }
}

/// Raises glibc's thresholds to the largest block that was freed.
#[inline]
pub fn follow() {
    let size = FREED.load(Relaxed);
    if size > RAISED.load(Relaxed) {
        raise_to(size);
    }
}

/// In steps of a quarter at least: arrays that grow bit by bit would map and unmap a block each time.
///
/// Nothing is done where address space is limited, as glibc may keep the block at the top of its heap, and where memory is
/// locked, as the system then fills it with pages.
#[cold]
fn raise_to(size: usize) {
    let raised = RAISED.load(Relaxed);
    let size = size.max(raised + raised / 4).min(MOST);
    RAISED.fetch_max(size, Relaxed);
    if os::address_space_limit().is_some() || os::data_limit().is_some() || os::locks_memory() == Some(true) {
        return;
    }
    // SAFETY: nobody uses the block, if there is one; that it is freed raises the thresholds.
    unsafe { libc::free(std::hint::black_box(libc::malloc(size))) };
}
