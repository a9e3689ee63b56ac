//! A segment: claimed address space cut into units of one size, with out-of-band records for the units.
//!
//! Spans of units are split when allocated, and joined with both neighbors when freed. Free ones are in lists by size class:
//! last freed first, best fit among the first few. This is bookkeeping only: mapping is up to the region.
//!
//! The units themselves are never read or written. Each has an age of one byte, and a record if it is below `top`; the memory for
//! these is mapped as `top` rises. Who may touch what:
//!
//! | what | is written | is read |
//! |---|---|---|
//! | `base`, `size`, `claim` | under the claims' lock | under the same; the first two also without a lock |
//! | `top`, `len`, `tag` | under the region's lock | under the same; also without it, by lookups and by the span's holder |
//! | `heads`, `records_open`, `ages_open`; a free span's other fields and ages | under the region's lock | under the same |
//! | a used span's other fields and ages | by its holder | by the same; fields by lookups, who guess if another may free it |
//! | all else | when opened; `is_orphan` when the owner goes | without a lock |

use crate::allocator::Allocator;
use crate::os;
use crate::policy::{BASE_EXTENT, BEST_FIT, FIRST_DIRTY, HUGE_UNIT, LINE};
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

/// Which region serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegionKind {
    /// Units of a base page.
    Base = 0,
    /// Units of 64 KiB on memory that is advised huge.
    Huge = 1,
}

impl RegionKind {
    /// The pages that the region's memory comes on by default.
    pub(crate) fn pages(self) -> FreshPages {
        if self == Self::Huge { FreshPages::Huge } else { FreshPages::Base }
    }

    /// The page size of the region. What is purged is a multiple of it.
    pub(crate) fn page(self) -> usize {
        if self == Self::Huge { huge_page() } else { os::page_size() }
    }

    /// Bytes of a unit of the region. Those for huge pages are so small that arrays share huge pages.
    pub(crate) fn unit(self) -> usize {
        if self == Self::Huge { os::page_size().max(HUGE_UNIT) } else { os::page_size() }
    }

    /// Bytes that are mapped at a time; a multiple of the page.
    pub(crate) fn extent(self) -> usize {
        self.page().max(BASE_EXTENT)
    }
}

/// The page size of the region for huge pages.
pub(crate) fn huge_page() -> usize {
    os::huge_page_size().unwrap_or(2 << 20).max(HUGE_UNIT)
}

/// On which pages memory comes that is not mapped yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreshPages {
    /// Base pages.
    Base,
    /// Huge pages, in whole ones.
    Huge,
    /// Huge pages inside the block, and base pages at its start and its end: as with NumPy's own arrays, to touch only the first
    /// bytes or the last ones takes base pages.
    Inner,
}

/// Where a span may begin: so many bytes before a multiple of `align`.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub align: usize,
    pub before: usize,
}

impl From<usize> for Place {
    fn from(align: usize) -> Self {
        Self { align, before: 0 }
    }
}

/// The unit is not mapped.
pub(crate) const UNMAPPED: u8 = 0;
/// The unit is mapped and reads zero.
pub(crate) const CLEAN: u8 = 1;
/// The unit is mapped where huge pages were asked for, and reads zero. To use it makes its neighbors resident, too.
pub(crate) const CLEAN_HUGE: u8 = 2;
/// The first epoch. Ages from here on say in which epoch a dirty unit was freed.
pub(crate) const FIRST_EPOCH: u8 = 3;
/// Number of epochs, after which they wrap around.
const EPOCHS: u8 = u8::MAX - FIRST_EPOCH + 1;

/// The age of units that are freed in an epoch.
pub(crate) fn age_of(epoch: u32) -> u8 {
    FIRST_EPOCH + (epoch % u32::from(EPOCHS)) as u8
}

/// Epochs from a dirty unit's age until now.
pub(crate) fn epochs_since(age: u8, now: u8) -> u8 {
    if now >= age { now - age } else { EPOCHS - (age - now) }
}

/// The requested size in bytes, where in the span the block begins, a tag of its allocator, how often the block moved with its
/// pages, and whether a keeper may list it, packed in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occupant(u64);

impl Occupant {
    const ASKED_BITS: u32 = 48;
    const OFFSET_BITS: u32 = 8;
    pub(crate) const TAG_BITS: u32 = 3;
    const MOVED: u64 = 1 << (Self::ASKED_BITS + Self::OFFSET_BITS + Self::TAG_BITS);
    const LISTED: u64 = 1 << 63;
    /// The most moves that are counted.
    pub(crate) const MOST_MOVES: usize = (Self::LISTED / Self::MOVED) as usize - 1;

    /// No block.
    pub(crate) const NONE: Self = Self(0);

    /// A block of `asked` bytes; its offset is less than 16 KiB and a multiple of a cache line.
    #[inline]
    pub(crate) fn new(asked: usize, offset: usize, tag: u8) -> Self {
        let lines = (offset / LINE) as u64;
        Self(asked as u64 | lines << Self::ASKED_BITS | u64::from(tag) << (Self::ASKED_BITS + Self::OFFSET_BITS))
    }

    #[inline]
    pub(crate) fn asked(self) -> usize {
        (self.0 & ((1 << Self::ASKED_BITS) - 1)) as usize
    }

    #[inline]
    pub(crate) fn offset(self) -> usize {
        (self.0 >> Self::ASKED_BITS) as usize % (1 << Self::OFFSET_BITS) * LINE
    }

    /// The allocator's tag, less than 8.
    pub(crate) fn tag(self) -> u8 {
        (self.0 >> (Self::ASKED_BITS + Self::OFFSET_BITS)) as u8 % (1 << Self::TAG_BITS)
    }

    /// How often the block took its pages along.
    pub(crate) fn moves(self) -> usize {
        (self.0 % Self::LISTED / Self::MOVED) as usize
    }

    /// The same block, which has moved once more, less often than [`Self::MOST_MOVES`] before.
    pub(crate) fn moved(self) -> Self {
        Self(self.0 + Self::MOVED)
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
}

/// The record of one unit. The length and state of a span stand in the records of its first and its last unit.
#[repr(C)]
pub(crate) struct Record {
    pub len: SharedU32,
    /// Free: 1, and above that bit how many of its units are dirty. Used: 0, and above that bit its link.
    pub tag: SharedU32,
    /// Free: the neighbors in the list. Used: the two halves of an [`Occupant`].
    pub next_or_low: SharedU32,
    pub prev_or_high: SharedU32,
}

impl Record {
    pub(crate) fn set(&self, len: u32, tag: u32, next: u32, prev: u32) {
        self.len.set(len);
        self.tag.set(tag);
        self.next_or_low.set(next);
        self.prev_or_high.set(prev);
    }
}

/// No unit.
pub(crate) const NO_UNIT: u32 = u32::MAX;

/// A number that may be read while another thread changes it.
pub(crate) struct SharedU32(AtomicU32);

impl SharedU32 {
    pub(crate) const fn new(number: u32) -> Self {
        Self(AtomicU32::new(number))
    }

    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// The unit that it names, if any.
    #[inline]
    pub(crate) fn unit(&self) -> Option<u32> {
        Some(self.get()).filter(|&unit| unit != NO_UNIT)
    }

    #[inline]
    pub(crate) fn set(&self, number: u32) {
        self.0.store(number, Relaxed);
    }
}

/// The header of a segment. Headers are never unmapped, so that lookups may read the bounds at any time, also while the segment is
/// closed and opened again: no block at their address is live then, so any mix of old and new bounds is correct.
#[repr(C)]
pub(crate) struct Segment {
    /// The address of unit 0.
    base: AtomicUsize,
    /// Bytes of all units that the claim has room for; 0 where the segment is closed.
    size: AtomicUsize,
    body: UnsafeCell<MaybeUninit<Body>>,
}

/// See [`Segment`].
#[repr(C)] // what lookups read comes first
pub(crate) struct Body {
    /// Bytes of a unit, as a power of two.
    pub unit_shift: u32,
    pub kind: RegionKind,
    /// The node whose threads it serves.
    pub node: u8,
    /// The allocator that all blocks belong to, and whether it no longer exists, so that they are never freed.
    pub owner: *const dyn Allocator,
    pub is_orphan: AtomicBool,
    /// Bytes of the claim, which begins with this header; 0 where it cannot be another segment's.
    pub claim: Cell<usize>,
    /// Mapped bytes of `records` and `ages`.
    pub records_open: Cell<usize>,
    pub ages_open: Cell<usize>,
    pub(crate) records: *mut Record,
    pub ages: *const Cell<u8>,
    /// Number of units that have records.
    pub top: SharedU32,
    /// The first free span of each size class, clean and with dirty units.
    pub heads: [[SharedU32; CLASSES]; 2],
}

// SAFETY: what is neither atomic nor a cell is written by `open` alone, before any thread uses the body (see `deref`), and two threads
// never use a cell at once: see the table above.
unsafe impl Sync for Segment {}

impl std::ops::Deref for Segment {
    type Target = Body;

    #[inline]
    fn deref(&self) -> &Body {
        // SAFETY: a heap has the segment open, or a lookup saw a size, which `open` stores last, so there is a body. What remains: a
        // lookup of an address without a live block that is overtaken by `claim::close` is a data race with the next `open`, and
        // may fault at a record that is unmapped by then.
        unsafe { (*self.body.get()).assume_init_ref() }
    }
}

impl Segment {
    pub(crate) fn is_closed(&self) -> bool {
        self.size.load(Relaxed) == 0
    }

    /// Opens a closed segment, whose units begin at `base`.
    ///
    /// # Safety
    /// It is closed, nobody else opens it, and its claim is its own.
    pub(crate) unsafe fn open(&self, base: usize, size: usize, body: Body) {
        // SAFETY: it is closed, so that nobody refers to its body.
        unsafe { (*self.body.get()).write(body) };
        self.base.store(base, Release);
        self.size.store(size, Release);
    }

    /// Closes the segment: lookups find no unit in it, and no record. Returns how many units had one.
    pub(crate) fn close(&self) -> u32 {
        self.size.store(0, Release);
        self.top.0.swap(0, Relaxed)
    }

    /// The owner, unless it no longer exists. Callers keep it while they follow the pointer.
    #[inline]
    pub(crate) fn owner_pointer(&self) -> Option<*const dyn Allocator> {
        (!self.is_orphan.load(Acquire)).then_some(self.owner)
    }

    /// The unit that contains `address`, if it is in the segment.
    #[inline]
    pub(crate) fn unit_of(&self, address: usize) -> Option<u32> {
        let size = self.size.load(Acquire);
        let into = address.wrapping_sub(self.base.load(Relaxed));
        (into < size).then(|| (into >> self.unit_shift) as u32)
    }

    #[inline]
    pub(crate) fn unit(&self) -> usize {
        1 << self.unit_shift
    }

    /// The size of `units` units in bytes.
    #[inline]
    pub(crate) fn bytes(&self, units: u32) -> usize {
        (units as usize) << self.unit_shift
    }

    #[inline]
    pub(crate) fn address(&self, unit: u32) -> usize {
        self.base.load(Relaxed) + self.bytes(unit)
    }

    /// Units that the claim has room for.
    pub(crate) fn capacity(&self) -> u32 {
        (self.size.load(Relaxed) >> self.unit_shift) as u32
    }

    /// The last unit up to `unit` at which a huge page starts, or unit 0.
    pub(crate) fn huge_below(&self, unit: u32) -> u32 {
        let into = (self.address(unit) % huge_page()) >> self.unit_shift;
        unit.saturating_sub(into as u32)
    }

    /// The first unit from `unit` on at which a huge page starts.
    pub(crate) fn huge_above(&self, unit: u32) -> u32 {
        let left = self.address(unit).next_multiple_of(huge_page()) - self.address(unit);
        unit + (left >> self.unit_shift) as u32
    }

    #[inline]
    pub(crate) fn record(&self, unit: u32) -> &Record {
        // SAFETY: a unit of a span lies below `top`, so its record is mapped as long as the segment is open; all in it is atomic.
        unsafe { &*self.records.add(unit as usize) }
    }

    /// The ages of `len` units from `start`.
    #[inline]
    pub(crate) fn ages(&self, start: u32, len: u32) -> &[Cell<u8>] {
        // SAFETY: they are mapped as long as the segment is open, as records are.
        unsafe { std::slice::from_raw_parts(self.ages.add(start as usize), len as usize) }
    }

    #[inline]
    pub(crate) fn set_ages(&self, start: u32, len: u32, age: u8) {
        self.ages(start, len).iter().for_each(|its| its.set(age));
    }

    #[inline]
    pub(crate) fn is_free(&self, unit: u32) -> bool {
        self.record(unit).tag.get() & 1 != 0
    }

    /// Number of units of the span that starts at `unit`.
    #[inline]
    pub(crate) fn span_len(&self, unit: u32) -> u32 {
        self.record(unit).len.get()
    }

    /// The block in the used span at `unit`.
    #[inline]
    pub(crate) fn occupant(&self, unit: u32) -> Occupant {
        let record = self.record(unit);
        Occupant(u64::from(record.next_or_low.get()) | u64::from(record.prev_or_high.get()) << 32)
    }

    #[inline]
    pub(crate) fn set_occupant(&self, unit: u32, occupant: Occupant) {
        let record = self.record(unit);
        record.next_or_low.set(occupant.0 as u32);
        record.prev_or_high.set((occupant.0 >> 32) as u32);
    }

    /// Number of dirty units among `len` units from `start`.
    #[inline]
    pub(crate) fn count_dirty(&self, start: u32, len: u32) -> u32 {
        // Summed in bytes, 255 at a time, so that the compiler can vectorize.
        let sum = |chunk: &[Cell<u8>]| chunk.iter().map(|age| u8::from(age.get() >= FIRST_EPOCH)).sum::<u8>();
        self.ages(start, len).chunks(255).map(|chunk| u32::from(sum(chunk))).sum()
    }

    /// Bytes of the units of a used span that came on huge pages and were not freed since.
    pub(crate) fn on_fresh_huge(&self, start: u32, len: u32) -> usize {
        let count = self.ages(start, len).iter().filter(|age| age.get() == CLEAN_HUGE).count();
        self.bytes(count as u32)
    }

    /// Calls `visit` with the start and length of every run of units among `len` units from `start` that are mapped or not.
    pub(crate) fn each_run(&self, start: u32, len: u32, mut visit: impl FnMut(u32, u32, bool)) {
        let (mut at, end) = (start, start + len);
        while at < end {
            let ages = self.ages(at, end - at);
            let is_mapped = ages[0].get() != UNMAPPED;
            let run = ages.iter().take_while(|age| (age.get() != UNMAPPED) == is_mapped).count() as u32;
            visit(at, run, is_mapped);
            at += run;
        }
    }
}

// ---- Spans

impl Segment {
    fn mark_used(&self, start: u32, len: u32) {
        self.record(start + len - 1).set(len, 0, 0, 0);
        self.record(start).set(len, 0, 0, 0);
    }

    /// Takes `len` units of a free span with dirty units, or else of one without if it `may_be_clean`. Returns the
    /// first unit, and how many of the units are dirty.
    pub(crate) fn take(&self, len: u32, Place { align, before }: Place, may_be_clean: bool) -> Option<(u32, u32)> {
        let extra = (align >> self.unit_shift).saturating_sub(1) as u32;
        let wanted = len.checked_add(extra)?;
        let found = self.find(true, wanted).or_else(|| if may_be_clean { self.find(false, wanted) } else { None })?;
        let (total, dirty) = self.free_span(found);
        let from = self.address(found) + before;
        let padding = from.next_multiple_of(align) - from;
        let mut skip = (padding >> self.unit_shift) as u32;
        if extra == 0 && (0 < dirty && dirty < total) {
            // Partly dirty: from the end that has more dirty units, or where these begin.
            let (low, high) = (self.count_dirty(found, len), self.count_dirty(found + total - len, len));
            skip = if high > low { total - len } else { 0 };
            if low.max(high) < len.min(dirty) {
                let first = self.ages(found, total.min(FIRST_DIRTY)).iter().position(|age| age.get() >= FIRST_EPOCH);
                let begins = first.map_or(total, |first| first as u32);
                if begins <= total - len && self.count_dirty(found + begins, len) > low.max(high) {
                    skip = begins;
                }
            }
        }
        Some((found + skip, self.carve(found, found + skip, len)))
    }

    /// Turns a part of a free span into a used span; the rest stays free. Returns how many of its units are dirty.
    pub(crate) fn carve(&self, span: u32, start: u32, len: u32) -> u32 {
        let (total, dirty) = self.unlist(span);
        let dirty_of = |start, len| match dirty {
            0 => 0,
            all if all == total => len,
            _ => self.count_dirty(start, len),
        };
        let (before, behind) = (start - span, span + total - start - len);
        let its = dirty_of(start, len);
        let dirty_before = if behind == 0 { dirty - its } else { dirty_of(span, before) }; // a long span is counted in part
        if before > 0 {
            self.list(span, before, dirty_before);
        }
        if behind > 0 {
            self.list(start + len, behind, dirty - dirty_before - its);
        }
        self.mark_used(start, len);
        its
    }

    /// Frees used units, `dirty` of them dirty, and joins them with their free neighbors.
    pub(crate) fn free(&self, start: u32, len: u32, dirty: u32) {
        let (from, end) = (self.free_before(start), start + len);
        let before = if from < start { self.unlist(from).1 } else { 0 };
        let to = self.free_behind(end);
        let behind = if to > end { self.unlist(end).1 } else { 0 };
        self.list(from, to - from, before + dirty + behind);
    }

    /// The start of the free span that ends at `unit`, or `unit` if there is none.
    pub(crate) fn free_before(&self, unit: u32) -> u32 {
        if unit > 0 && self.is_free(unit - 1) { unit - self.record(unit - 1).len.get() } else { unit }
    }

    /// The end of the free span that starts at `unit`, or `unit` if there is none.
    pub(crate) fn free_behind(&self, unit: u32) -> u32 {
        if unit < self.top.get() && self.is_free(unit) { unit + self.record(unit).len.get() } else { unit }
    }

    /// Splits the used span at `start` after `keep` units into two used spans.
    pub(crate) fn cut(&self, start: u32, keep: u32) {
        let len = self.span_len(start);
        let occupant = self.occupant(start);
        self.mark_used(start + keep, len - keep);
        self.mark_used(start, keep);
        self.set_occupant(start, occupant);
    }

    /// Frees the mapped units of a used span; the others stay used for ever.
    pub(crate) fn keep_out(&self, start: u32, len: u32) {
        self.each_run(start, len, |at, len, _| self.mark_used(at, len));
        self.each_run(start, len, |at, len, is_mapped| {
            if is_mapped {
                self.free(at, len, self.count_dirty(at, len));
            }
        });
    }

    /// Extends the used span at `start` to `len` units by the free units behind it. Returns how many of those are dirty.
    pub(crate) fn extend(&self, start: u32, len: u32) -> Option<u32> {
        let (old, occupant) = (self.span_len(start), self.occupant(start));
        let (end, more) = (start + old, len - old);
        if more == 0 || self.free_behind(end) < end + more {
            return None;
        }
        let dirty = self.carve(end, end, more);
        self.mark_used(start, len);
        self.set_occupant(start, occupant);
        Some(dirty)
    }

    /// Number of units of the free span that ends at the top.
    pub(crate) fn free_at_top(&self) -> u32 {
        self.top.get() - self.free_before(self.top.get())
    }

    /// Links a used span without a block to another one: what a purge has taken out is a list in the records.
    pub(crate) fn link(&self, start: u32, next: Option<u32>) {
        self.record(start).tag.set(next.unwrap_or(NO_UNIT >> 1) << 1);
    }

    /// The span that a span is linked to.
    pub(crate) fn linked(&self, start: u32) -> Option<u32> {
        Some(self.record(start).tag.get() >> 1).filter(|&next| next != NO_UNIT >> 1)
    }

    fn head(&self, len: u32, dirty: u32) -> &SharedU32 {
        &self.heads[usize::from(dirty > 0)][class_of(len)]
    }

    /// Marks a span as free, with `dirty` dirty units, and puts it at the head of its list.
    pub(crate) fn list(&self, start: u32, len: u32, dirty: u32) {
        let head = self.head(len, dirty);
        let next = head.get();
        let tag = 1 | dirty << 1;
        self.record(start + len - 1).set(len, tag, NO_UNIT, NO_UNIT);
        self.record(start).set(len, tag, next, NO_UNIT);
        if next != NO_UNIT {
            self.record(next).prev_or_high.set(start);
        }
        head.set(start);
    }

    /// The length of the free span at `start`, and its number of dirty units.
    pub(crate) fn free_span(&self, start: u32) -> (u32, u32) {
        let record = self.record(start);
        (record.len.get(), record.tag.get() >> 1)
    }

    /// The free span that is listed behind the one at `start`.
    pub(crate) fn next_listed(&self, start: u32) -> Option<u32> {
        self.record(start).next_or_low.unit()
    }

    /// Removes the free span at `start` from its list. Returns its length, and its number of dirty units.
    pub(crate) fn unlist(&self, start: u32) -> (u32, u32) {
        let (len, dirty) = self.free_span(start);
        let (next, prev) = (self.record(start).next_or_low.get(), self.record(start).prev_or_high.get());
        if prev == NO_UNIT {
            self.head(len, dirty).set(next);
        } else {
            self.record(prev).next_or_low.set(next);
        }
        if next != NO_UNIT {
            self.record(next).prev_or_high.set(prev);
        }
        (len, dirty)
    }

    /// The best fit among the first spans of at least `len` units, with dirty ones or without.
    fn find(&self, is_dirty: bool, len: u32) -> Option<u32> {
        let lists = &self.heads[usize::from(is_dirty)][class_of(len)..];
        lists.iter().find_map(|head| self.best_in_list(head.unit()?, len)) // in the first may be only shorter ones
    }

    fn best_in_list(&self, head: u32, len: u32) -> Option<u32> {
        let mut best: Option<(u32, u32)> = None;
        for unit in std::iter::successors(Some(head), |&unit| self.next_listed(unit)).take(BEST_FIT) {
            let its = self.span_len(unit);
            if its == len {
                return Some(unit);
            }
            if its > len && best.is_none_or(|(shortest, _)| its < shortest) {
                best = Some((its, unit));
            }
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
