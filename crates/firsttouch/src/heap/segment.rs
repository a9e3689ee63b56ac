//! A segment: a claim of address space cut into units of one size, with a record for each unit beside them.
//!
//! Nothing is ever read from or written to the units themselves. Records exist for the units below `top`; the memory
//! for them is opened as `top` rises. All but the bounds, which lookups read, is guarded by the heap's lock.

use crate::allocator::Allocator;
use crate::heap::ages::{CLEAN, FIRST_EPOCH};
use crate::heap::class;
use crate::heap::shape::huge_page;
use crate::vm::address_map;
use crate::vm::area::Area;
use crate::vm::claim::Claim;
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// What is known about one unit. A span's length and state stand in its first and in its last unit.
///
/// Cells, because the holder of a used span may change its `next` and `prev` while whoever has the heap's lock reads
/// its `len` and `tag`.
#[repr(C)]
pub(crate) struct Record {
    pub len: Cell<u32>,
    /// Bits 0 and 1: the state; bit 2: which lists hold it; above: how many of its units are dirty.
    pub tag: Cell<u32>,
    /// Free: the neighbours in the list. Used: together, the bytes asked for.
    pub next: Cell<u32>,
    pub prev: Cell<u32>,
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

/// What a span is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Used = 1,
    Free = 2,
}

/// Lists of free spans by class: one set for spans of which some is dirty, one for those that are clean.
#[derive(Clone, Copy)]
pub(crate) struct Lists {
    pub heads: [u32; class::COUNT],
    pub filled: [u64; class::COUNT.div_ceil(64)],
}

impl Lists {
    pub(crate) const EMPTY: Self = Self { heads: [NONE; class::COUNT], filled: [0; class::COUNT.div_ceil(64)] };
}

/// A number that changes under the heap's lock and may be read without it.
pub(crate) struct Top(AtomicU32);

impl Top {
    pub(crate) const fn new(top: u32) -> Self {
        Self(AtomicU32::new(top))
    }

    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }

    pub(crate) fn set(&self, top: u32) {
        self.0.store(top, Relaxed);
    }
}

/// A segment's header: its area, which the address map leads to, and all that only those use who hold blocks in it.
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
    /// Whether huge pages are asked for.
    pub huge: bool,
    /// The local node of its memory; the first where there is one only.
    pub local_node: u8,
    /// Its address space, metadata and units together.
    pub claim: Claim,
    /// Bytes of `records`, `ages` and `locality` that are opened.
    pub records_open: Cell<usize>,
    pub ages_open: Cell<usize>,
    pub locality_open: Cell<usize>,
    pub(crate) records: *mut Record,
    pub ages: *mut u8,
    /// The locality bitmap; null where locality does not matter.
    pub(crate) locality: *const AtomicU64,
    /// Units that were ever opened; all have records.
    pub top: Top,
    /// Whether `top` may rise.
    pub growable: Cell<bool>,
    pub(crate) lists: [Cell<Lists>; 2],
}

// SAFETY: the cells and the records are used under the heap's lock; what is read without it never changes.
unsafe impl Sync for Segment {}
// SAFETY: as above; its owner is Send and Sync as every allocator.
unsafe impl Send for Segment {}

/// The segment and the unit that hold `address`, if it is ours.
#[inline]
pub(crate) fn find(address: usize) -> Option<(&'static Segment, u32)> {
    let (area, unit) = address_map::find(address)?;
    // SAFETY: every area in the map is the first field of a segment, entered by a pointer to all of it (`area_of`). The
    // segment is open: `address` lies within its bounds.
    Some((unsafe { area.cast::<Segment>().as_ref() }, unit))
}

impl Segment {
    /// Makes a segment in the place of a header.
    ///
    /// # Safety
    /// `at` is a header's place, whose bounds are valid and name no unit; nobody uses the rest of it.
    pub(crate) unsafe fn make(
        at: *mut Self,
        owner: *const dyn Allocator,
        bounds: (usize, u32, u32),
        body: Body,
    ) -> &'static Self {
        // SAFETY: the caller's promise; lookups read the area alone.
        unsafe {
            (&raw mut (*at).body).write(body);
            Area::make(&raw mut (*at).area, owner, bounds);
            &*at
        }
    }

    /// The area of a segment, by which [`find`] knows it again.
    ///
    /// # Safety
    /// `at` is a segment's place.
    pub(crate) unsafe fn area_of(at: *mut Self) -> NonNull<Area> {
        // SAFETY: the caller's promise. The pointer stays one to the whole header, of which the area is the first field.
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

    /// The unit that `address` lies in, if it is one of this segment's.
    #[inline]
    pub(crate) fn unit_of(&self, address: usize) -> Option<u32> {
        self.area.unit_of(address)
    }

    /// The last unit up to `unit` at which a huge page begins, or the first unit.
    pub(crate) fn huge_below(&self, unit: u32) -> u32 {
        let into = (self.address(unit) % huge_page()) >> self.unit_shift();
        unit.saturating_sub(into as u32)
    }

    /// The first unit from `unit` on at which a huge page begins.
    pub(crate) fn huge_above(&self, unit: u32) -> u32 {
        let left = self.address(unit).next_multiple_of(huge_page()) - self.address(unit);
        unit + (left >> self.unit_shift()) as u32
    }

    #[inline]
    pub(crate) fn record(&self, unit: u32) -> &Record {
        // SAFETY: units below `top` have records, which live as long as the segment; each of a record's cells is used
        // either under the heap's lock or by the used span's one holder (law 6).
        unsafe { &*self.records.add(unit as usize) }
    }

    /// The ages of `len` units from `start`.
    #[inline]
    #[allow(clippy::mut_from_ref)] // disjoint by the lock, see below
    pub(crate) fn ages(&self, start: u32, len: u32) -> &mut [u8] {
        // SAFETY: as for `record`: ages are used by whoever holds the span or the heap's lock.
        unsafe { std::slice::from_raw_parts_mut(self.ages.add(start as usize), len as usize) }
    }

    #[inline]
    pub(crate) fn state(&self, unit: u32) -> State {
        if self.record(unit).tag.get() & 3 == State::Free as u32 { State::Free } else { State::Used }
    }

    /// Units of the used span that begins at `unit`.
    #[inline]
    pub(crate) fn span_len(&self, unit: u32) -> u32 {
        self.record(unit).len.get()
    }

    /// Bytes that were asked for by the holder of the used span at `unit`.
    #[inline]
    pub(crate) fn asked(&self, unit: u32) -> usize {
        let record = self.record(unit);
        record.next.get() as usize | (record.prev.get() as usize) << 32
    }

    #[inline]
    pub(crate) fn set_asked(&self, unit: u32, bytes: usize) {
        let record = self.record(unit);
        record.next.set(bytes as u32);
        record.prev.set((bytes >> 32) as u32);
    }

    /// How many units of the free span that begins at `unit` are dirty.
    pub(crate) fn dirty_units(&self, unit: u32) -> u32 {
        self.record(unit).tag.get() >> 3
    }

    /// How many of `len` units from `start` are dirty.
    #[inline]
    pub(crate) fn count_dirty(&self, start: u32, len: u32) -> u32 {
        // Bytes are summed in bytes, as far as that is safe, so that the compiler can use vectors.
        let sum = |chunk: &[u8]| chunk.iter().map(|&age| u8::from(age >= FIRST_EPOCH)).sum::<u8>();
        self.ages(start, len).chunks(255).map(|chunk| u32::from(sum(chunk))).sum()
    }

    /// The same in bytes.
    pub(crate) fn dirty_bytes(&self, start: u32, len: u32) -> usize {
        (self.count_dirty(start, len) as usize) << self.unit_shift()
    }

    /// Lets the ages of a used span's units say that they are dirty, freed in `epoch`.
    pub(crate) fn make_dirty(&self, start: u32, len: u32, epoch: u8) {
        self.ages(start, len).fill(epoch);
    }

    /// Calls `visit` with the start and length of every run of dirty units among `len` units from `start`.
    pub(crate) fn each_dirty_run(&self, start: u32, len: u32, visit: impl FnMut(u32, u32)) {
        self.each_run(start, len, FIRST_EPOCH, visit);
    }

    /// The same for units that are mapped.
    pub(crate) fn each_mapped_run(&self, start: u32, len: u32, visit: impl FnMut(u32, u32)) {
        self.each_run(start, len, CLEAN, visit);
    }

    fn each_run(&self, start: u32, len: u32, least: u8, mut visit: impl FnMut(u32, u32)) {
        let mut at = start;
        for run in self.ages(start, len).chunk_by(|&a, &b| (a >= least) == (b >= least)) {
            if run[0] >= least {
                visit(at, run.len() as u32);
            }
            at += run.len() as u32;
        }
    }
}
