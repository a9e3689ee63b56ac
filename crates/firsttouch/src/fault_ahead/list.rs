//! The blocks that are helped: slots that are taken, and given up, without a lock, since frees do it.

use super::MIN;
use super::node;
use std::ops::Range;
use std::sync::atomic::{
    AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst,
};

/// Blocks that are helped at the same time; more go without.
pub(super) const ROOM: usize = 8;
/// The start of a slot that is being filled.
const CLAIMED: usize = 1;

struct Slot {
    /// The block's address; 0 where there is none.
    start: AtomicUsize,
    size: AtomicUsize,
    granule: AtomicUsize,
    node: AtomicUsize,
    number: AtomicU64,
}

static SLOTS: [Slot; ROOM] = [const {
    Slot {
        start: AtomicUsize::new(0),
        size: AtomicUsize::new(0),
        granule: AtomicUsize::new(0),
        node: AtomicUsize::new(node::ANY),
        number: AtomicU64::new(0),
    }
}; ROOM];
/// Slots that are not free.
static TAKEN: AtomicUsize = AtomicUsize::new(0);
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);
/// The address of the block that the thread works on.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// A block on the list.
pub(super) struct Entry {
    /// Different for each block, as several may have had one address.
    pub(super) number: u64,
    pub(super) range: Range<usize>,
    /// What is looked at together, in bytes.
    pub(super) granule: usize,
    /// Where its pages come from ([`node`]).
    pub(super) node: usize,
}

/// Adds a block; whether there was room.
pub(super) fn add(block: Range<usize>, granule: usize, node: usize) -> bool {
    let free = |slot: &&Slot| {
        slot.start.load(Relaxed) == 0 && slot.start.compare_exchange(0, CLAIMED, SeqCst, Relaxed).is_ok()
    };
    let Some(slot) = SLOTS.iter().find(free) else { return false };
    slot.size.store(block.len(), Release);
    slot.granule.store(granule, Release);
    slot.node.store(node, Release);
    // The last one: whoever reads it reads the others of this block, or of a later one.
    slot.number.store(LAST_NUMBER.fetch_add(1, Relaxed) + 1, Release);
    TAKEN.fetch_add(1, SeqCst);
    slot.start.store(block.start, SeqCst);
    true
}

/// Whether there is nothing to help.
pub(super) fn is_empty() -> bool {
    TAKEN.load(SeqCst) == 0
}

/// Takes a block off the list, if it is there. Nothing of it is populated afterwards.
#[inline]
pub(crate) fn forget(address: usize, size: usize) {
    if size >= MIN && !is_empty() {
        end(address);
    }
}

#[cold]
fn end(address: usize) {
    for slot in &SLOTS {
        remove(slot, address);
    }
    // The thread names the block before it looks whether the block is still on the list.
    while BUSY.load(SeqCst) == address {
        std::thread::yield_now();
    }
}

fn remove(slot: &Slot, address: usize) {
    if slot.start.load(Relaxed) == address && slot.start.compare_exchange(address, 0, SeqCst, Relaxed).is_ok() {
        TAKEN.fetch_sub(1, SeqCst);
    }
}

/// Empties the list in a forked child that no thread helps yet: the memory of its parent's blocks is shared with the parent,
/// and another thread may have been entering one.
pub(crate) fn restart() {
    for slot in &SLOTS {
        slot.start.store(0, SeqCst);
    }
    TAKEN.store(0, SeqCst);
}

/// The block in a slot. If another one takes the slot meanwhile, what was read may be of both; then [`work`], which saw
/// anything of the other, finds another start or number.
pub(super) fn entry(at: usize) -> Option<Entry> {
    let slot = &SLOTS[at];
    let start = slot.start.load(SeqCst);
    (start > CLAIMED).then(|| Entry {
        number: slot.number.load(Acquire),
        range: start..start + slot.size.load(Acquire),
        granule: slot.granule.load(Acquire),
        node: slot.node.load(Acquire),
    })
}

/// Works on the block in a slot, if it is still there: its owner waits meanwhile. It is taken off the list if nothing is left
/// to do, and so `work` returns `None`.
pub(super) fn work<T>(at: usize, entry: &Entry, work: impl FnOnce() -> Option<T>) -> Option<T> {
    let slot = &SLOTS[at];
    let start = entry.range.start;
    BUSY.store(start, SeqCst);
    let mut result = None;
    if slot.start.load(SeqCst) == start && slot.number.load(SeqCst) == entry.number {
        result = work();
        if result.is_none() {
            remove(slot, start);
        }
    }
    BUSY.store(0, SeqCst);
    result
}
