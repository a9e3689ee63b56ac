//! Address space for allocators with their own bookkeeping: claimed in large pieces that cost nothing, handed out
//! once, and mapped and unmapped on demand.
//!
//! The state of a unit is its age, as in a heap. Opening and closing units needs no lock, because the units belong to
//! the caller; so no lock of ours is held while the other allocator is in the middle of its own work.

use crate::allocator::Allocator;
use crate::heap::ages::{CLEAN, FIRST_EPOCH, UNMAPPED};
use crate::heap::build;
use crate::heap::open::{mapped_run, unmapped_run};
use crate::heap::records;
use crate::heap::segment::{self, Segment};
use crate::heap::shape::Shape;
use crate::os::{self, Errno};
#[cfg(feature = "jemalloc")]
use crate::pages::mapping;
use crate::sync::lock::Lock;
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::Relaxed};

/// From this many bytes on memory is advised huge, as NumPy does for its own.
const HUGE_MIN: usize = 4 << 20;
/// From this many bytes on memory is unmapped when it is closed. Smaller holes would cost mappings.
const UNMAP: usize = 1 << 20;

/// The piece that was claimed last, and how many of its units were handed out.
struct Last {
    segment: &'static Segment,
    used: u32,
}

pub(crate) struct Reserve {
    shape: Shape,
    last: Lock<Option<Last>>,
    /// Bytes that were opened and not closed since.
    open: AtomicUsize,
    /// Mapped bytes.
    mapped: AtomicUsize,
    /// Bytes that were returned to the system.
    closed: AtomicUsize,
    /// The number of the last error; zero if there was none.
    refused: AtomicI32,
    /// Whether anything was opened since [`Reserve::was_opened`] was called.
    opened: AtomicBool,
}

// SAFETY: claimed segments are never freed; a unit's age is used only by the owner of the unit (see the module).
unsafe impl Sync for Reserve {}
// SAFETY: as above.
unsafe impl Send for Reserve {}

impl Reserve {
    /// An empty reserve. Units are `unit` bytes, a power of two, but at least a page.
    pub(crate) fn new(unit: usize) -> Self {
        let unit = unit.max(os::page_size());
        let shape =
            Shape { unit_shift: unit.trailing_zeros(), extent: unit, page: unit, huge: false, local_node: None };
        Self {
            shape,
            last: Lock::new(None),
            open: AtomicUsize::new(0),
            mapped: AtomicUsize::new(0),
            closed: AtomicUsize::new(0),
            refused: AtomicI32::new(0),
            opened: AtomicBool::new(false),
        }
    }

    /// Hands out address space of whole units, permanently. It is not mapped before it is opened.
    pub(crate) fn take(&self, bytes: usize, align: usize, owner: *const dyn Allocator) -> Result<usize, Errno> {
        let units = u32::try_from(bytes.div_ceil(1 << self.shape.unit_shift)).map_err(|_| Errno::NO_MEMORY)?;
        let mut last = self.last.lock();
        if let Some(at) = last.as_mut().and_then(|last| self.take_from(last, units, align)) {
            return Ok(at);
        }
        let extra = u32::try_from(align >> self.shape.unit_shift).map_err(|_| Errno::NO_MEMORY)?;
        let wanted = units.checked_add(extra).ok_or(Errno::NO_MEMORY)?;
        let segment = build::segment(self.shape, wanted, 0, owner)?;
        if !segment.growable.get() {
            self.mapped.fetch_add((segment.top.get() as usize) << self.shape.unit_shift, Relaxed);
        }
        let last = last.insert(Last { segment, used: 0 });
        self.take_from(last, units, align).ok_or(Errno::NO_MEMORY)
    }

    /// Checks whether the system would map so much now; if not, that is recorded as a refusal.
    #[cfg(feature = "jemalloc")]
    pub(crate) fn probe(&self, bytes: usize) -> Result<(), Errno> {
        mapping::probe(bytes).inspect_err(|error| self.refused.store(error.0, Relaxed))
    }

    fn take_from(&self, last: &mut Last, units: u32, align: usize) -> Option<usize> {
        let Last { segment, used } = *last;
        let start = segment.address(used);
        let skip = ((start.next_multiple_of(align.max(1)) - start) >> self.shape.unit_shift) as u32;
        let end = used.checked_add(skip)?.checked_add(units).filter(|&end| end <= segment.capacity())?;
        if segment.growable.get() {
            records::open_array(segment.ages as usize, &segment.ages_open, end as usize).ok()?;
        }
        last.used = end;
        Some(segment.address(used + skip))
    }

    fn units(&self, at: usize, bytes: usize) -> Option<(&'static Segment, u32, u32)> {
        let (segment, first) = segment::find(at)?;
        let end = segment.unit_of((at + bytes).checked_sub(1)?)? + 1;
        Some((segment, first, end))
    }

    /// Maps the units that contain the range. Returns whether all of it reads zero. On failure nothing changes. The range
    /// belongs to the caller.
    pub(crate) fn open(&self, at: usize, bytes: usize) -> Result<bool, Errno> {
        let (segment, first, end) = self.units(at, bytes).ok_or(Errno::UNSUPPORTED)?;
        let mut unit = first;
        while unit < end {
            let run = unmapped_run(segment.ages(unit, end - unit));
            if run > 0 {
                self.map(segment, unit, run).inspect_err(|error| self.refused.store(error.0, Relaxed))?;
            }
            unit += run;
            unit += mapped_run(segment.ages(unit, end - unit));
        }
        let ages = segment.ages(first, end - first);
        let clean = ages.iter().filter(|&&age| age == CLEAN).count();
        let zero = clean == ages.len();
        ages.fill(FIRST_EPOCH);
        self.open.fetch_add(clean << self.shape.unit_shift, Relaxed);
        self.opened.store(true, Relaxed);
        Ok(zero)
    }

    fn map(&self, segment: &Segment, unit: u32, run: u32) -> Result<(), Errno> {
        let (at, size) = (segment.address(unit), (run as usize) << self.shape.unit_shift);
        os::map_at(at, size)?;
        if size >= HUGE_MIN {
            let _ = os::advise_huge(at, size); // a refusal only means base pages
        }
        segment.ages(unit, run).fill(CLEAN);
        self.mapped.fetch_add(size, Relaxed);
        Ok(())
    }

    /// Unmaps or discards the units that lie in the range, so that they read zero when opened again. The range belongs to
    /// the caller, and is not used any more.
    pub(crate) fn close(&self, at: usize, bytes: usize) {
        let Some((segment, first, end)) = self.units(at, bytes) else { return };
        let mut unit = first;
        while unit < end {
            unit += unmapped_run(segment.ages(unit, end - unit));
            let run = mapped_run(segment.ages(unit, end - unit));
            if run > 0 {
                self.give_back(segment, unit, run);
            }
            unit += run;
        }
    }

    fn give_back(&self, segment: &Segment, unit: u32, run: u32) {
        let (at, size) = (segment.address(unit), (run as usize) << self.shape.unit_shift);
        let open = segment.ages(unit, run).iter().filter(|&&age| age == FIRST_EPOCH).count() << self.shape.unit_shift;
        // SAFETY: the range was mapped by us, and nobody uses it any more (law 8, `close`).
        let unmap = || segment.claim.has_slots() && unsafe { os::unmap(at, size) }.is_ok();
        // SAFETY: as above.
        let discard = || unsafe { os::discard(at, size) }.is_ok();
        let unmapped = size >= UNMAP && unmap();
        let gone = unmapped || open == 0 || discard();
        let unmapped = unmapped || !gone && unmap();
        if !gone && !unmapped {
            // SAFETY: as above. Locked memory that cannot be discarded is cleared, because it must read zero (law 2).
            unsafe { with_exposed_provenance_mut::<u8>(at).write_bytes(0, size) };
        }
        if unmapped {
            self.mapped.fetch_sub(size, Relaxed);
        }
        if gone || unmapped {
            self.closed.fetch_add(open, Relaxed);
        }
        segment.ages(unit, run).fill(if unmapped { UNMAPPED } else { CLEAN });
        self.open.fetch_sub(open, Relaxed);
    }

    /// Whether its address space costs nothing before it is opened.
    #[cfg(feature = "mimalloc")]
    pub(crate) fn is_claimed(&self) -> bool {
        self.last.lock().as_ref().is_some_and(|last| last.segment.growable.get())
    }

    /// Open bytes and mapped bytes.
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.open.load(Relaxed), self.mapped.load(Relaxed))
    }

    /// Bytes that were returned to the system.
    pub(crate) fn closed(&self) -> usize {
        self.closed.load(Relaxed)
    }

    /// The last refusal since this was called.
    pub(crate) fn take_refusal(&self) -> Option<Errno> {
        Some(self.refused.swap(0, Relaxed)).filter(|&number| number != 0).map(Errno)
    }

    /// Whether anything was opened since this was called.
    pub(crate) fn was_opened(&self) -> bool {
        self.opened.load(Relaxed) && self.opened.swap(false, Relaxed)
    }

    /// Holds the lock around a fork.
    pub(crate) fn hold(&self) {
        self.last.hold();
    }

    /// Ends [`Reserve::hold`].
    ///
    /// # Safety
    /// The lock is held by `hold`.
    pub(crate) unsafe fn release(&self) {
        // SAFETY: `hold` acquired it, as the fork handlers (`purger`) do before they call this.
        unsafe { self.last.release() }
    }
}
