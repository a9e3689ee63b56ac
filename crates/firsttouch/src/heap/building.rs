//! Building a segment on claimed address space, and closing it; mapping the memory of its records, ages and locality bitmap
//! as its top rises, and discarding it as the top falls.

use crate::address_map::GRANULE;
use crate::allocator::Allocator;
use crate::heap::claim::{CLAIMABLE, Claim, SLOT};
use crate::heap::segment::{Body, CLEAN, Lists, Number, Record, Segment, Shape};
use crate::heap::{claim, segment};
use crate::layout::round_up;
use crate::os::{self, Errno};
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr::{null, with_exposed_provenance, with_exposed_provenance_mut};

/// A record counts dirty units in 29 bits.
const MAX_UNITS: usize = (1 << 29) - 1;
/// A segment among foreign memory has at least this many bytes, if the system has them.
const SHARED_BYTES: usize = 16 << 20;

/// Headers of segments with slots of their own, by their first slot. They are never unmapped, so that a lookup may read
/// the bounds of one that is being closed.
static HEADERS: [Header; CLAIMABLE] = [const { Header::EMPTY }; CLAIMABLE];

struct Header(UnsafeCell<MaybeUninit<Segment>>);

// SAFETY: a header is written only by the thread that claimed its slot, under the claims' lock.
unsafe impl Sync for Header {}

impl Header {
    /// All zero, as a header without units is.
    #[allow(clippy::declare_interior_mutable_const)] // each use is another header
    const EMPTY: Self = Self(UnsafeCell::new(MaybeUninit::zeroed()));
}

/// The parts of a segment with `units` units, as offsets from its claim.
struct Plan {
    records: usize,
    ages: usize,
    locality: Option<usize>,
    units: usize,
}

/// `header`: bytes before the records.
fn plan(shape: Shape, header: usize, units: usize, align: usize) -> Option<Plan> {
    let records = round_up(header, os::page_size())?;
    let ages = round_up(records + units.checked_mul(size_of::<Record>())?, STEP)?;
    let end = round_up(ages + units, STEP)?;
    let locality = shape.local_node.map(|_| end);
    let end = end + locality.map_or(0, |_| segment::locality_bytes(units));
    Some(Plan { records, ages, locality, units: round_up(end, align)? })
}

/// A new segment with room for at least `min_units` units, its first unit at a multiple of the shape's page. Without
/// slots of its own it is larger the more is `mapped` already.
pub(crate) fn segment(
    shape: Shape,
    min_units: u32,
    mapped: usize,
    owner: *const dyn Allocator,
) -> Result<&'static Segment, Errno> {
    let Shape { unit_shift, page, .. } = shape;
    let align = page.max(STEP);
    let per_slot = SLOT >> unit_shift;
    let slots = (min_units as usize + min_units as usize / 64).div_ceil(per_slot)
        + usize::from(min_units as usize > per_slot / 2);
    let slots = slots.max(1);
    let whole = plan(shape, 0, slots * per_slot, align).ok_or(Errno::NO_MEMORY)?;
    let capacity = ((slots * SLOT - whole.units) >> unit_shift).min(MAX_UNITS);
    let mut claims = claim::lock();
    if (min_units as usize) <= capacity
        && let Some(claim) = claims.slots(slots)
    {
        let header = HEADERS[claim.slot()].0.get().cast();
        // SAFETY: the slots were empty, so the header is not in use, and its bounds are zero or those of a closed
        // area. It is never unmapped.
        unsafe {
            let segment = make(header, claim, &whole, shape, capacity, owner);
            segment.records_open.set(claim.mapped);
            claims.enter(&claim, Segment::area_of(header));
            return Ok(segment);
        }
    }
    let wanted = SHARED_BYTES.max(mapped / 8) >> unit_shift;
    let mut refused = Errno::NO_MEMORY;
    for units in [wanted.max(min_units as usize), min_units as usize] {
        // Whole pages, because only those are purged.
        let units = units.next_multiple_of((page >> unit_shift).max(1));
        let align = align.max(GRANULE);
        let plan = plan(shape, size_of::<Segment>(), units, align).ok_or(Errno::NO_MEMORY)?;
        let size = round_up(plan.units + (units << unit_shift), GRANULE).ok_or(Errno::NO_MEMORY)?;
        let claim = match claims.granules(size, align) {
            Ok(claim) => claim,
            Err(error) => {
                refused = error;
                continue;
            }
        };
        let header = with_exposed_provenance_mut(claim.base);
        // SAFETY: it was just mapped, reads zero, as a header without units does, and is not in use yet. It stays until
        // `close`.
        unsafe {
            let segment = make(header, claim, &plan, shape, units, owner);
            open_all(segment, units as u32);
            claims.enter(&claim, Segment::area_of(header));
            return Ok(segment);
        }
    }
    Err(refused)
}

/// Enters all units as mapped and free, in a claim that is mapped as a whole.
fn open_all(segment: &Segment, units: u32) {
    segment.records_open.set(usize::MAX);
    segment.ages_open.set(usize::MAX);
    segment.locality_open.set(usize::MAX);
    segment.top.set(units);
    segment.ages(0, units).fill(CLEAN);
    segment.list(0, units, 0);
}

/// # Safety
/// As for [`Segment::make`]; the claim is exclusively the caller's.
unsafe fn make(
    header: *mut Segment,
    claim: Claim,
    plan: &Plan,
    shape: Shape,
    capacity: usize,
    owner: *const dyn Allocator,
) -> &'static Segment {
    let at = claim.base;
    let body = Body {
        huge: shape.huge,
        local_node: shape.local_node.unwrap_or(0),
        claim,
        records_open: Cell::new(0),
        ages_open: Cell::new(0),
        locality_open: Cell::new(0),
        records: with_exposed_provenance_mut(at + plan.records),
        ages: with_exposed_provenance_mut(at + plan.ages),
        locality: plan.locality.map_or(null(), |locality| with_exposed_provenance(at + locality)),
        top: Number::new(0),
        growable: Cell::new(claim.has_slots()),
        lists: [Cell::new(Lists::EMPTY), Cell::new(Lists::EMPTY)],
    };
    // SAFETY: as for `Segment::make`, and the claim is the caller's alone (`segment` above).
    unsafe { Segment::make(header, owner, (at + plan.units, shape.unit_shift, capacity as u32), body) }
}

/// Closes a segment without live blocks: unmaps what was mapped, and nothing else.
///
/// # Safety
/// Nothing in the segment is in use, and its heap is about to be dropped.
pub(crate) unsafe fn close(segment: &Segment) {
    let claim = segment.claim;
    let mut claims = claim::lock();
    claims.leave(&claim);
    // SAFETY: nothing in the segment is in use (`Heap::close`); units with an age, records and ages were mapped by us,
    // and a segment among foreign memory was mapped in one piece with its header. No lookup reads that header: it would
    // ask for an address in the claim, where only our blocks lie, and none is live.
    unsafe {
        if !claim.has_slots() {
            let _ = os::unmap(claim.base, claim.size);
            return;
        }
        segment.each_mapped_run(0, segment.top.get(), |start, len| {
            let _ = os::unmap(segment.address(start), (len as usize) << segment.unit_shift());
        });
        if !segment.locality.is_null() {
            let _ = os::unmap(segment.locality as usize, segment.locality_open.get());
        }
        let _ = os::unmap(segment.ages as usize, segment.ages_open.get());
        let _ = os::unmap(segment.records as usize, segment.records_open.get());
    }
    segment.area.close();
}

/// Bytes mapped at a time.
pub(crate) const STEP: usize = 64 << 10;

/// Maps what the records of all units below `top` need. The caller holds the heap's lock.
pub(crate) fn open_records(segment: &Segment, top: u32) -> Result<(), Errno> {
    open_array(segment.records as usize, &segment.records_open, top as usize * size_of::<Record>())?;
    open_array(segment.ages as usize, &segment.ages_open, top as usize)?;
    if segment.locality.is_null() {
        return Ok(());
    }
    open_array(segment.locality as usize, &segment.locality_open, segment::locality_bytes(top as usize))
}

/// Maps the first `need` bytes of an array, of which `open` are mapped.
pub(crate) fn open_array(start: usize, open: &Cell<usize>, need: usize) -> Result<(), Errno> {
    if need <= open.get() {
        return Ok(());
    }
    let open_to = |to: usize| os::map_at(start + open.get(), to - open.get()).map(|_| open.set(to));
    open_to(need.next_multiple_of(STEP)).or_else(|_| open_to(need.next_multiple_of(os::page_size())))
}

/// Discards the records of the units from `top` on; they read zero afterwards. The caller holds the heap's lock.
pub(crate) fn empty_records(segment: &Segment, top: u32) {
    let arrays = [
        (segment.records as usize, segment.records_open.get(), top as usize * size_of::<Record>()),
        (segment.ages as usize, segment.ages_open.get(), top as usize),
        (segment.locality as usize, segment.locality_open.get(), segment::locality_bytes(top as usize)),
    ];
    for (start, open, used) in arrays {
        let from = used.next_multiple_of(os::page_size());
        if from < open {
            // SAFETY: no unit from `top` on is in use, so these records are not read. If the system refuses they stay; the
            // ages of unmapped units are zero already.
            let _ = unsafe { os::discard(start + from, open - from) };
        }
    }
}
