//! What other copies of the core in this process use of the pool: see `sources/preloaded.rs` there.

use crate::large;
use crate::{forking, idle, report};
use firsttouch::adaptors::Pool;
use firsttouch::sources::Table;
use firsttouch::{Allocator, Stats};
use std::ptr::{NonNull, null, null_mut};

static TABLE: Table = Table { allocate, resize_in_place, trim, stats, leave_report: report::leave };

/// The table; null where this library stands aside.
#[unsafe(no_mangle)]
pub extern "C" fn firsttouch_preload_table_v1() -> *const Table {
    if large::pool().is_some() { &raw const TABLE } else { null() }
}

/// Who asks by the table allocates arrays, and has a background purger.
extern "C" fn allocate(size: usize, align: usize, zeroed: bool) -> *mut u8 {
    idle::allow_thread();
    large::allocate_by(Pool::allocate_array, size, align, zeroed).map_or(null_mut(), |address| address.cast())
}

unsafe extern "C" fn resize_in_place(block: *mut u8, size: usize) -> bool {
    let Some((pool, block)) = large::pool().zip(NonNull::new(block)) else { return false };
    if forking::is_forking() || !pool.is_block(block) {
        return false;
    }
    // SAFETY: a live block of the pool's, as `sources/preloaded.rs` of the Python module's copy passes it on.
    large::in_pool(|| unsafe { pool.resize_in_place(block, size) }) == Some(true)
}

extern "C" fn trim() -> usize {
    if forking::is_forking() { 0 } else { large::trim() }
}

unsafe extern "C" fn stats(to: *mut Stats, size: usize) {
    let stats = large::pool().and_then(|pool| large::in_pool(|| pool.stats())).unwrap_or_default();
    // SAFETY: the caller has room for `size` bytes.
    unsafe { to.cast::<u8>().copy_from_nonoverlapping((&raw const stats).cast(), size.min(size_of::<Stats>())) };
}
