//! Claims of address space, and the segments that are built on them.
//!
//! A claim of whole slots maps almost nothing: it takes empty slots of the address map, and later each extent is
//! mapped at its exact address. So a segment can grow contiguously, and unused address space costs nothing (RLIMIT_AS,
//! overcommit). If the kernel does not grant such addresses (a small address space, an emulator), a claim of just the
//! needed size is mapped anywhere.
//!
//! The memory of a segment's records and ages is mapped as its top rises.

use crate::address_map::{self, GRANULE, SLOT_SHIFT};
use crate::allocator::Allocator;
use crate::heap::segment::{Body, CLEAN, Lists, Number, PageKind, Record, Segment};
use crate::layout::round_up;
use crate::os::{self, Errno};
use crate::sync::lock::Lock;
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr::{null_mut, with_exposed_provenance_mut};

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
const CLAIMABLE: usize = LAST_SLOT - FIRST_SLOT;
/// The size of a slot in bytes.
const SLOT: usize = 1 << SLOT_SHIFT;

/// The number of slots that are tried before whole slots are given up.
const TRIES: usize = 4;
/// Indices of units fit 31 bits of a record.
const MAX_UNITS: usize = (1 << 31) - 1;
/// A segment among foreign memory has at least this many bytes, if the system has them.
const SHARED_BYTES: usize = 16 << 20;
/// Bytes of records and ages that are mapped at a time.
const STEP: usize = 64 << 10;

/// The next slot to try; zero before the first. Who changes claims holds it.
pub(crate) static NEXT_SLOT: Lock<usize> = Lock::new(0);

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

/// A claimed range of address space.
#[derive(Clone, Copy)]
pub(crate) struct Claim {
    base: usize,
    size: usize,
    /// The number of bytes from the start that were mapped when it was claimed.
    mapped: usize,
}

impl Claim {
    /// Whether the claim has slots of its own, mapped on demand. Otherwise it consists of whole granules among foreign
    /// memory, all mapped, so that no foreign memory can come to lie in them.
    #[inline]
    pub(crate) fn has_slots(&self) -> bool {
        self.mapped < self.size
    }

    /// Claims adjacent slots and maps their first page, which shows whether the kernel grants such addresses.
    fn slots(next: &mut usize, count: usize) -> Option<Self> {
        let page = os::page_size();
        for _ in 0..TRIES {
            let (base, size) = (empty_slots(next, count)? << SLOT_SHIFT, count << SLOT_SHIFT);
            if os::reserve(base, size).is_err() {
                continue;
            }
            if os::commit(base, page).is_ok() {
                return Some(Self { base, size, mapped: page });
            }
            // SAFETY: it was just reserved, and nothing is committed in it.
            unsafe { os::release(base) };
        }
        None
    }

    /// Claims and maps `size` bytes, whole granules, at a multiple of `align`. Fails if the system has no room for them, or for
    /// the tables of the address map.
    fn granules(size: usize, align: usize) -> Result<Self, Errno> {
        let base = os::map_aligned(size, align.max(GRANULE), None)?;
        address_map::make_mixed((base, size)).inspect_err(|_| {
            // SAFETY: it was just mapped and is not in use.
            let _ = unsafe { os::unmap(base, size) };
        })?;
        Ok(Self { base, size, mapped: size })
    }
}

fn empty_slots(next: &mut usize, count: usize) -> Option<usize> {
    let last = LAST_SLOT.min(FIRST_SLOT.saturating_add(os::claimable_slots()));
    if count > last - FIRST_SLOT {
        return None;
    }
    if *next == 0 {
        *next = FIRST_SLOT + u128::from_ne_bytes(os::random()) as usize % (last - FIRST_SLOT);
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

/// The parts of a segment, as offsets from its claim.
struct Plan {
    records: usize,
    ages: usize,
    units: usize,
}

impl Plan {
    /// For `units` units that begin at a multiple of `align`, behind a header of `header` bytes.
    fn new(header: usize, units: usize, align: usize) -> Option<Self> {
        let records = round_up(header, os::page_size())?;
        let ages = round_up(records + units.checked_mul(size_of::<Record>())?, STEP)?;
        let end = round_up(ages + units, STEP)?;
        Some(Self { records, ages, units: round_up(end, align)? })
    }
}

/// A new segment with room for at least `min_units` units, its first unit at a multiple of the page. Without slots of its
/// own it is larger the more is `mapped` already.
pub(crate) fn segment(
    kind: PageKind,
    node: u8,
    min_units: u32,
    mapped: usize,
    owner: *const dyn Allocator,
) -> Result<&'static Segment, Errno> {
    let (min_units, shift, align) = (min_units as usize, kind.unit_shift(), kind.page().max(STEP));
    let body = |claim: Claim, plan: &Plan| Body {
        kind,
        node,
        claim,
        records_open: Cell::new(claim.mapped),
        ages_open: Cell::new(0),
        records: with_exposed_provenance_mut(claim.base + plan.records),
        ages: with_exposed_provenance_mut(claim.base + plan.ages),
        top: Number::new(0),
        lists: [Cell::new(Lists::EMPTY), Cell::new(Lists::EMPTY)],
    };
    let bounds = |claim: Claim, plan: &Plan, units: usize| (claim.base + plan.units, shift, units as u32);
    let per_slot = SLOT >> shift;
    let slots = (min_units + min_units / 64).div_ceil(per_slot) + usize::from(min_units > per_slot / 2);
    let slots = slots.max(1);
    let plan = Plan::new(0, slots * per_slot, align).ok_or(Errno::NO_MEMORY)?;
    let capacity = ((slots * SLOT - plan.units) >> shift).min(MAX_UNITS);
    let mut next = NEXT_SLOT.lock();
    if min_units <= capacity
        && let Some(claim) = Claim::slots(&mut next, slots)
    {
        let header = HEADERS[(claim.base >> SLOT_SHIFT) - FIRST_SLOT].0.get().cast();
        // SAFETY: the slots were empty, so the header is not in use, and its bounds are zero or those of a closed area. It is
        // never unmapped, and the claim is this segment's alone.
        unsafe {
            let segment = Segment::make(header, owner, bounds(claim, &plan, capacity), body(claim, &plan));
            address_map::set_slots((claim.base, claim.size), Segment::area_of(header).as_ptr());
            return Ok(segment);
        }
    }
    let wanted = SHARED_BYTES.max(mapped / 8) >> shift;
    let mut refused = Errno::NO_MEMORY;
    for units in [wanted.max(min_units), min_units] {
        let units = units.next_multiple_of(kind.page() >> shift); // because only whole pages are purged
        let plan = Plan::new(size_of::<Segment>(), units, align.max(GRANULE)).ok_or(Errno::NO_MEMORY)?;
        let size = round_up(plan.units + (units << shift), GRANULE).ok_or(Errno::NO_MEMORY)?;
        let claim = match Claim::granules(size, align) {
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
            let segment = Segment::make(header, owner, bounds(claim, &plan, units), body(claim, &plan));
            segment.records_open.set(usize::MAX);
            segment.ages_open.set(usize::MAX);
            segment.top.set(units as u32);
            segment.ages(0, units as u32).fill(CLEAN);
            segment.list(0, units as u32, 0);
            address_map::set_granules((claim.base, claim.size), Segment::area_of(header).as_ptr());
            return Ok(segment);
        }
    }
    Err(refused)
}

/// Closes a segment without live blocks: unmaps what was mapped, and nothing else. Before that, lookups no longer find it:
/// foreign memory can be mapped there then.
///
/// # Safety
/// Nothing in the segment is in use, and its heap is about to be dropped.
pub(crate) unsafe fn close(segment: &Segment) {
    let claim = segment.claim;
    let mut next = NEXT_SLOT.lock();
    // SAFETY: nothing in the segment is in use (`Heap::close`); units with an age, records and ages were mapped by us,
    // and a segment among foreign memory was mapped in one piece with its header. No lookup reads that header: it would
    // ask for an address in the claim, where only our blocks lie, and none is live.
    unsafe {
        if !claim.has_slots() {
            address_map::set_granules((claim.base, claim.size), null_mut());
            let _ = os::unmap(claim.base, claim.size);
            return;
        }
        address_map::set_slots((claim.base, claim.size), null_mut());
        *next = claim.base >> SLOT_SHIFT;
        segment.each_run(0, segment.top.get(), |start, len, is_mapped| {
            if is_mapped {
                let _ = os::decommit(segment.address(start), segment.bytes(len));
            }
        });
        let _ = os::decommit(segment.ages as usize, segment.ages_open.get());
        let _ = os::decommit(segment.records as usize, segment.records_open.get());
        os::release(claim.base);
    }
    segment.area.close();
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
