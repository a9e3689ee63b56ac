//! Claims of address space, and the segments that are built on them.
//!
//! A claim maps almost nothing: it takes empty slots of the address map, and later each extent is mapped at its exact address. So
//! a segment can grow contiguously, and unused address space costs nothing (RLIMIT_AS, overcommit).
//!
//! The memory of a segment's records and ages is mapped as its top rises.

use crate::address_map::{self, SLOT_SHIFT};
use crate::allocator::Allocator;
use crate::heap::segment::{Body, CLASSES, NONE, Number, PageKind, Record, Segment};
use crate::os::{self, Errno};
use crate::sync::lock::Lock;
use std::cell::Cell;
use std::ops::RangeInclusive;
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::AtomicBool;

/// Where segments are claimed.
struct Place {
    /// The first slot and the one behind the last.
    slots: (usize, usize),
    /// The slots of a claim, if its first request needs no more.
    claim: usize,
}

impl Place {
    const fn new(from: usize, to: usize, claim: usize) -> Self {
        Self { slots: (from >> SLOT_SHIFT, to >> SLOT_SHIFT), claim: claim >> SLOT_SHIFT }
    }
}

const GIB: usize = 1 << 30;
const TIB: usize = 1 << 40;

/// From 16 TiB to 32 TiB, below whatever Linux places by itself: there mappings begin at 42 TiB on x86-64 and 32 TiB on arm64, if
/// the stack size is unlimited. ThreadSanitizer has its shadow there, and leaves programs the first 2 TiB. And where addresses
/// have 39 bits (on small arm64 and RISC-V machines, or under Valgrind), up to the first quarter.
const PLACES: [Place; 2] = [
    if cfg!(tsan) { Place::new(TIB, 2 * TIB, 16 * GIB) } else { Place::new(16 * TIB, 32 * TIB, 16 * GIB) },
    Place::new(16 * GIB, 128 * GIB, GIB),
];

/// The number of claims that are tried in a place.
const TRIES: usize = 4;
/// Indices of units fit 31 bits of a record.
const MAX_UNITS: usize = (1 << 31) - 1;
/// Bytes of records and ages that are mapped at a time.
const STEP: usize = 64 << 10;

/// The next slot to try. Who changes claims holds it.
pub(crate) static NEXT_SLOT: Lock<usize> = Lock::new(0);

/// All segments of the process, open or closed.
static SEGMENTS: [Segment; 512] = [const { Segment::closed() }; 512];

/// Claims adjacent slots with room for `bytes` and maps their first page, which shows whether the kernel grants such addresses.
fn claim(next: &mut usize, bytes: usize) -> Result<(usize, usize), Errno> {
    let mut refused = Errno::NO_MEMORY;
    for place in &PLACES[os::first_place()..] {
        let count = bytes.div_ceil(1 << SLOT_SHIFT).max(place.claim);
        let Some(last) = place.slots.1.checked_sub(count) else { continue };
        for _ in 0..TRIES {
            let Some(first) = empty_slots(next, place.slots.0..=last, count) else { break };
            let (base, size) = (first << SLOT_SHIFT, count << SLOT_SHIFT);
            if os::reserve(base, size).is_err() {
                continue;
            }
            match os::commit(base, os::page_size()) {
                Ok(_) => return Ok((base, size)),
                Err(Errno::EXISTS) => {}
                Err(error) => refused = error,
            }
            // SAFETY: it was just reserved, and nothing is committed in it.
            unsafe { os::release(base) };
        }
    }
    Err(refused)
}

/// The first of `count` empty slots that begin in a range.
fn empty_slots(next: &mut usize, range: RangeInclusive<usize>, count: usize) -> Option<usize> {
    let (first, last) = (*range.start(), *range.end());
    if range.is_empty() {
        return None;
    }
    if !range.contains(next) {
        *next = first + u128::from_ne_bytes(os::random()) as usize % (last + 1 - first);
    }
    for _ in range {
        let slot = *next;
        *next = if slot == last { first } else { slot + 1 };
        if address_map::is_empty(slot, count) {
            return Some(slot);
        }
    }
    None
}

/// A new segment with room for at least `min_units` units, its first unit at a multiple of the page.
pub(crate) fn segment(
    kind: PageKind,
    node: u8,
    min_units: u32,
    owner: *const dyn Allocator,
) -> Result<&'static Segment, Errno> {
    let (unit_shift, align) = (kind.unit_shift(), kind.page().max(STEP));
    let mut next = NEXT_SLOT.lock();
    let segment = SEGMENTS.iter().find(|segment| segment.is_closed()).ok_or(Errno::NO_MEMORY)?;
    let needed = (min_units as usize) << unit_shift;
    let (base, size) = claim(&mut next, needed + needed / 64 + 2 * align)?; // records take less than a 200th
    let most = size >> unit_shift;
    let ages = (base + most * size_of::<Record>()).next_multiple_of(STEP);
    let units = (ages + most).next_multiple_of(align);
    let capacity = ((base + size - units) >> unit_shift).min(MAX_UNITS);
    let body = Body {
        kind,
        unit_shift,
        node,
        owner,
        is_orphan: AtomicBool::new(false),
        claim: (base, size),
        records_open: Cell::new(os::page_size()),
        ages_open: Cell::new(0),
        records: with_exposed_provenance_mut(base),
        ages: with_exposed_provenance_mut(ages),
        top: Number::new(0),
        heads: [const { [const { Number::new(NONE) }; CLASSES] }; 2],
    };
    // SAFETY: it is closed, and who opens one holds the lock; the slots were empty.
    unsafe { segment.open(units, capacity << unit_shift, body) };
    address_map::set_slots((base, size), Some(segment));
    Ok(segment)
}

/// Closes a segment without live blocks: unmaps what was mapped, and nothing else. Before that, lookups no longer find it:
/// foreign memory can be mapped there then.
///
/// # Safety
/// Nothing in the segment is in use, and its heap is about to be dropped.
pub(crate) unsafe fn close(segment: &Segment) {
    let (base, size) = segment.claim;
    let mut next = NEXT_SLOT.lock();
    address_map::set_slots((base, size), None);
    *next = base >> SLOT_SHIFT;
    // SAFETY: nothing in the segment is in use (`Heap::close`); units with an age, records and ages were mapped by us.
    unsafe {
        segment.each_run(0, segment.top.get(), |start, len, is_mapped| {
            if is_mapped {
                let _ = os::decommit(segment.address(start), segment.bytes(len));
            }
        });
        let _ = os::decommit(segment.ages as usize, segment.ages_open.get());
        let _ = os::decommit(segment.records as usize, segment.records_open.get());
        os::release(base);
    }
    segment.close();
}

/// Maps what the records of all units below `top` need. The caller holds the heap's lock.
pub(crate) fn open_records(segment: &Segment, top: u32) -> Result<(), Errno> {
    open_array(segment.records as usize, &segment.records_open, top as usize * size_of::<Record>())?;
    open_array(segment.ages as usize, &segment.ages_open, top as usize)
}

/// Maps the first `need` bytes of an array, of which `open` are mapped.
fn open_array(start: usize, open: &Cell<usize>, need: usize) -> Result<(), Errno> {
    if need <= open.get() {
        return Ok(());
    }
    let open_to = |to: usize| os::commit(start + open.get(), to - open.get()).map(|_| open.set(to));
    open_to(need.next_multiple_of(STEP)).or_else(|_| open_to(need.next_multiple_of(os::page_size())))
}
