//! A failing operating system, for tests: any call of the contract can be made to fail.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::Relaxed};

/// A call that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Call {
    /// Opening memory.
    Map = 1,
    /// Closing memory.
    Unmap = 2,
    /// Emptying memory.
    Discard = 4,
    /// Asking for huge pages.
    AdviseHuge = 8,
    /// Starting the helper thread.
    Spawn = 16,
    /// Looking at residency.
    Resident = 32,
    /// Making pages inaccessible, or accessible again.
    Protect = 64,
    /// Opening the table of this process's pages.
    OpenPages = 1 << 20,
    /// Scanning it for states.
    ScanPages = 1 << 21,
    /// Reading its entries.
    ReadPages = 1 << 22,
    /// Asking for the nodes of pages.
    NodesOfPages = 1 << 23,
    /// Reading what the kernel tells of mappings in words.
    ReadMappings = 1 << 24,
    /// Knowing that there is one node only.
    OnlyNode = 1 << 25,
    /// Telling the huge zero page in a scan, as kernels before 6.16 fail to.
    ScanHugeZero = 1 << 26,
}

static CALLS: AtomicU32 = AtomicU32::new(0);
static PASS: AtomicI64 = AtomicI64::new(0);
static FAIL: AtomicI64 = AtomicI64::new(0);

/// Lets `pass` of the named calls pass and fails the next `fail`; an empty list ends it. For tests only.
pub fn fail_after(calls: &[Call], pass: i64, fail: i64) {
    PASS.store(pass, Relaxed);
    FAIL.store(fail, Relaxed);
    CALLS.store(calls.iter().fold(0, |set, &call| set | call as u32), Relaxed);
}

/// Whether `call` is to fail now.
#[inline]
pub fn injected(call: Call) -> bool {
    CALLS.load(Relaxed) & call as u32 != 0 && PASS.fetch_sub(1, Relaxed) <= 0 && FAIL.fetch_sub(1, Relaxed) > 0
}
