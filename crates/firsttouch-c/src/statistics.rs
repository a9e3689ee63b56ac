//! Statistics, and giving idle memory back.

use crate::allocator::{Handle, behind};
use crate::error::{Status, protect};
use crate::options::{self, Versioned};

/// `firsttouch_stats`: the fields of the core's [`firsttouch::Stats`], each 64 bits.
#[repr(C)]
#[derive(Clone, Copy)]
struct Stats {
    struct_size: usize,
    in_use: u64,
    active: u64,
    idle: u64,
    mapped: u64,
    retained: u64,
    peak_in_use: u64,
    peak_active: u64,
    peak_held: u64,
    blocks: u64,
    allocations: u64,
    recycled: u64,
    allocated_bytes: u64,
    recycled_bytes: u64,
    first_touched_small_bytes: u64,
    first_touched_huge_bytes: u64,
    purged_bytes: u64,
    failures: u64,
    refaulted_bytes: u64,
}

// SAFETY: numbers, the size first.
unsafe impl Versioned for Stats {
    const NAME: &'static str = "firsttouch_stats";
    const INITIALIZER: &'static str = "FIRSTTOUCH_INIT(firsttouch_stats)";
    const LEAST: usize = 144;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_get_stats(handle: *const Handle, out: *mut Stats) -> Status {
    protect(Status::Internal, || {
        // SAFETY: null or a living handle, and a structure (header).
        unsafe {
            let stats = behind(handle).stats();
            let stats = Stats {
                struct_size: 0,
                in_use: stats.in_use as u64,
                active: stats.active as u64,
                idle: stats.idle as u64,
                mapped: stats.mapped as u64,
                retained: stats.retained as u64,
                peak_in_use: stats.peak_in_use as u64,
                peak_active: stats.peak_active as u64,
                peak_held: stats.peak_held as u64,
                blocks: stats.blocks as u64,
                allocations: stats.allocations,
                recycled: stats.recycled,
                allocated_bytes: stats.allocated_bytes,
                recycled_bytes: stats.recycled_bytes,
                first_touched_small_bytes: stats.first_touched_small_bytes,
                first_touched_huge_bytes: stats.first_touched_huge_bytes,
                purged_bytes: stats.purged_bytes,
                failures: stats.failures,
                refaulted_bytes: stats.refaulted_bytes,
            };
            options::write(out, &stats).err().unwrap_or(Status::Ok)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_trim(handle: *const Handle) -> usize {
    // SAFETY: null or a living handle (header).
    protect(0, || unsafe { behind(handle).trim() })
}
