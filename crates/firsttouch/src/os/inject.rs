//! For tests: makes calls of the contract fail.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering::Relaxed};

/// A call that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Call {
    /// Mapping memory.
    Map = 1,
    /// Unmapping memory.
    Unmap = 2,
    /// Discarding memory.
    Discard = 4,
    /// Asking for huge pages.
    AdviseHuge = 8,
    /// Starting a thread.
    Spawn = 16,
    /// Querying residency.
    Resident = 32,
    /// Changing access to pages.
    Protect = 64,
    /// Opening the page table.
    OpenPages = 1 << 20,
    /// Scanning it.
    ScanPages = 1 << 21,
    /// Reading its entries.
    ReadPages = 1 << 22,
    /// Querying the nodes of pages.
    NodesOfPages = 1 << 23,
    /// Telling that there is only one node.
    OnlyNode = 1 << 25,
}

static CALLS: AtomicU32 = AtomicU32::new(0);
static PASS: AtomicI64 = AtomicI64::new(0);
static FAIL: AtomicI64 = AtomicI64::new(0);

/// Lets `pass` of the given calls succeed, then makes `fail` of them fail. An empty list ends that. For tests only.
pub fn fail_after(calls: &[Call], pass: i64, fail: i64) {
    PASS.store(pass, Relaxed);
    FAIL.store(fail, Relaxed);
    CALLS.store(calls.iter().fold(0, |set, &call| set | call as u32), Relaxed);
}

static FIRST_RANGE: AtomicUsize = AtomicUsize::new(0);

/// From now on segments are claimed where an address space of 39 bits has room for them, or (`false`) of 47.
pub fn shrink_address_space(to_39_bits: bool) {
    FIRST_RANGE.store(to_39_bits.into(), Relaxed);
}

/// Returns the first range in which segments may be claimed.
pub fn first_range() -> usize {
    FIRST_RANGE.load(Relaxed)
}

/// Returns whether `call` must fail now.
#[inline]
pub fn injected(call: Call) -> bool {
    CALLS.load(Relaxed) & call as u32 != 0 && PASS.fetch_sub(1, Relaxed) <= 0 && FAIL.fetch_sub(1, Relaxed) > 0
}
