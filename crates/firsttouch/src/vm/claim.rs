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
use crate::heap::segment::{Lists, Record, Segment, Top};
use crate::layout::round_up;
use crate::os::{self, Errno};
use crate::sync::lock::Lock;
use crate::vm::address_map::{self, SLOT_SHIFT};
use std::cell::Cell;
use std::ptr::{null, null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr};

/// Slots that may be claimed: from 16 TiB to 40 TiB, below whatever Linux places by itself. (On x86-64 mappings begin at
/// 42 TiB where the stack is unlimited, and programs with their heap lie at 85 TiB.)
const FIRST_SLOT: usize = 16 << (40 - SLOT_SHIFT);
const LAST_SLOT: usize = 40 << (40 - SLOT_SHIFT);
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

fn plan(shape: Shape, units: usize, align: usize) -> Option<Plan> {
    let records = round_up(size_of::<Segment>(), os::page_size())?;
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
        *next = FIRST_SLOT + os::seed() % (LAST_SLOT - FIRST_SLOT);
    }
    let align = align.max(STEP);
    let per_slot = (1usize << SLOT_SHIFT) >> unit_shift;
    let slots = (min_units as usize + min_units as usize / 64).div_ceil(per_slot)
        + usize::from(min_units as usize > per_slot / 2);
    let slots = slots.max(1);
    let plan_whole = plan(shape, slots * per_slot, align).ok_or(Errno::NO_MEMORY)?;
    let capacity = (((slots << SLOT_SHIFT) - plan_whole.units) >> unit_shift).min(MAX_UNITS);
    if (min_units as usize) <= capacity {
        for _ in 0..TRIES {
            let Some(first) = empty_slots(&mut next, slots) else { break };
            let at = first << SLOT_SHIFT;
            if os::map_at(at, plan_whole.records).is_ok() {
                // SAFETY: the claim is ours alone, and its first pages were just opened.
                let segment = unsafe { make((at, slots << SLOT_SHIFT), &plan_whole, shape, capacity, owner, true) };
                address_map::enter(segment);
                return Ok(segment);
            }
        }
    }
    shared_segment(shape, min_units, align, SHARED_BYTES.max(mapped / 8), owner)
}

fn empty_slots(next: &mut usize, count: usize) -> Option<usize> {
    if count > LAST_SLOT - FIRST_SLOT {
        return None;
    }
    for _ in FIRST_SLOT..LAST_SLOT {
        if *next + count > LAST_SLOT {
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
        let plan = plan(shape, units, align).ok_or(Errno::NO_MEMORY)?;
        let size = plan.units + (units << unit_shift);
        match os::map_anywhere(size + align) {
            Err(error) => refused = error,
            Ok(at) => {
                let start = at.next_multiple_of(align);
                // SAFETY: the edges and the rest were just mapped, and nobody knows them yet.
                let segment = unsafe {
                    if start > at {
                        let _ = os::unmap(at, start - at);
                    }
                    let _ = os::unmap(start + size, at + align - start);
                    make((start, size), &plan, shape, units, owner, false)
                };
                segment.records_open.set(usize::MAX);
                segment.ages_open.set(usize::MAX);
                segment.proofs_open.set(usize::MAX);
                segment.growable.set(false);
                segment.top.set(units as u32);
                segment.ages(0, units as u32).fill(CLEAN);
                segment.list(0, units as u32, 0);
                address_map::enter_shared(segment);
                return Ok(segment);
            }
        }
    }
    Err(refused)
}

/// # Safety
/// The first `plan.records` bytes from `at` are opened, aligned to a page, and nobody else's.
unsafe fn make(
    (at, size): (usize, usize),
    plan: &Plan,
    shape: Shape,
    capacity: usize,
    owner: *const dyn Allocator,
    open_by_need: bool,
) -> &'static Segment {
    let segment = with_exposed_provenance_mut::<Segment>(at);
    // SAFETY: the caller's promise.
    unsafe {
        segment.write(Segment {
            base: at + plan.units,
            unit_shift: shape.unit_shift,
            huge: shape.huge,
            home: shape.home.unwrap_or(0),
            capacity: capacity as u32,
            owner,
            next: AtomicPtr::new(null_mut()),
            gone: AtomicBool::new(false),
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
        });
        &*segment
    }
}

/// Closes a segment without living blocks: unmaps what was opened, and only that. One among other people's memory stays
/// mapped, emptied, as lock-free readers may be walking past it.
///
/// # Safety
/// Nothing in the segment is used any more, and its heap is about to go.
pub(crate) unsafe fn close(segment: &Segment) {
    let _claims = NEXT_SLOT.lock();
    address_map::leave(segment);
    let (at, records, ages) = (segment.claim.0, segment.records as usize, segment.ages as usize);
    // SAFETY: the caller's promise; units with an age, records and ages were opened by us, as was the segment itself.
    unsafe {
        if segment.open_by_need {
            segment.each_mapped_run(0, segment.top.get(), |start, len| {
                let _ = os::unmap(segment.address(start), (len as usize) << segment.unit_shift);
            });
            let (records_open, ages_open) = (segment.records_open.get(), segment.ages_open.get());
            if !segment.proofs.is_null() {
                let _ = os::unmap(segment.proofs as usize, segment.proofs_open.get());
            }
            let _ = os::unmap(ages, ages_open);
            let _ = os::unmap(records, records_open);
            let _ = os::unmap(at, records - at);
        } else {
            let _ = os::discard(segment.base, (segment.top.get() as usize) << segment.unit_shift);
        }
    }
}

/// Gives up a segment in which blocks live: it stays as it is, and belongs to nobody.
pub(crate) fn orphan(segment: &Segment) {
    let _claims = NEXT_SLOT.lock();
    address_map::leave(segment);
}
