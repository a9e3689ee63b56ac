//! A segment: claimed address space cut into units of one size, with out-of-band records for the units.
//!
//! The units themselves are never read or written. Records exist for the units below `top`; the memory for them is mapped
//! as `top` rises. Everything except the area, which lookups read, is guarded by the heap's lock.

use crate::allocator::Allocator;
use crate::heap::ages::{CLEAN, CLEAN_HUGE, FIRST_EPOCH};
use crate::heap::class;
use crate::heap::occupant::Occupant;
use crate::heap::shape::huge_page;
use crate::vm::address_map;
use crate::vm::area::Area;
use crate::vm::claim::Claim;
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The record of one unit. The length and state of a span stand in the records of its first and its last unit.
///
/// The holder of a used span may change `next` and `prev` while the holder of the heap's lock reads `len` and `tag`; and
/// growth looks without the lock at blocks that others may free meanwhile (`heap::lives`): what it reads is a guess.
#[repr(C)]
pub(crate) struct Record {
    pub len: Number,
    /// Bits 0 and 1: the state; bit 2: which lists contain it; above: how many of its units are dirty.
    pub tag: Number,
    /// Free: the neighbours in the list. Used: the two halves of an [`Occupant`].
    pub next: Number,
    pub prev: Number,
}

impl Record {
    pub(crate) fn set(&self, len: u32, tag: u32, next: u32, prev: u32) {
        self.len.set(len);
        self.tag.set(tag);
        self.next.set(next);
        self.prev.set(prev);
    }
}

/// No unit.
pub(crate) const NONE: u32 = u32::MAX;

/// The state of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Used = 1,
    Free = 2,
}

/// Heads of the lists of free spans by size class: one set for spans with dirty units, one for clean spans.
#[derive(Clone, Copy)]
pub(crate) struct Lists {
    pub heads: [u32; class::COUNT],
    pub filled: [u64; class::COUNT.div_ceil(64)],
}

impl Lists {
    pub(crate) const EMPTY: Self = Self { heads: [NONE; class::COUNT], filled: [0; class::COUNT.div_ceil(64)] };
}

/// A number that is changed under the heap's lock and may be read without it.
pub(crate) struct Number(AtomicU32);

impl Number {
    pub(crate) const fn new(number: u32) -> Self {
        Self(AtomicU32::new(number))
    }

    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, number: u32) {
        self.0.store(number, Relaxed);
    }
}

/// The header of a segment: its area, which the address map leads to, and what only the holders of its blocks use.
#[repr(C)]
pub(crate) struct Segment {
    pub(crate) area: Area,
    body: Body,
}

impl std::ops::Deref for Segment {
    type Target = Body;

    #[inline]
    fn deref(&self) -> &Body {
        &self.body
    }
}

/// See [`Segment`].
pub(crate) struct Body {
    /// Whether its memory is advised huge.
    pub huge: bool,
    /// The local node of its memory; 0 on a machine with one node.
    pub local_node: u8,
    /// The address space of its metadata and units.
    pub claim: Claim,
    /// Mapped bytes of `records`, `ages` and `locality`.
    pub records_open: Cell<usize>,
    pub ages_open: Cell<usize>,
    pub locality_open: Cell<usize>,
    pub(crate) records: *mut Record,
    pub ages: *mut u8,
    /// The locality bitmap; null where locality does not matter.
    pub(crate) locality: *const AtomicU64,
    /// Number of units that have records.
    pub top: Number,
    /// Whether `top` may rise.
    pub growable: Cell<bool>,
    pub(crate) lists: [Cell<Lists>; 2],
}

// SAFETY: the cells are used under the heap's lock; fields that are read without it never change, or are atomic.
unsafe impl Sync for Segment {}
// SAFETY: as above; its owner is Send and Sync as every allocator.
unsafe impl Send for Segment {}

/// The segment and the unit that contain `address`, if it is ours.
#[inline]
pub(crate) fn find(address: usize) -> Option<(&'static Segment, u32)> {
    let (area, unit) = address_map::find(address)?;
    // SAFETY: every area in the map is the first field of a segment, entered by a pointer to all of it (`area_of`). The
    // segment is open: `address` lies within its bounds.
    Some((unsafe { area.cast::<Segment>().as_ref() }, unit))
}

/// Whether the memory at `address` was advised huge. Asks no record: those of an address in no span may not be mapped.
pub(crate) fn is_huge(address: usize) -> bool {
    find(address).is_some_and(|(segment, _)| segment.huge)
}

impl Segment {
    /// Writes a segment's header.
    ///
    /// # Safety
    /// `at` is the place of a header, with an area as [`Area::make`] requires; nothing else uses it.
    pub(crate) unsafe fn make(
        at: *mut Self,
        owner: *const dyn Allocator,
        bounds: (usize, u32, u32),
        body: Body,
    ) -> &'static Self {
        // SAFETY: `at` is the place of a header that nothing else uses (`heap/build.rs`); lookups read only the area.
        unsafe {
            (&raw mut (*at).body).write(body);
            Area::make(&raw mut (*at).area, owner, bounds);
            &*at
        }
    }

    /// The area of a segment, from which [`find`] gets back to the segment.
    ///
    /// # Safety
    /// `at` points to a segment's header.
    pub(crate) unsafe fn area_of(at: *mut Self) -> NonNull<Area> {
        // SAFETY: `at` points to a segment's header (`heap/build.rs`). The area is the first field, and the pointer
        // stays valid for the whole header.
        unsafe { NonNull::new_unchecked(at).cast() }
    }

    /// The address of unit 0.
    #[inline]
    pub(crate) fn base(&self) -> usize {
        self.area.base()
    }

    /// Bytes of a unit, as a power of two.
    #[inline]
    pub(crate) fn unit_shift(&self) -> u32 {
        self.area.unit_shift()
    }

    /// Units that the claim has room for.
    #[inline]
    pub(crate) fn capacity(&self) -> u32 {
        self.area.capacity()
    }

    #[inline]
    pub(crate) fn unit(&self) -> usize {
        1 << self.unit_shift()
    }

    #[inline]
    pub(crate) fn address(&self, unit: u32) -> usize {
        self.base() + ((unit as usize) << self.unit_shift())
    }

    /// The unit that contains `address`, if it is one of this segment's.
    #[inline]
    pub(crate) fn unit_of(&self, address: usize) -> Option<u32> {
        self.area.unit_of(address)
    }

    /// The last unit up to `unit` at which a huge page starts, or unit 0.
    pub(crate) fn huge_below(&self, unit: u32) -> u32 {
        let into = (self.address(unit) % huge_page()) >> self.unit_shift();
        unit.saturating_sub(into as u32)
    }

    /// The first unit from `unit` on at which a huge page starts.
    pub(crate) fn huge_above(&self, unit: u32) -> u32 {
        let left = self.address(unit).next_multiple_of(huge_page()) - self.address(unit);
        unit + (left >> self.unit_shift()) as u32
    }

    #[inline]
    pub(crate) fn record(&self, unit: u32) -> &Record {
        // SAFETY: units below `top` have records, which live as long as the segment; each cell of a record is used either
        // under the heap's lock or by the only holder of the used span (law 6).
        unsafe { &*self.records.add(unit as usize) }
    }

    /// The ages of `len` units from `start`.
    #[inline]
    #[allow(clippy::mut_from_ref)] // disjoint by the lock, see below
    pub(crate) fn ages(&self, start: u32, len: u32) -> &mut [u8] {
        // SAFETY: as for `record`: ages are used by the holder of the span or of the heap's lock.
        unsafe { std::slice::from_raw_parts_mut(self.ages.add(start as usize), len as usize) }
    }

    #[inline]
    pub(crate) fn state(&self, unit: u32) -> State {
        if self.record(unit).tag.get() & 3 == State::Free as u32 { State::Free } else { State::Used }
    }

    /// Number of units of the used span that starts at `unit`.
    #[inline]
    pub(crate) fn span_len(&self, unit: u32) -> u32 {
        self.record(unit).len.get()
    }

    /// The block in the used span at `unit`.
    #[inline]
    pub(crate) fn occupant(&self, unit: u32) -> Occupant {
        let record = self.record(unit);
        Occupant::from_halves(record.next.get(), record.prev.get())
    }

    #[inline]
    pub(crate) fn set_occupant(&self, unit: u32, occupant: Occupant) {
        let (record, (low, high)) = (self.record(unit), occupant.halves());
        record.next.set(low);
        record.prev.set(high);
    }

    /// Number of dirty units of the free span that starts at `unit`.
    pub(crate) fn dirty_units(&self, unit: u32) -> u32 {
        self.record(unit).tag.get() >> 3
    }

    /// Number of dirty units among `len` units from `start`.
    #[inline]
    pub(crate) fn count_dirty(&self, start: u32, len: u32) -> u32 {
        // Summed in bytes, 255 at a time, so that the compiler can vectorize.
        let sum = |chunk: &[u8]| chunk.iter().map(|&age| u8::from(age >= FIRST_EPOCH)).sum::<u8>();
        self.ages(start, len).chunks(255).map(|chunk| u32::from(sum(chunk))).sum()
    }

    /// Bytes of the units of a used span that came on huge pages and were not freed since.
    pub(crate) fn on_fresh_huge(&self, start: u32, len: u32) -> usize {
        let count = self.ages(start, len).iter().filter(|&&age| age == CLEAN_HUGE).count();
        count << self.unit_shift()
    }

    /// Bytes of the dirty units among `len` units from `start`.
    pub(crate) fn dirty_bytes(&self, start: u32, len: u32) -> usize {
        (self.count_dirty(start, len) as usize) << self.unit_shift()
    }

    /// Marks the units of a used span as dirty, freed in `epoch`.
    pub(crate) fn make_dirty(&self, start: u32, len: u32, epoch: u8) {
        self.ages(start, len).fill(epoch);
    }

    /// Calls `visit` with the start and length of every run of mapped units among `len` units from `start`.
    pub(crate) fn each_mapped_run(&self, start: u32, len: u32, mut visit: impl FnMut(u32, u32)) {
        let mut at = start;
        for run in self.ages(start, len).chunk_by(|&a, &b| (a >= CLEAN) == (b >= CLEAN)) {
            if run[0] >= CLEAN {
                visit(at, run.len() as u32);
            }
            at += run.len() as u32;
        }
    }
}
