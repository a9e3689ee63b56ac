//! The owner of the block at an address.
//!
//! A segment names its allocator. Blocks of adaptors and of scratch buffers lie in the memory of another allocator, and those of C
//! libraries in no segment; these keepers list their blocks themselves, and are registered here as long as their blocks may be
//! freed through a handler. Their blocks in a segment are marked there, so that the owners of others are found without asking a
//! keeper.

#![allow(unsafe_code)] // Safety: callers keep the owner of a block until they are done with it.

use crate::allocator::Allocator;
use crate::sync::lock::Lock;
use crate::{address_map, heap};
use std::cmp::Reverse;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Release};

/// The owner of a live block.
pub enum Owner {
    /// None of ours: the C library, or another library.
    Nobody,
    /// An allocator that no longer exists: the block stays (law 8).
    Gone,
    /// The allocator that its segment names, which lives as long as the block.
    Segment(*const dyn Allocator),
    /// A keeper: an allocator that has a list ([`Allocator::list`]).
    Keeper(Arc<dyn Allocator>),
}

/// The owner of the live block at `address`.
#[inline]
pub fn find(address: NonNull<u8>) -> Owner {
    let keeper = if may_be_listed(address) { find_keeper(address) } else { None };
    keeper.map_or_else(|| of_segment(address), Owner::Keeper)
}

/// The same, where one of many keepers is likely: asking each takes time.
#[inline]
pub fn find_likely(address: NonNull<u8>, likely: &Arc<dyn Allocator>) -> Owner {
    if is_highest(&**likely) && likely.list().is_some_and(|list| list.contains(address)) {
        return Owner::Keeper(likely.clone());
    }
    find(address)
}

/// The owner of a live block that no keeper lists.
#[inline]
pub fn of_segment(address: NonNull<u8>) -> Owner {
    match address_map::find(address.as_ptr() as usize) {
        Some((segment, _)) => segment.owner_pointer().map_or(Owner::Gone, Owner::Segment),
        None => Owner::Nobody,
    }
}

/// The owner of the live block at `address` as a shared reference, if it exists. (Every owner of a segment lives in an [`Arc`].)
///
/// # Safety
/// If the memory is ours, a live block begins at `address`.
pub unsafe fn shared(address: NonNull<u8>) -> Option<Arc<dyn Allocator>> {
    match find(address) {
        Owner::Keeper(owner) => Some(owner),
        // SAFETY: the owner outlives its live block, and came from an Arc.
        Owner::Segment(owner) => unsafe {
            Arc::increment_strong_count(owner);
            Some(Arc::from_raw(owner))
        },
        Owner::Gone | Owner::Nobody => None,
    }
}

/// Whether a keeper may list the block at `address`: it is marked in its segment, or lies in none.
#[inline]
pub fn may_be_listed(address: NonNull<u8>) -> bool {
    HIGHEST.load(Acquire) > 0
        && heap::block_at(address.as_ptr() as usize).is_none_or(|(_, occupant)| occupant.is_listed())
}

#[inline(never)]
fn find_keeper(address: NonNull<u8>) -> Option<Arc<dyn Allocator>> {
    let mut behind = None;
    loop {
        let (rank, keeper) = next(behind, false)?;
        if keeper.list().is_some_and(|list| list.contains(address)) {
            return Some(keeper);
        }
        behind = Some(rank);
    }
}

/// Whether a keeper on lent memory ([`Allocator::is_lent`]) has a block that begins at `address`.
pub fn is_lent(address: NonNull<u8>) -> bool {
    find_keeper(address).is_some_and(|keeper| height(&*keeper) >= ON_ANYTHING)
}

/// The requested bytes of a live block in a segment; 0 if none begins at `address`, which may be any.
pub fn asked(address: NonNull<u8>) -> usize {
    heap::block_at(address.as_ptr() as usize).map_or(0, |(_, occupant)| occupant.asked())
}

// ---- The registry of keepers

/// The height of keepers whose memory is lent. It may be part of a block of any other keeper, so these are asked first.
const ON_ANYTHING: usize = 1 << 16;

/// The height of a stack: of two keepers that list an address, the higher one handed out the block, on memory from the lower.
fn height(allocator: &dyn Allocator) -> usize {
    match allocator.upstream() {
        Some(upstream) => height(&**upstream) + 1,
        None if allocator.is_lent() => ON_ANYTHING,
        None => 1,
    }
}

/// The order in which keepers are asked: the highest first, at one height in the order of registration. The second number is never
/// used again, so that a walk from rank to rank misses none while others come and go.
type Rank = (Reverse<usize>, u64);

pub(crate) struct Keepers {
    /// By rank.
    all: Vec<(Rank, Arc<dyn Allocator>)>,
    last: u64,
}

/// No keeper is called under the lock.
pub(crate) static KEEPERS: Lock<Keepers> = Lock::new(Keepers { all: Vec::new(), last: 0 });
/// The height of the highest keeper; 0 if there is none.
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

impl Keepers {
    fn publish(&self) {
        HIGHEST.store(self.all.first().map_or(0, |((height, _), _)| height.0), Release);
    }
}

/// The first keeper behind a rank, of all or of those that are referenced only here.
fn next(behind: Option<Rank>, unreferenced: bool) -> Option<(Rank, Arc<dyn Allocator>)> {
    let keepers = KEEPERS.lock();
    let at = keepers.all.partition_point(|(rank, _)| Some(*rank) <= behind);
    keepers.all[at..].iter().find(|(_, keeper)| !unreferenced || Arc::strong_count(keeper) == 1).cloned()
}

/// Registers a keeper, until it is no longer referenced and [`sweep`] is called.
pub fn enter(keeper: Arc<dyn Allocator>) {
    let height = Reverse(height(&*keeper));
    let mut keepers = KEEPERS.lock();
    if !keepers.all.iter().any(|(_, other)| Arc::ptr_eq(other, &keeper)) {
        keepers.last += 1;
        let rank = (height, keepers.last);
        let at = keepers.all.partition_point(|(other, _)| *other < rank);
        keepers.all.insert(at, (rank, keeper.clone()));
        keepers.publish();
    }
}

/// Removes a keeper if it is referenced only here and by the caller; returns whether it was.
fn leave(rank: Rank, keeper: &Arc<dyn Allocator>) -> bool {
    let mut keepers = KEEPERS.lock();
    let found = keepers.all.iter().position(|(other, _)| *other == rank);
    let Some(at) = found.filter(|_| Arc::strong_count(keeper) == 2) else { return false };
    keepers.all.remove(at);
    keepers.publish();
    true
}

/// Whether no keeper is asked before this one: what it lists is its own, and in no memory that it gave to another.
pub fn is_highest(keeper: &dyn Allocator) -> bool {
    height(keeper) >= HIGHEST.load(Acquire)
}

/// Drops the keepers that are referenced only here and have no live blocks, and then those that they referenced.
pub fn sweep() {
    while HIGHEST.load(Acquire) > 0 {
        let (mut behind, mut any) = (None, false);
        while let Some((rank, keeper)) = next(behind, true) {
            behind = Some(rank);
            // The last reference goes at the end of this turn, under no lock.
            any |= keeper.list().is_none_or(|list| list.is_empty()) && leave(rank, &keeper);
        }
        if !any {
            break;
        }
    }
}
