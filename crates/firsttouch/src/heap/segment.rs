//! A segment: claimed address space cut into units of one size, with out-of-band records for the units.
//!
//! Spans of units are split when allocated, and joined with both neighbours when freed. Free ones are in lists by size class:
//! last freed first, best fit among the first few. This is bookkeeping only: mapping is up to the region.
//!
//! The units themselves are never read or written. Records exist for the units below `top`; the memory for them is mapped
//! as `top` rises. Everything except the area, which lookups read, is guarded by the heap's lock. Each unit has an age of
//! one byte.

use crate::address_map::Area;
use crate::allocator::Allocator;
use crate::heap::claim::Claim;
use crate::{address_map, os};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Which region serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageKind {
    /// Units of a base page.
    Base = 0,
    /// Units of 64 KiB on memory that is advised huge.
    Huge = 1,
}

impl PageKind {
    /// The pages of the region, unless it is said otherwise.
    pub(crate) fn pages(self) -> Fresh {
        match self {
            Self::Base => Fresh::Base,
            Self::Huge => Fresh::Huge,
        }
    }

    /// The page size of the region.
    pub(crate) fn page(self) -> usize {
        match self {
            Self::Base => os::page_size(),
            Self::Huge => huge_page(),
        }
    }

    /// Bytes of a unit of the region.
    pub(crate) fn unit(self) -> usize {
        match self {
            Self::Base => os::page_size(),
            Self::Huge => os::page_size().max(1 << HUGE_UNIT_SHIFT),
        }
    }
}

/// On which pages memory comes that is not mapped yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// Base pages.
    Base,
    /// Huge pages, in whole ones.
    Huge,
    /// Huge pages where they lie in the block as a whole, except at its start: as with NumPy's own arrays, who touches only
    /// the first bytes or the last ones gets base pages.
    Inner,
}

/// The size of a unit in the region for huge pages, as a power of two: small enough that arrays share huge pages.
const HUGE_UNIT_SHIFT: u32 = 16;
/// Bytes mapped at a time in the region for base pages.
const SMALL_EXTENT: usize = 1 << 20;

/// The page size of the region for huge pages.
pub(crate) fn huge_page() -> usize {
    os::huge_page_size().unwrap_or(2 << 20).max(1 << HUGE_UNIT_SHIFT)
}

/// The pages of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The size of a unit in bytes, as a power of two.
    pub unit_shift: u32,
    /// Bytes that are mapped at a time; a multiple of the unit.
    pub extent: usize,
    /// The page size in bytes. What is purged is a multiple of it.
    pub page: usize,
    /// Whether the memory is advised huge.
    pub huge: bool,
    /// The node whose threads it serves.
    pub node: u8,
}

impl Shape {
    /// The shape of a region for base pages.
    pub(crate) fn small(node: u8) -> Self {
        let page = os::page_size();
        Self {
            unit_shift: PageKind::Base.unit().trailing_zeros(),
            extent: SMALL_EXTENT.max(page),
            page,
            huge: false,
            node,
        }
    }

    /// The shape of a region for huge pages.
    pub(crate) fn huge(node: u8) -> Self {
        let page = huge_page();
        Self { unit_shift: PageKind::Huge.unit().trailing_zeros(), extent: page, page, huge: true, node }
    }
}

/// The unit is not mapped.
pub(crate) const UNMAPPED: u8 = 0;
/// The unit is mapped and reads zero.
pub(crate) const CLEAN: u8 = 1;
/// The same, on a huge page: reading or writing it makes its neighbours real, too.
pub(crate) const CLEAN_HUGE: u8 = 2;
/// The first epoch. Ages from here on say in which epoch a dirty unit was freed.
pub(crate) const FIRST_EPOCH: u8 = 3;
/// Number of epochs, after which they wrap around.
const EPOCHS: u8 = u8::MAX - FIRST_EPOCH + 1;

/// The epoch after `epoch`.
pub(crate) fn next_epoch(epoch: u8) -> u8 {
    if epoch == u8::MAX { FIRST_EPOCH } else { epoch + 1 }
}

/// Epochs from a dirty unit's age until now.
pub(crate) fn ticks_since(age: u8, now: u8) -> u8 {
    if now >= age { now - age } else { EPOCHS - (age - now) }
}

/// The requested size in bytes, where in the span the block begins, a note of its allocator, and whether a keeper may list it,
/// packed in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occupant(u64);

impl Occupant {
    const ASKED_BITS: u32 = 48;
    const OFFSET_BITS: u32 = 8;
    const NOTE_BITS: u32 = 7;
    const LISTED: u64 = 1 << (Self::ASKED_BITS + Self::OFFSET_BITS + Self::NOTE_BITS);
    const LINE: usize = 64;

    /// No block.
    pub(crate) const NONE: Self = Self(0);

    /// A block of `asked` bytes; its offset is less than 16 KiB and a multiple of a cache line.
    #[inline]
    pub(crate) fn new(asked: usize, offset: usize, note: u8) -> Self {
        let lines = (offset / Self::LINE) as u64;
        Self(asked as u64 | lines << Self::ASKED_BITS | u64::from(note) << (Self::ASKED_BITS + Self::OFFSET_BITS))
    }

    #[inline]
    pub(crate) fn asked(self) -> usize {
        (self.0 & ((1 << Self::ASKED_BITS) - 1)) as usize
    }

    #[inline]
    pub(crate) fn offset(self) -> usize {
        (self.0 >> Self::ASKED_BITS) as usize % (1 << Self::OFFSET_BITS) * Self::LINE
    }

    /// The allocator's note, less than 128.
    pub(crate) fn note(self) -> u8 {
        (self.0 >> (Self::ASKED_BITS + Self::OFFSET_BITS)) as u8 % (1 << Self::NOTE_BITS)
    }

    /// Whether a keeper may list the block, or what lies in it.
    #[inline]
    pub(crate) fn is_listed(self) -> bool {
        self.0 & Self::LISTED != 0
    }

    /// The same block, which a keeper may list.
    pub(crate) fn listed(self) -> Self {
        Self(self.0 | Self::LISTED)
    }

    /// The same block with another size.
    pub(crate) fn resized(self, asked: usize) -> Self {
        Self(self.0 >> Self::ASKED_BITS << Self::ASKED_BITS | asked as u64)
    }

    /// The low and the high 32 bits.
    #[inline]
    pub(crate) fn halves(self) -> (u32, u32) {
        (self.0 as u32, (self.0 >> 32) as u32)
    }

    #[inline]
    pub(crate) fn from_halves(low: u32, high: u32) -> Self {
        Self(u64::from(low) | u64::from(high) << 32)
    }
}

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
pub(crate) enum SpanState {
    Used = 1,
    Free = 2,
}

/// Heads of the lists of free spans by size class: one set for spans with dirty units, one for clean spans.
#[derive(Clone, Copy)]
pub(crate) struct Lists {
    pub heads: [u32; CLASSES],
    pub filled: [u64; CLASSES.div_ceil(64)],
}

impl Lists {
    pub(crate) const EMPTY: Self = Self { heads: [NONE; CLASSES], filled: [0; CLASSES.div_ceil(64)] };
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
    /// The node whose threads it serves.
    pub node: u8,
    /// The address space of its metadata and units.
    pub claim: Claim,
    /// Mapped bytes of `records` and `ages`.
    pub records_open: Cell<usize>,
    pub ages_open: Cell<usize>,
    pub(crate) records: *mut Record,
    pub ages: *mut u8,
    /// Number of units that have records.
    pub top: Number,
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
        // SAFETY: `at` is the place of a header that nothing else uses (`heap/claim.rs`); lookups read only the area.
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
        // SAFETY: `at` points to a segment's header (`heap/claim.rs`). The area is the first field, and the pointer
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
    pub(crate) fn state(&self, unit: u32) -> SpanState {
        if self.record(unit).tag.get() & 3 == SpanState::Free as u32 { SpanState::Free } else { SpanState::Used }
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

// ---- Spans

impl Segment {
    fn mark_used(&self, start: u32, len: u32) {
        self.record(start + len - 1).set(len, SpanState::Used as u32, 0, 0);
        self.record(start).set(len, SpanState::Used as u32, 0, 0);
    }

    /// Allocates `len` units from one free span, of the first of `sides` that has one, so many bytes `before` a multiple of
    /// `align`. Returns the first unit, and how many of the units are dirty.
    pub(crate) fn take(&self, len: u32, (align, before): (usize, usize), sides: &[Side]) -> Option<(u32, u32)> {
        let extra = (align >> self.unit_shift()).saturating_sub(1) as u32;
        let wanted = len.checked_add(extra)?;
        let found = sides.iter().find_map(|&side| self.find(side, wanted))?;
        let (total, dirty) = self.unlist(found);
        let dirty_of = |start, len| match dirty {
            0 => 0,
            all if all == total => len,
            _ => self.count_dirty(start, len),
        };
        let from = self.address(found) + before;
        let padding = from.next_multiple_of(align) - from;
        let mut skip = (padding >> self.unit_shift()) as u32;
        if extra == 0 && (0 < dirty && dirty < total) {
            // Partly dirty: from the end that has more of the preferred kind, or where the dirty units begin.
            let (low, high) = (dirty_of(found, len), dirty_of(found + total - len, len));
            let from_above = if sides[0] == Side::Dirty { high > low } else { high < low };
            skip = if from_above { total - len } else { 0 };
            if sides[0] == Side::Dirty && low.max(high) < len.min(dirty) {
                let first = self.ages(found, total.min(LOOK_FOR_DIRTY)).iter().position(|&age| age >= FIRST_EPOCH);
                let begins = first.map_or(total, |first| first as u32);
                if begins <= total - len && dirty_of(found + begins, len) > low.max(high) {
                    skip = begins;
                }
            }
        }
        let start = found + skip;
        let behind = total - skip - len;
        let its = dirty_of(start, len);
        let before = if behind == 0 { dirty - its } else { dirty_of(found, skip) }; // a long span is counted in part
        if skip > 0 {
            self.list(found, skip, before);
        }
        if behind > 0 {
            self.list(start + len, behind, dirty - before - its);
        }
        self.mark_used(start, len);
        Some((start, its))
    }

    /// Frees used units, `dirty` of them dirty, and joins them with their free neighbours.
    pub(crate) fn give(&self, start: u32, len: u32, dirty: u32) {
        let (mut start, mut len, mut dirty) = (start, len, dirty);
        let end = start + len;
        if end < self.top.get() && self.state(end) == SpanState::Free {
            let (more, its) = self.unlist(end);
            len += more;
            dirty += its;
        }
        if start > 0 && self.state(start - 1) == SpanState::Free {
            let (more, its) = self.unlist(start - self.record(start - 1).len.get());
            start -= more;
            len += more;
            dirty += its;
        }
        self.list(start, len, dirty);
    }

    /// The start of the free span that ends at `unit`, or `unit` if there is none.
    pub(crate) fn free_before(&self, unit: u32) -> u32 {
        if unit > 0 && self.state(unit - 1) == SpanState::Free { unit - self.record(unit - 1).len.get() } else { unit }
    }

    /// The end of the free span that starts at `unit`, or `unit` if there is none.
    pub(crate) fn free_behind(&self, unit: u32) -> u32 {
        if unit < self.top.get() && self.state(unit) == SpanState::Free {
            unit + self.record(unit).len.get()
        } else {
            unit
        }
    }

    /// Splits the used span at `start` after `keep` units into two used spans.
    pub(crate) fn cut(&self, start: u32, keep: u32) {
        let (len, occupant) = (self.span_len(start), self.occupant(start));
        self.mark_used(start + keep, len - keep);
        self.mark_used(start, keep);
        self.set_occupant(start, occupant);
    }

    /// Marks the unmapped units of a used span as permanently used, and frees the rest.
    pub(crate) fn keep_out(&self, start: u32, len: u32) {
        let (mut at, end) = (start, start + len);
        while at < end {
            let ages = self.ages(at, end - at);
            let mapped = ages[0] != UNMAPPED;
            let run = ages.iter().take_while(|&&age| (age != UNMAPPED) == mapped).count() as u32;
            if at + run < end {
                self.cut(at, run);
            }
            if mapped {
                self.give(at, run, self.count_dirty(at, run));
            }
            at += run;
        }
    }

    /// Extends the used span at `start` to `len` units by the free units behind it. Returns how many of those are dirty.
    pub(crate) fn extend(&self, start: u32, len: u32) -> Option<u32> {
        let (old, occupant) = (self.span_len(start), self.occupant(start));
        let end = start + old;
        let more = len - old;
        if end >= self.top.get() || self.state(end) != SpanState::Free || self.record(end).len.get() < more {
            return None;
        }
        let (free, dirty) = self.unlist(end);
        let its = self.count_dirty(end, more);
        if free > more {
            self.list(end + more, free - more, dirty - its);
        }
        self.mark_used(start, len);
        self.set_occupant(start, occupant);
        Some(its)
    }

    /// Turns a part of a free span into a used span; the rest stays free.
    pub(crate) fn carve(&self, span: u32, start: u32, len: u32) {
        let (total, dirty) = self.unlist(span);
        let behind = span + total - start - len;
        let (before, its) = (self.count_dirty(span, start - span), self.count_dirty(start, len));
        if start > span {
            self.list(span, start - span, before);
        }
        if behind > 0 {
            self.list(start + len, behind, dirty - before - its);
        }
        self.mark_used(start, len);
    }

    /// The free span that ends at the top, if there is one.
    pub(crate) fn free_at_top(&self) -> Option<(u32, u32)> {
        let top = self.top.get();
        if top == 0 || self.state(top - 1) != SpanState::Free {
            return None;
        }
        let len = self.record(top - 1).len.get();
        Some((top - len, len))
    }

    /// Links a used span without a block to another one: what a purge has taken out is a list in the records.
    pub(crate) fn link(&self, start: u32, next: Option<u32>) {
        self.record(start).tag.set(SpanState::Used as u32 | next.unwrap_or(NONE >> 3) << 3);
    }

    /// The span that a span is linked to.
    pub(crate) fn linked(&self, start: u32) -> Option<u32> {
        Some(self.record(start).tag.get() >> 3).filter(|&next| next != NONE >> 3)
    }

    /// The first free span of a class on one side.
    pub(crate) fn first_of(&self, side: Side, class: usize) -> Option<u32> {
        Some(self.lists(side).heads[class]).filter(|&unit| unit != NONE)
    }

    /// The free span behind another one in its list.
    pub(crate) fn next_of(&self, span: u32) -> Option<u32> {
        Some(self.record(span).next.get()).filter(|&unit| unit != NONE)
    }
}

/// Number of units of a free span that are examined for the first dirty one: what lies before a block on huge pages is less.
const LOOK_FOR_DIRTY: u32 = 64;

/// Number of spans of a class that are examined for the best fit.
const LOOK: usize = 64;

/// Which set of lists: spans with dirty units, or clean ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Clean = 0,
    Dirty = 1,
}

impl Segment {
    #[allow(clippy::mut_from_ref)] // exclusive by the lock, see below
    fn lists(&self, side: Side) -> &mut Lists {
        // SAFETY: the heap's lock is held (`list`, `unlist` and `find`), and no other reference to these lists lives
        // (law 6).
        unsafe { &mut *self.lists[side as usize].as_ptr() }
    }

    /// Marks a span as free, with `dirty` dirty units, and puts it at the head of its list.
    pub(crate) fn list(&self, start: u32, len: u32, dirty: u32) {
        let side = if dirty > 0 { Side::Dirty } else { Side::Clean };
        let tag = SpanState::Free as u32 | (side as u32) << 2 | dirty << 3;
        let lists = self.lists(side);
        let class = class_of(len);
        let next = lists.heads[class];
        self.record(start + len - 1).set(len, tag, NONE, NONE);
        self.record(start).set(len, tag, next, NONE);
        if next != NONE {
            self.record(next).prev.set(start);
        }
        lists.heads[class] = start;
        lists.filled[class / 64] |= 1 << (class % 64);
    }

    /// Removes the free span at `start` from its list. Returns its length and its number of dirty units.
    pub(crate) fn unlist(&self, start: u32) -> (u32, u32) {
        let record = self.record(start);
        let (len, tag, next, prev) = (record.len.get(), record.tag.get(), record.next.get(), record.prev.get());
        let side = if tag & 4 != 0 { Side::Dirty } else { Side::Clean };
        let lists = self.lists(side);
        let class = class_of(len);
        if prev == NONE {
            lists.heads[class] = next;
            if next == NONE {
                lists.filled[class / 64] &= !(1 << (class % 64));
            }
        } else {
            self.record(prev).next.set(next);
        }
        if next != NONE {
            self.record(next).prev.set(prev);
        }
        (len, tag >> 3)
    }

    /// The best fit among the first spans of at least `len` units on one side.
    pub(crate) fn find(&self, side: Side, len: u32) -> Option<u32> {
        let lists = self.lists(side);
        let mut class = class_of(len);
        while class < CLASSES {
            let rest = lists.filled[class / 64] >> (class % 64);
            if rest == 0 {
                class = (class / 64 + 1) * 64;
                continue;
            }
            class += rest.trailing_zeros() as usize;
            if let Some(found) = self.best_in_list(lists.heads[class], len) {
                return Some(found);
            }
            class += 1; // the class of `len` itself may hold only shorter spans
        }
        None
    }

    fn best_in_list(&self, head: u32, len: u32) -> Option<u32> {
        let mut best: Option<(u32, u32)> = None;
        let mut unit = head;
        for _ in 0..LOOK {
            if unit == NONE {
                break;
            }
            let its = self.record(unit).len.get();
            if its == len {
                return Some(unit);
            }
            if its > len && best.is_none_or(|(shortest, _)| its < shortest) {
                best = Some((its, unit));
            }
            unit = self.record(unit).next.get();
        }
        best.map(|(_, unit)| unit)
    }
}

/// Number of classes.
pub(crate) const CLASSES: usize = 248;

/// The class of spans of `len` units.
#[inline]
pub(crate) const fn class_of(len: u32) -> usize {
    if len < 32 {
        return len as usize;
    }
    let power = 31 - len.leading_zeros();
    let eighth = (len >> (power - 3)) & 7;
    (32 + (power - 5) * 8 + eighth) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_offset_and_note_survive_the_halves() {
        for (asked, offset, note) in [(1, 0, 0), (u32::MAX as usize + 7, 3520, 127), ((1 << 47) - 1, 16320, 3)] {
            let (low, high) = Occupant::new(1, offset, note).resized(asked).halves();
            for found in [Occupant::from_halves(low, high), Occupant::from_halves(low, high).listed()] {
                assert_eq!((found.asked(), found.offset(), found.note()), (asked, offset, note));
            }
        }
    }

    #[test]
    fn classes_rise_with_length_and_fit_the_table() {
        let mut last = 0;
        for len in (1..100_000).chain((17..32).flat_map(|p| [(1u32 << p) - 1, 1 << p, (1 << p) + 1])) {
            assert!(class_of(len) >= last && class_of(len) < CLASSES, "{len}");
            last = class_of(len);
        }
        assert_eq!(class_of(u32::MAX), CLASSES - 1);
    }
}
