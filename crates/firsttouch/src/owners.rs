//! Whose block lies at an address, whoever asks.
//!
//! A segment names the allocator that took it. Blocks of adaptors, of scratch buffers and of C functions lie in somebody
//! else's segments or in none; these keepers know them by lists of their own, and enter here for as long as anybody may
//! free through a handler what they gave. They are asked by the ground that they stand on, so that an address costs
//! nothing more where no keeper stands on its memory.

use crate::allocator::Allocator;
use crate::heap::purger::{self, Purgeable};
use crate::scratch::{Backing, Scope};
use crate::sync::lock::Lock;
use crate::vm::address_map::{self, Holder};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Once};

/// The ground of memory that lies in no segment.
const OUTSIDE: usize = 0;
/// The height of what has its memory from somebody who is not known: storage that was lent, C functions, Python. That may
/// be a block of any other keeper, so it is higher than all of those.
const ON_ANYTHING: usize = 1 << 16;
const PLACES: usize = 64;

/// Who knows its blocks by a list.
#[derive(Clone)]
pub enum Keeper {
    /// An allocator that answers [`Allocator::owns`].
    Allocator(Arc<dyn Allocator>),
    /// A scratch buffer.
    Backing(Arc<dyn Backing>),
}

/// Whose a live block is.
pub enum Owner {
    /// None of ours: the C library's, or another library's.
    Nobody,
    /// An allocator's that is gone: it stays where it is (law 8).
    Gone,
    /// The allocator's that its segment names.
    Segment(&'static dyn Allocator),
    /// A keeper's.
    Keeper(Keeper),
}

fn thin<T: ?Sized>(pointer: *const T) -> usize {
    pointer.cast::<()>() as usize
}

/// What an allocator stands on.
fn below(allocator: &dyn Allocator) -> Option<Arc<dyn Allocator>> {
    let any: &dyn Any = allocator;
    match any.downcast_ref::<Scope>() {
        Some(scope) => scope.backing().upstream(),
        None => allocator.upstream().cloned(),
    }
}

/// The allocator at the bottom of a stack, as segments name it, and how high the stack is.
fn ground_of(allocator: &dyn Allocator) -> (usize, usize) {
    if let Some(upstream) = below(allocator) {
        let (ground, height) = ground_of(&*upstream);
        return (ground, height + 1);
    }
    let owns = allocator.owns(NonNull::dangling()).is_some();
    match (allocator.in_segments(), owns) {
        (_, true) => (OUTSIDE, ON_ANYTHING),
        (true, _) => (thin(allocator), 1),
        (false, _) => (OUTSIDE, 1),
    }
}

impl Keeper {
    fn ground(&self) -> (usize, usize) {
        match self {
            Self::Allocator(allocator) => ground_of(&**allocator),
            Self::Backing(backing) => backing.upstream().map_or((OUTSIDE, ON_ANYTHING), |upstream| {
                let (ground, height) = ground_of(&*upstream);
                (ground, height + 1)
            }),
        }
    }

    fn owns(&self, address: NonNull<u8>) -> bool {
        match self {
            Self::Allocator(allocator) => allocator.owns(address) == Some(true),
            Self::Backing(backing) => backing.usable_size(address).is_some(),
        }
    }

    /// Whether blocks of it live that nobody else could take back.
    fn has_living(&self) -> bool {
        match self {
            Self::Allocator(allocator) => allocator.must_stay(),
            Self::Backing(backing) => backing.used() > 0,
        }
    }

    fn holders(&self) -> usize {
        match self {
            Self::Allocator(allocator) => Arc::strong_count(allocator),
            Self::Backing(backing) => Arc::strong_count(backing),
        }
    }

    fn address(&self) -> usize {
        match self {
            Self::Allocator(allocator) => thin(Arc::as_ptr(allocator)),
            Self::Backing(backing) => thin(Arc::as_ptr(backing)),
        }
    }
}

#[derive(Clone)]
struct Entry {
    keeper: Keeper,
    ground: usize,
    /// Of keepers that both know an address the higher one gave the block out, on memory that it has from the lower.
    height: usize,
}

/// Keepers by a hash of their ground. Nobody is called under the lock.
struct Place {
    count: AtomicUsize,
    entries: Lock<Vec<Option<Entry>>>,
}

static KEEPERS: [Place; PLACES] =
    [const { Place { count: AtomicUsize::new(0), entries: Lock::new(Vec::new()) } }; PLACES];

fn place(ground: usize) -> &'static Place {
    let hash = (ground as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &KEEPERS[(hash >> 58) as usize % PLACES]
}

impl Place {
    /// What stands at a position: nothing behind the last.
    fn at(&self, position: usize) -> Option<Option<Entry>> {
        self.entries.lock().get(position).cloned()
    }

    /// From `position` on the first keeper on `ground` of at least this height, where to go on behind it, and whether
    /// any other stands there.
    fn next(&self, position: usize, ground: usize, height: usize) -> Option<(Keeper, usize, usize, bool)> {
        let entries = self.entries.lock();
        let mut matching = entries.iter().enumerate().skip(position).filter_map(|(at, entry)| {
            entry.as_ref().filter(|entry| entry.ground == ground && entry.height >= height).map(|entry| (at, entry))
        });
        let (at, entry) = matching.next()?;
        Some((entry.keeper.clone(), entry.height, at + 1, matching.next().is_some()))
    }

    /// The highest keeper on `ground` that knows `address`, if it is at least as high as `best`.
    fn highest(
        &self,
        ground: usize,
        address: NonNull<u8>,
        mut best: Option<(Keeper, usize)>,
    ) -> Option<(Keeper, usize)> {
        if self.count.load(Acquire) == 0 {
            return best;
        }
        let mut from = 0;
        while let Some((keeper, height, behind, more)) = self.next(from, ground, best.as_ref().map_or(0, |best| best.1))
        {
            if keeper.owns(address) {
                best = Some((keeper, height));
            }
            if !more {
                break;
            }
            from = behind;
        }
        best
    }

    /// Takes out the keeper at a position if nobody else holds it and nothing of it lives.
    fn take_idle(&self, position: usize) -> Option<Entry> {
        let entry = self.at(position)?.filter(|entry| entry.keeper.holders() == 2 && !entry.keeper.has_living())?;
        let mut entries = self.entries.lock();
        let still = entries.get_mut(position)?;
        // The list's and ours: whoever else came meanwhile keeps it here.
        let same = |there: &mut Entry| there.keeper.address() == entry.keeper.address() && entry.keeper.holders() == 2;
        let gone = still.take_if(same)?;
        self.count.fetch_sub(1, Release);
        Some(gone)
    }
}

/// Lets blocks of a keeper be found, until nobody holds it and [`sweep`] is called.
pub fn enter(keeper: Keeper) {
    static FORKS: Once = Once::new();
    FORKS.call_once(|| purger::enter_static(&Forks));
    let (ground, height) = keeper.ground();
    let place = place(ground);
    let mut entries = place.entries.lock();
    if entries.iter().flatten().any(|entry| entry.keeper.address() == keeper.address()) {
        drop(entries);
        return;
    }
    let entry = Some(Entry { keeper, ground, height });
    match entries.iter_mut().find(|entry| entry.is_none()) {
        Some(free) => *free = entry,
        None => entries.push(entry),
    }
    place.count.fetch_add(1, Release);
}

/// Drops the keepers that nobody else holds and nothing lives of.
pub fn sweep() {
    for place in KEEPERS.iter().filter(|place| place.count.load(Relaxed) > 0) {
        let positions = place.entries.lock().len();
        for position in 0..positions {
            drop(place.take_idle(position)); // its end runs here, under no lock
        }
    }
}

/// Whose the live block at `address` is.
#[inline]
pub fn find(address: NonNull<u8>) -> Owner {
    let holder = address_map::holder(address.as_ptr() as usize);
    // Who stands on anything may stand on a segment, too.
    let mut kept = place(OUTSIDE).highest(OUTSIDE, address, None);
    if let Holder::Allocator(owner) = holder {
        let ground = thin(owner);
        kept = place(ground).highest(ground, address, kept);
    }
    match (kept.map(|(keeper, _)| keeper), holder) {
        (Some(keeper), _) => Owner::Keeper(keeper),
        (None, Holder::Allocator(owner)) => Owner::Segment(owner),
        (None, Holder::Gone) => Owner::Gone,
        (None, Holder::Nobody) => Owner::Nobody,
    }
}

/// The locks around forks.
struct Forks;

#[allow(unsafe_code)] // Safety: a lock is released where it was held.
impl Purgeable for Forks {
    fn hold(&self) {
        KEEPERS.iter().for_each(|place| place.entries.hold());
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` took them all.
        KEEPERS.iter().for_each(|place| unsafe { place.entries.release() });
    }
}
