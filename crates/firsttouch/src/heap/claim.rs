//! Claims of address space, and the segments that are built on them.
//!
//! A claim of whole slots maps almost nothing: it takes empty slots of the address map, and later each extent is
//! mapped at its exact address. So a segment can grow contiguously, and unused address space costs nothing (RLIMIT_AS,
//! overcommit). If the kernel does not grant such addresses (a small address space, an emulator), a claim of just the
//! needed size is mapped anywhere.
//!
//! The memory of a segment's records and ages is mapped as its top rises.

use crate::address_map::{self, Area, GRANULE, SLOT_SHIFT};
use crate::allocator::Allocator;
use crate::heap::segment::{Body, CLEAN, Lists, Number, Record, Segment, Shape};
use crate::layout::round_up;
use crate::os::{self, Errno};
use crate::sync::lock::{Guard, Lock};
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut, with_exposed_provenance_mut};

/// The slots that may be claimed: from 16 TiB to 40 TiB, below whatever Linux places by itself. (On x86-64 mappings
/// begin at 42 TiB if the stack size is unlimited, and programs have their heap at 85 TiB. On arm64 they begin at a quarter
/// of the address space, which is at 32 TiB where it has 47 bits, as with pages of 16 KiB.) ThreadSanitizer has its shadow
/// there, and leaves programs the first 2 TiB.
const CLAIMABLE_TIB: (usize, usize) = if cfg!(tsan) {
    (1, 2)
} else if cfg!(target_arch = "aarch64") {
    (16, 32)
} else {
    (16, 40)
};
const FIRST_SLOT: usize = CLAIMABLE_TIB.0 << (40 - SLOT_SHIFT);
const LAST_SLOT: usize = CLAIMABLE_TIB.1 << (40 - SLOT_SHIFT);
/// Their number.
pub(crate) const CLAIMABLE: usize = LAST_SLOT - FIRST_SLOT;
/// The size of a slot in bytes.
pub(crate) const SLOT: usize = 1 << SLOT_SHIFT;

/// The number of slots that are tried before whole slots are given up.
const TRIES: usize = 4;

/// The next slot to try; zero before the first.
pub(crate) static NEXT_SLOT: Lock<usize> = Lock::new(0);

/// A claimed range of address space.
#[derive(Clone, Copy)]
pub(crate) struct Claim {
    /// The first address.
    pub base: usize,
    /// The size in bytes.
    pub size: usize,
    /// The number of bytes from the start that were mapped when it was claimed.
    pub mapped: usize,
}

impl Claim {
    /// Whether the claim has slots of its own, mapped on demand. Otherwise it consists of whole granules among foreign
    /// memory, all mapped, so that no foreign memory can come to lie in them.
    #[inline]
    pub(crate) fn has_slots(&self) -> bool {
        self.mapped < self.size
    }

    /// The index of its first slot among the [`CLAIMABLE`] ones.
    pub(crate) fn slot(&self) -> usize {
        (self.base >> SLOT_SHIFT) - FIRST_SLOT
    }

    fn range(&self) -> (usize, usize) {
        (self.base, self.size)
    }
}

/// The right to change claims.
pub(crate) struct Claims(Guard<'static, usize>);

/// Acquires that right.
pub(crate) fn lock() -> Claims {
    let mut next = NEXT_SLOT.lock();
    if *next == 0 {
        *next = FIRST_SLOT + os::seed() % (last_slot() - FIRST_SLOT).max(1);
    }
    Claims(next)
}

impl Claims {
    /// Claims adjacent slots and maps their first page, which shows whether the kernel grants such addresses. The
    /// slots are taken once they are [entered](Self::enter).
    pub(crate) fn slots(&mut self, count: usize) -> Option<Claim> {
        let page = os::page_size();
        for _ in 0..TRIES {
            let (base, size) = (self.empty_slots(count)? << SLOT_SHIFT, count << SLOT_SHIFT);
            if os::reserve(base, size).is_err() {
                continue;
            }
            if os::commit(base, page).is_ok() {
                return Some(Claim { base, size, mapped: page });
            }
            // SAFETY: it was just reserved, and nothing is committed in it.
            unsafe { os::release(base) };
        }
        None
    }

    fn empty_slots(&mut self, count: usize) -> Option<usize> {
        let (next, last) = (&mut *self.0, last_slot());
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

    /// Claims and maps `size` bytes, whole granules, at a multiple of `align`.
    ///
    /// # Errors
    /// If the system has no room for them, or for the tables of the address map.
    pub(crate) fn granules(&mut self, size: usize, align: usize) -> Result<Claim, Errno> {
        let base = os::map_aligned(size, align.max(GRANULE), None)?;
        address_map::make_mixed((base, size)).inspect_err(|_| {
            // SAFETY: it was just mapped and is not in use.
            let _ = unsafe { os::unmap(base, size) };
        })?;
        Ok(Claim { base, size, mapped: size })
    }

    /// Enters an area, so that lookups find it in its claim.
    ///
    /// # Safety
    /// The claim was just made. The area stays readable: permanently if the claim has slots of its own, otherwise
    /// while a block in it is live.
    pub(crate) unsafe fn enter(&mut self, claim: &Claim, area: NonNull<Area>) {
        // SAFETY: the claim was just made, for one heap alone, and the area stays readable while a lookup may find it
        // (`segment` and `close`).
        unsafe { set(claim, area.as_ptr()) }
    }

    /// Ends a claim: lookups no longer find its area. This must come first, before foreign memory can be mapped there.
    /// The caller unmaps what is mapped in the claim before it gives up the right to change claims.
    pub(crate) fn leave(&mut self, claim: &Claim) {
        // SAFETY: the claim is that of a heap that is being dropped (`segment` and `close`), and nothing needs to stay
        // readable.
        unsafe { set(claim, null_mut()) }
        if claim.has_slots() {
            *self.0 = claim.base >> SLOT_SHIFT;
        }
    }
}

/// # Safety
/// As for [`Claims::enter`].
unsafe fn set(claim: &Claim, area: *mut Area) {
    // SAFETY: as for `Claims::enter`, the area stays readable (`enter` and `leave`).
    unsafe {
        match claim.has_slots() {
            true => address_map::set_slots(claim.range(), area),
            false => address_map::set_granules(claim.range(), area),
        }
    }
}

/// One past the last slot that may be claimed.
fn last_slot() -> usize {
    LAST_SLOT.min(FIRST_SLOT.saturating_add(os::claimable_slots()))
}

// ---- Segments

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
    units: usize,
}

/// `header`: bytes before the records.
fn plan(header: usize, units: usize, align: usize) -> Option<Plan> {
    let records = round_up(header, os::page_size())?;
    let ages = round_up(records + units.checked_mul(size_of::<Record>())?, STEP)?;
    let end = round_up(ages + units, STEP)?;
    Some(Plan { records, ages, units: round_up(end, align)? })
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
    let whole = plan(0, slots * per_slot, align).ok_or(Errno::NO_MEMORY)?;
    let capacity = ((slots * SLOT - whole.units) >> unit_shift).min(MAX_UNITS);
    let mut claims = lock();
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
        let plan = plan(size_of::<Segment>(), units, align).ok_or(Errno::NO_MEMORY)?;
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
        node: shape.node,
        claim,
        records_open: Cell::new(0),
        ages_open: Cell::new(0),
        records: with_exposed_provenance_mut(at + plan.records),
        ages: with_exposed_provenance_mut(at + plan.ages),
        top: Number::new(0),
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
    let mut claims = lock();
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
            let _ = os::decommit(segment.address(start), (len as usize) << segment.unit_shift());
        });
        let _ = os::decommit(segment.ages as usize, segment.ages_open.get());
        let _ = os::decommit(segment.records as usize, segment.records_open.get());
        os::release(claim.base);
    }
    segment.area.close();
}

/// Bytes mapped at a time.
pub(crate) const STEP: usize = 64 << 10;

/// Maps what the records of all units below `top` need. The caller holds the heap's lock.
pub(crate) fn open_records(segment: &Segment, top: u32) -> Result<(), Errno> {
    open_array(segment.records as usize, &segment.records_open, top as usize * size_of::<Record>())?;
    open_array(segment.ages as usize, &segment.ages_open, top as usize)
}

/// Maps the first `need` bytes of an array, of which `open` are mapped.
pub(crate) fn open_array(start: usize, open: &Cell<usize>, need: usize) -> Result<(), Errno> {
    if need <= open.get() {
        return Ok(());
    }
    let open_to = |to: usize| os::commit(start + open.get(), to - open.get()).map(|_| open.set(to));
    open_to(need.next_multiple_of(STEP)).or_else(|_| open_to(need.next_multiple_of(os::page_size())))
}
