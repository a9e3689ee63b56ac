//! For tests: a system that fails, as any call of the contract can be made to, and a machine with several nodes.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering::Relaxed};

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

static SLOTS: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Lets segments claim no more than so many slots of the address space from now on; without any they lie among everybody's
/// memory, as in an address space of 39 bits. For tests only.
pub fn shrink_slots(count: usize) {
    SLOTS.store(count, Relaxed);
}

/// The most slots that may be claimed.
pub fn claimable_slots() -> usize {
    SLOTS.load(Relaxed)
}

/// Whether `call` is to fail now.
#[inline]
pub fn injected(call: Call) -> bool {
    CALLS.load(Relaxed) & call as u32 != 0 && PASS.fetch_sub(1, Relaxed) <= 0 && FAIL.fetch_sub(1, Relaxed) > 0
}

/// Several nodes on a machine that has one: each processor is on another of them, by turns.
#[derive(Clone, Copy, Debug)]
pub struct Pretence {
    /// How many.
    pub nodes: usize,
    /// The node of a page that is there, by its address.
    pub node_of: fn(usize) -> usize,
}

thread_local! {
    static PRETENCE: Cell<Option<Pretence>> = const { Cell::new(None) };
    static PROCESSOR: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Lets `body` make allocators that see several nodes, then and later. For tests only.
pub fn pretend<T>(pretence: Pretence, body: impl FnOnce() -> T) -> T {
    let before = PRETENCE.replace(Some(pretence));
    let made = body();
    PRETENCE.set(before);
    made
}

/// What is pretended in this thread.
pub fn pretence() -> Option<Pretence> {
    PRETENCE.get()
}

/// Lets this thread run on `processor` for such allocators.
pub fn pretend_on(processor: Option<usize>) {
    PROCESSOR.set(processor);
}

/// The processor that such allocators see.
pub fn pretended_processor() -> usize {
    #[cfg(shuttle)]
    return shuttle::rand::Rng::gen_range(&mut shuttle::rand::thread_rng(), 0..2); // the model checker tries them all
    #[cfg(not(shuttle))]
    PROCESSOR.get().unwrap_or_else(super::current_processor)
}
