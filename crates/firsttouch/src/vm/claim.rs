//! Claiming address space for a segment.
//!
//! A claim maps nothing: an empty slot of the address map is taken, and every opening asks the kernel for that very
//! address. So a segment has room to grow in one piece and costs no address space (RLIMIT_AS, overcommit) before it is
//! used. Where the kernel does not grant such addresses (a small address space, an emulator), a segment of just the
//! needed size lies wherever there is room.

use crate::allocator::Allocator;
use crate::heap::ages::CLEAN;
use crate::heap::proofs;
use crate::heap::records::STEP;
use crate::heap::region::Shape;
use crate::heap::segment::{Body, Lists, Record, Segment, Top};
use crate::layout::round_up;
use crate::os::{self, Errno};
use crate::pages::mapping::map_aligned;
use crate::sync::lock::Lock;
use crate::vm::address_map::{self, GRANULE, SLOT_SHIFT};
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr::{null, with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, Ordering::Release};

/// Slots that may be claimed: from 16 TiB to 40 TiB, below whatever Linux places by itself. (On x86-64 mappings begin at
/// 42 TiB where the stack is unlimited, and programs with their heap lie at 85 TiB.)
const FIRST_SLOT: usize = 16 << (40 - SLOT_SHIFT);
const LAST_SLOT: usize = 40 << (40 - SLOT_SHIFT);
/// Headers of segments with slots of their own, by their first slot. They are never unmapped, so that a lookup may read
/// the bounds of one that is being closed.
static HEADERS: [Header; LAST_SLOT - FIRST_SLOT] = [const { Header::EMPTY }; LAST_SLOT - FIRST_SLOT];

struct Header(UnsafeCell<MaybeUninit<Segment>>);

// SAFETY: a header's place is written by whoever claimed its slot, under the claims' lock.
unsafe impl Sync for Header {}

impl Header {
    /// All zero, as a header without units is.
    #[allow(clippy::declare_interior_mutable_const)] // each header is one of its own
    const EMPTY: Self = Self(UnsafeCell::new(MaybeUninit::zeroed()));

    /// The place of the header of the segment that begins at a slot.
    fn of(slot: usize) -> *mut Segment {
        HEADERS[slot - FIRST_SLOT].0.get().cast()
    }
}

/// Slots that are tried before a segment is put wherever there is room.
const TRIES: usize = 4;
/// A record counts dirty units in 29 bits.
const MAX_UNITS: usize = (1 << 29) - 1;
/// A shared segment is at least this large, if that can be had.
const SHARED_BYTES: usize = 16 << 20;

/// The next slot to try; zero before the first.
static NEXT_SLOT: Lock<usize> = Lock::new(0);

/// Held around forks.
pub(crate) fn hold() {
    NEXT_SLOT.hold();
}

/// Ends [`hold`].
///
/// # Safety
/// The lock is held by `hold`.
pub(crate) unsafe fn release() {
    // SAFETY: the caller's promise.
    unsafe { NEXT_SLOT.release() }
}

/// Where the parts of a segment with `units` units lie, as offsets from its claim.
struct Plan {
    records: usize,
    ages: usize,
    proofs: Option<usize>,
    units: usize,
}

/// `header`: bytes before the records.
fn plan(shape: Shape, header: usize, units: usize, align: usize) -> Option<Plan> {
    let records = round_up(header, os::page_size())?;
    let ages = round_up(records + units.checked_mul(size_of::<Record>())?, STEP)?;
    let end = round_up(ages + units, STEP)?;
    let proofs = shape.home.map(|_| end);
    let end = end + proofs.map_or(0, |_| proofs::bytes(units));
    Some(Plan { records, ages, proofs, units: round_up(end, align)? })
}

/// A new segment with room for at least `min_units` units, its first unit at a multiple of the shape's page. Where it
/// can't have a place of its own, it is larger the more is `mapped` already.
pub(crate) fn segment(
    shape: Shape,
    min_units: u32,
    mapped: usize,
    owner: *const dyn Allocator,
) -> Result<&'static Segment, Errno> {
    let Shape { unit_shift, page: align, .. } = shape;
    let mut next = NEXT_SLOT.lock();
    if *next == 0 {
        *next = FIRST_SLOT + os::seed() % (last_slot() - FIRST_SLOT).max(1);
    }
    let align = align.max(STEP);
    let per_slot = (1usize << SLOT_SHIFT) >> unit_shift;
    let slots = (min_units as usize + min_units as usize / 64).div_ceil(per_slot)
        + usize::from(min_units as usize > per_slot / 2);
    let slots = slots.max(1);
    let whole = plan(shape, 0, slots * per_slot, align).ok_or(Errno::NO_MEMORY)?;
    let capacity = (((slots << SLOT_SHIFT) - whole.units) >> unit_shift).min(MAX_UNITS);
    if (min_units as usize) <= capacity {
        for _ in 0..TRIES {
            let Some(first) = empty_slots(&mut next, slots) else { break };
            let at = first << SLOT_SHIFT;
            // The records' first page, which also says whether the kernel grants such addresses.
            if os::map_at(at, os::page_size()).is_ok() {
                let claim = (at, slots << SLOT_SHIFT);
                // SAFETY: the slots are empty, so nobody uses the header, and its bounds are zero or those of `close`.
                let segment = unsafe { make(Header::of(first), claim, &whole, shape, capacity, owner, true) };
                segment.records_open.set(os::page_size());
                address_map::enter(segment);
                return Ok(segment);
            }
        }
    }
    shared_segment(shape, min_units, align.max(GRANULE), SHARED_BYTES.max(mapped / 8), owner)
}

/// Behind the last slot that may be claimed.
fn last_slot() -> usize {
    LAST_SLOT.min(FIRST_SLOT.saturating_add(os::claimable_slots()))
}

fn empty_slots(next: &mut usize, count: usize) -> Option<usize> {
    let last = last_slot();
    if count > last - FIRST_SLOT {
        return None;
    }
    for _ in FIRST_SLOT..last {
        if *next + count > last {
            *next = FIRST_SLOT;
        }
        let first = *next;
        *next += 1;
        if address_map::is_empty(first, count) {
            *next += count - 1;
            return Some(first);
        }
    }
    None
}

/// A segment among other people's memory. Its claim is whole granules of the address map, mapped in one piece: as long
/// as it stands nobody else's memory lies in them.
fn shared_segment(
    shape: Shape,
    min_units: u32,
    align: usize,
    wanted: usize,
    owner: *const dyn Allocator,
) -> Result<&'static Segment, Errno> {
    let unit_shift = shape.unit_shift;
    let mut refused = Errno::NO_MEMORY;
    for units in [(wanted >> unit_shift).max(min_units as usize), min_units as usize] {
        // Whole pages, as only those are given back when they are idle.
        let units = units.next_multiple_of((shape.page >> unit_shift).max(1));
        let plan = plan(shape, size_of::<Segment>(), units, align).ok_or(Errno::NO_MEMORY)?;
        let size = round_up(plan.units + (units << unit_shift), GRANULE).ok_or(Errno::NO_MEMORY)?;
        let (at, _) = match map_aligned(size, align) {
            Ok(mapping) => mapping,
            Err(error) => {
                refused = error;
                continue;
            }
        };
        // SAFETY: it was just mapped and reads zero, as a header without units does; nobody knows it yet.
        let segment = unsafe { make(with_exposed_provenance_mut(at), (at, size), &plan, shape, units, owner, false) };
        segment.records_open.set(usize::MAX);
        segment.ages_open.set(usize::MAX);
        segment.proofs_open.set(usize::MAX);
        segment.growable.set(false);
        segment.top.set(units as u32);
        segment.ages(0, units as u32).fill(CLEAN);
        segment.list(0, units as u32, 0);
        if let Err(error) = address_map::enter_shared(segment) {
            // SAFETY: as above.
            let _ = unsafe { os::unmap(at, size) };
            return Err(error);
        }
        return Ok(segment);
    }
    Err(refused)
}

/// # Safety
/// As for [`Segment::make`]; the claim is nobody else's.
unsafe fn make(
    header: *mut Segment,
    (at, size): (usize, usize),
    plan: &Plan,
    shape: Shape,
    capacity: usize,
    owner: *const dyn Allocator,
    open_by_need: bool,
) -> &'static Segment {
    let body = Body {
        huge: shape.huge,
        home: shape.home.unwrap_or(0),
        owner,
        orphaned: AtomicBool::new(false),
        claim: (at, size),
        open_by_need,
        records_open: Cell::new(0),
        ages_open: Cell::new(0),
        proofs_open: Cell::new(0),
        records: with_exposed_provenance_mut(at + plan.records),
        ages: with_exposed_provenance_mut(at + plan.ages),
        proofs: plan.proofs.map_or(null(), |proofs| with_exposed_provenance(at + proofs)),
        top: Top::new(0),
        growable: Cell::new(open_by_need),
        lists: [Cell::new(Lists::EMPTY), Cell::new(Lists::EMPTY)],
    };
    // SAFETY: the caller's promise.
    unsafe { Segment::make(header, (at + plan.units, shape.unit_shift, capacity as u32), body) }
}

/// Closes a segment without living blocks: unmaps what was opened, and only that.
///
/// # Safety
/// Nothing in the segment is used any more, and its heap is about to go.
pub(crate) unsafe fn close(segment: &Segment) {
    let mut next = NEXT_SLOT.lock();
    // First: nobody's memory can come to lie there before lookups have stopped leading to the segment.
    address_map::leave(segment);
    let (at, size) = segment.claim;
    // SAFETY: the caller's promise; units with an age, records and ages were opened by us, and one among other people's
    // memory was mapped in one piece, header and all. No lookup reads that header: it would ask for an address in the
    // claim, where only our blocks lie, and none lives.
    unsafe {
        if !segment.open_by_need {
            let _ = os::unmap(at, size);
            return;
        }
        segment.each_mapped_run(0, segment.top.get(), |start, len| {
            let _ = os::unmap(segment.address(start), (len as usize) << segment.unit_shift());
        });
        if !segment.proofs.is_null() {
            let _ = os::unmap(segment.proofs as usize, segment.proofs_open.get());
        }
        let _ = os::unmap(segment.ages as usize, segment.ages_open.get());
        let _ = os::unmap(segment.records as usize, segment.records_open.get());
    }
    segment.bounds.set(0, 0, 0);
    *next = at >> SLOT_SHIFT;
}

/// Gives up a segment in which blocks live: it stays as it is, and its blocks belong to nobody.
pub(crate) fn orphan(segment: &Segment) {
    segment.orphaned.store(true, Release);
}
