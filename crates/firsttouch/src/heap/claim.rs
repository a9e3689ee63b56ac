//! Claims of address space, and the segments that are built on them.
//!
//! A claim maps its header and nothing else: it takes empty slots of the address map, and later each extent is mapped at its
//! exact address. So a segment can grow contiguously, and unused address space costs nothing (RLIMIT_AS, overcommit). A segment
//! that is closed keeps its slots and its header, which lookups may read, for the next one.
//!
//! The memory of a segment's records and ages is mapped as its top rises.

use crate::address_map::{self, SLOT_SHIFT};
use crate::allocator::Allocator;
use crate::heap::segment::{Body, CLASSES, NO_UNIT, Record, RegionKind, Segment, SharedU32};
use crate::os::{self, Errno};
use crate::sync::lock::Lock;
use std::cell::Cell;
use std::ptr::{from_ref, with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::atomic::AtomicBool;

const GIB: usize = 1 << 30;
const TIB: usize = 1 << 40;

/// Where segments are claimed. From 16 TiB to 32 TiB, below whatever Linux places by itself: there mappings begin at 42 TiB on
/// x86-64 and 32 TiB on arm64, if the stack size is unlimited. ThreadSanitizer has its shadow there, and leaves programs the first
/// 2 TiB. And where addresses have 39 bits (on small arm64 and RISC-V machines, or under Valgrind), up to the first quarter.
pub const RANGES: [(usize, usize); 2] =
    [if cfg!(tsan) { (TIB, 2 * TIB) } else { (16 * TIB, 32 * TIB) }, (16 * GIB, 128 * GIB)];

/// The number of claims that are tried in a range.
const TRIES: usize = 4;
/// Indices of units fit 31 bits of a record.
const MAX_UNITS: usize = (1 << 31) - 1;
/// Bytes of records and ages that are mapped at a time.
const RECORDS_STEP: usize = 64 << 10;

/// The slot in each range that is tried first, chosen by chance; zero before that. Held while claims change.
pub(crate) static FIRST_SLOTS: Lock<[usize; 2]> = Lock::new([0; 2]);

/// Bytes that are mapped for a header.
fn header_size() -> usize {
    size_of::<Segment>().next_multiple_of(os::page_size())
}

/// Claims adjacent slots with room for `bytes`: those of a closed segment, or empty ones. Mapping the header shows whether
/// the kernel grants such addresses. Returns the segment, which is closed, and the size of the claim.
fn claim(first_slots: &mut [usize; 2], bytes: usize) -> Result<(&'static Segment, usize), Errno> {
    let count = bytes.div_ceil(1 << SLOT_SHIFT);
    let is_free = |slot: usize| match address_map::segment_at(slot) {
        Some(segment) => segment.is_closed() && segment.claim.get() >= count << SLOT_SHIFT,
        None => address_map::is_empty(slot, count),
    };
    let mut refused = Errno::NO_SLOT;
    for (first, range) in first_slots.iter_mut().zip(RANGES).skip(os::first_range()) {
        let (from, to) = (range.0 >> SLOT_SHIFT, range.1 >> SLOT_SHIFT);
        if *first == 0 {
            *first = from + u128::from_ne_bytes(os::random().unwrap_or_default()) as usize % (to - from);
        }
        let slots = (*first..to).chain(from..*first);
        for slot in slots.filter(|&slot| slot + count <= to && is_free(slot)).take(TRIES) {
            if let Some(closed) = address_map::segment_at(slot) {
                return Ok((closed, closed.claim.get()));
            }
            let (base, size) = (slot << SLOT_SHIFT, count << SLOT_SHIFT);
            let mapped = os::reserve(base, size).and_then(|()| {
                // SAFETY: it was just reserved, and nothing is committed in it.
                os::commit(base, header_size()).inspect_err(|_| unsafe { os::release(base) })
            });
            match mapped {
                // SAFETY: it was just mapped, reads zero, as a closed segment does, and is never unmapped.
                Ok(_) => return Ok((unsafe { &*with_exposed_provenance(base) }, size)),
                Err(Errno::EXISTS) => *first = slot + 1, // somebody else is there
                Err(error) => refused = error,
            }
        }
    }
    Err(refused)
}

/// A new segment with room for at least `min_units` units, its first unit at a multiple of the page. The more is `mapped`
/// already, the larger it is.
pub(crate) fn segment(
    kind: RegionKind,
    node: u8,
    min_units: u32,
    mapped: usize,
    owner: *const dyn Allocator,
) -> Result<&'static Segment, Errno> {
    let unit_shift = kind.unit().trailing_zeros();
    let align = kind.page().max(RECORDS_STEP);
    let needed = (min_units as usize) << unit_shift;
    let needed = needed + needed / 64 + 2 * align; // records take less than a 200th
    let mut slots = FIRST_SLOTS.lock();
    let (segment, size) = claim(&mut slots, needed.max(mapped)).or_else(|_| claim(&mut slots, needed))?;
    let base = from_ref(segment).expose_provenance();
    let most = size >> unit_shift;
    let records = base + header_size();
    let ages = (records + most * size_of::<Record>()).next_multiple_of(RECORDS_STEP);
    let units = (ages + most).next_multiple_of(align);
    let capacity = ((base + size - units) >> unit_shift).min(MAX_UNITS);
    let body = Body {
        kind,
        unit_shift,
        node,
        owner,
        is_orphan: AtomicBool::new(false),
        claim: Cell::new(size),
        records_open: Cell::new(0),
        ages_open: Cell::new(0),
        records: with_exposed_provenance_mut(records),
        ages: with_exposed_provenance(ages),
        top: SharedU32::new(0),
        heads: [const { [const { SharedU32::new(NO_UNIT) }; CLASSES] }; 2],
    };
    // SAFETY: it is closed, and who opens one holds the lock; the claim is its own.
    unsafe { segment.open(units, capacity << unit_shift, body) };
    address_map::set_slots((base, size), segment);
    Ok(segment)
}

/// Closes a segment without live blocks, so that lookups no longer find it, and unmaps what was mapped, and nothing else.
///
/// # Safety
/// Nothing in the segment is in use, and its heap is about to be dropped.
pub(crate) unsafe fn close(segment: &'static Segment) {
    let _claims = FIRST_SLOTS.lock();
    let top = segment.close(); // first: foreign memory can be mapped where ours is unmapped
    // SAFETY: nothing in the segment is in use (`Heap::close`); units with an age, records and ages were mapped by us.
    let unmap = |at: usize, size: usize| size == 0 || unsafe { os::decommit(at, size) }.is_ok();
    let mut is_empty = true;
    segment.each_run(0, top, |start, len, is_mapped| {
        is_empty &= !is_mapped || unmap(segment.address(start), segment.bytes(len));
    });
    is_empty &= unmap(segment.ages as usize, segment.ages_open.get());
    is_empty &= unmap(segment.records as usize, segment.records_open.get());
    if !is_empty {
        segment.claim.set(0); // what could not be unmapped is in the way of another
    }
}

/// Maps what the records of all units below `top` need. The caller holds the region's lock.
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
    open_to(need.next_multiple_of(RECORDS_STEP)).or_else(|_| open_to(need.next_multiple_of(os::page_size())))
}
