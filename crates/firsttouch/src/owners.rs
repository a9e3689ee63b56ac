//! The owner of the block at an address.
//!
//! A segment names its allocator. Blocks of adaptors and of scratch buffers lie in the segments of another allocator or in
//! none, and those of C libraries in none; these keepers list their blocks themselves, and are registered here as long as their
//! blocks may be freed through a handler. They are registered under their ground, the allocator at the bottom of their
//! stack, so that a lookup costs nothing more if no keeper stands on the memory at the address.

use crate::address_map;
use crate::address_map::Holder;
use crate::allocator::Allocator;
use crate::heap;
use crate::sync::lock::Lock;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The ground of memory outside segments.
const OUTSIDE: usize = 0;
/// The height of keepers on memory of unknown origin: lent storage, C functions, Python. That may be a block of any other
/// keeper, so these come first.
const ON_ANYTHING: usize = 1 << 16;
const PLACES: usize = 64;

/// The owner of a live block.
pub enum Owner {
    /// None of ours: the C library, or another library.
    Nobody,
    /// An allocator that no longer exists: the block stays (law 8).
    Gone,
    /// The allocator that its segment names.
    Segment(&'static dyn Allocator),
    /// A keeper: an allocator that answers [`Allocator::owns`].
    Keeper(Arc<dyn Allocator>),
}

/// Whether an allocator keeps a list of its blocks, as adaptors do.
pub fn keeps_list(allocator: &dyn Allocator) -> bool {
    allocator.owns(NonNull::dangling()).is_some()
}

fn thin<T: ?Sized>(pointer: *const T) -> usize {
    pointer.cast::<()>() as usize
}

/// The allocator at the bottom of a stack, as segments name it, and the height of the stack.
fn ground_of(allocator: &dyn Allocator) -> (usize, usize) {
    if let Some(upstream) = allocator.upstream() {
        let (ground, height) = ground_of(&**upstream);
        return (ground, height + 1);
    }
    let owns = keeps_list(allocator);
    match (allocator.in_segments(), owns) {
        (_, true) => (OUTSIDE, ON_ANYTHING),
        (true, _) => (thin(allocator), 1),
        (false, _) => (OUTSIDE, 1),
    }
}

fn is_same(one: &Arc<dyn Allocator>, other: &Arc<dyn Allocator>) -> bool {
    thin(Arc::as_ptr(one)) == thin(Arc::as_ptr(other))
}

#[derive(Clone)]
struct Entry {
    keeper: Arc<dyn Allocator>,
    ground: usize,
    /// If two keepers list an address, the higher one handed out the block, on memory from the lower one.
    height: usize,
}

/// Keepers by a hash of their ground. No keeper is called under the lock.
struct Place {
    count: AtomicUsize,
    entries: Lock<Vec<Option<Entry>>>,
}

static KEEPERS: [Place; PLACES] =
    [const { Place { count: AtomicUsize::new(0), entries: Lock::new(Vec::new()) } }; PLACES];

#[inline]
fn place(ground: usize) -> &'static Place {
    let hash = (ground as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &KEEPERS[(hash >> 58) as usize % PLACES]
}

impl Place {
    #[inline]
    fn is_empty(&self) -> bool {
        self.count.load(Acquire) == 0
    }

    /// The entry at a position; `None` behind the last.
    fn at(&self, position: usize) -> Option<Option<Entry>> {
        self.entries.lock().get(position).cloned()
    }

    /// From `position` on, the first keeper on `ground` of at least this height, the position behind it, and whether
    /// there are others.
    fn next(&self, position: usize, ground: usize, height: usize) -> Option<(Arc<dyn Allocator>, usize, usize, bool)> {
        let entries = self.entries.lock();
        let mut matching = entries.iter().enumerate().skip(position).filter_map(|(at, entry)| {
            entry.as_ref().filter(|entry| entry.ground == ground && entry.height >= height).map(|entry| (at, entry))
        });
        let (at, entry) = matching.next()?;
        Some((entry.keeper.clone(), entry.height, at + 1, matching.next().is_some()))
    }

    /// The highest keeper on `ground` that lists `address`, if it is at least as high as `best`.
    fn highest(
        &self,
        ground: usize,
        address: NonNull<u8>,
        mut best: Option<(Arc<dyn Allocator>, usize)>,
    ) -> Option<(Arc<dyn Allocator>, usize)> {
        if self.is_empty() {
            return best;
        }
        let mut from = 0;
        while let Some((keeper, height, behind, more)) = self.next(from, ground, best.as_ref().map_or(0, |best| best.1))
        {
            if keeper.owns(address) == Some(true) {
                best = Some((keeper, height));
            }
            if !more {
                break;
            }
            from = behind;
        }
        best
    }

    /// Drops the keepers that need not stay; returns how many.
    fn sweep(&self) -> usize {
        let positions = self.entries.lock().len();
        // Each is dropped here, under no lock.
        (0..positions).filter(|&position| self.take_idle(position).is_some()).count()
    }

    /// Removes the keeper at a position if it is referenced only here and has no live blocks.
    fn take_idle(&self, position: usize) -> Option<Entry> {
        let entry =
            self.at(position)?.filter(|entry| Arc::strong_count(&entry.keeper) == 2 && !entry.keeper.must_stay())?;
        let mut entries = self.entries.lock();
        let still = entries.get_mut(position)?;
        // The list's reference and ours: with another one, acquired meanwhile, it stays.
        let same = |there: &mut Entry| is_same(&there.keeper, &entry.keeper) && Arc::strong_count(&entry.keeper) == 2;
        let gone = still.take_if(same)?;
        self.count.fetch_sub(1, Release);
        Some(gone)
    }
}

/// Registers a keeper, until it is no longer referenced and [`sweep`] is called.
pub fn enter(keeper: Arc<dyn Allocator>) {
    let (ground, height) = ground_of(&*keeper);
    let place = place(ground);
    let mut entries = place.entries.lock();
    if entries.iter().flatten().any(|entry| is_same(&entry.keeper, &keeper)) {
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

/// Drops the keepers that are referenced only here and have no live blocks, and then those that they referenced.
pub fn sweep() {
    while KEEPERS.iter().filter(|place| place.count.load(Relaxed) > 0).map(Place::sweep).sum::<usize>() > 0 {}
}

/// The owner of the live block at `address`.
#[inline]
pub fn find(address: NonNull<u8>) -> Owner {
    let holder = address_map::holder(address.as_ptr() as usize);
    // Keepers on memory of unknown origin may stand on a segment, too.
    let ground = if let Holder::Allocator(owner) = holder { thin(owner) } else { OUTSIDE };
    if place(OUTSIDE).is_empty() && place(ground).is_empty() {
        return without_keepers(holder);
    }
    find_keeper(address, ground).map_or_else(|| without_keepers(holder), Owner::Keeper)
}

/// The keeper of the live block at `address`, on `ground` or on memory of unknown origin.
#[inline(never)]
fn find_keeper(address: NonNull<u8>, ground: usize) -> Option<Arc<dyn Allocator>> {
    let mut kept = place(OUTSIDE).highest(OUTSIDE, address, None);
    if ground != OUTSIDE {
        kept = place(ground).highest(ground, address, kept);
    }
    kept.map(|(keeper, _)| keeper)
}

#[inline]
fn without_keepers(holder: Holder) -> Owner {
    match holder {
        Holder::Allocator(owner) => Owner::Segment(owner),
        Holder::Gone => Owner::Gone,
        Holder::Nobody => Owner::Nobody,
    }
}

/// The allocator of [`Owner::Segment`], as a shared reference.
///
/// # Safety
/// If the memory is ours, a live block lies at `address`.
#[allow(unsafe_code)] // Safety: as above.
pub unsafe fn shared(address: NonNull<u8>) -> Option<Arc<dyn Allocator>> {
    // SAFETY: as above.
    unsafe { address_map::shared_owner(address.as_ptr() as usize) }
}

/// The usable size of a live block in a segment, whose allocator may be [gone](Owner::Gone); 0 if it is not known.
pub fn left_behind(address: NonNull<u8>) -> usize {
    heap::usable_at(address.as_ptr() as usize)
}

/// Takes all locks, around a fork.
pub(crate) fn hold() {
    KEEPERS.iter().for_each(|place| place.entries.hold());
}

/// Ends [`hold`].
///
/// # Safety
/// The locks are held by it.
#[allow(unsafe_code)] // Safety: as demanded.
pub(crate) unsafe fn release() {
    // SAFETY: as demanded.
    KEEPERS.iter().for_each(|place| unsafe { place.entries.release() });
}
