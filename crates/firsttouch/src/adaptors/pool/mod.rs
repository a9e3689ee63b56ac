//! The pool: keeps freed blocks, reuses the warmest first, splits and joins them, and returns idle memory to the system.
//!
//! A free only puts the span on its processor's shard; the oldest span of the shard moves to the heap, where it is joined with its
//! neighbors. A request tries its processor's shard, then the heap, then the shards of the other processors, and only then takes
//! fresh memory, on the pages that `evidence.rs` decides on. The memory held stays close to the peak of what was in use. On
//! machines with several nodes there is a heap for each, and memory that is idle there serves no other node.

#![allow(unsafe_code)] // Safety: blocks are handed out whole and once, by the heap's spans.

mod evidence;
mod keeping;
mod meter;
mod shards;
#[cfg(test)]
mod tests;
mod upstream;

use crate::allocator::{AllocError, Allocator, Block, Description, Request, downcast};
use crate::description::Value;
use crate::factory::Arguments;
use crate::failure;
use crate::heap::purger::{self, Clock, Registered};
use crate::heap::segment::{CLEAN, FreshPages, Occupant, RegionKind, age_of};
use crate::heap::{self, Heap, Span, Supply, Taken};
use crate::layout::{SMALL_LIMIT, round_down, round_up};
use crate::os::{self, Errno};
use crate::pages::placement::Placement;
use crate::policy::{
    self, DECAY, DISCARD_MIN, HALF_FILLED, NUMPYS_HUGE, RENEW_MIN, SHARD_MAX, SHARDS, SMALL_ON_HUGE, huge_min,
};
use crate::sources::Pages;
use crate::spec::{MakeResult, NONE, OptionKind, Spec, opt, upstream};
use crate::stats::Stats;
use crate::sync::lock::{AtFork, Lock, Padded, RawLock};
use evidence::Evidence;
pub use evidence::{Origin, written_bytes};
use meter::{Meter, PoolCounts};
pub use shards::Machine;
use shards::{Processor, Shard};
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The declaration.
pub const SPECS: &[Spec] = &[Spec {
    name: "pool",
    summary: "a pool, which keeps freed blocks and reuses the most recently freed.",
    options: &[
        upstream(
            "",
            "Where the pool's memory comes from. The default is ``pages(huge=\"thp\")``. On :func:`pages`, a pool also \
             splits and coalesces blocks.",
        ),
        opt(
            "max_idle",
            OptionKind::Size,
            NONE,
            "Bytes that may stay idle. By default the pool decides; where `decay` is set, a quarter of the memory of \
             the machine or container.",
        ),
        opt(
            "decay",
            OptionKind::Seconds,
            Some(Value::Float(DECAY.as_secs_f64())),
            "Seconds after which idle memory is returned to the operating system. ``None`` means never.",
        ),
    ],
    positional: 1,
    notes: "\
Memory that stays idle saves the page faults of the next array, at the price of a larger process: `max_idle` bounds that \
price, and `decay` limits how long it is paid. Arrays below `small_limit` (see :func:`stats`) are not pooled: they stay with \
NumPy's own allocator, those of the pool's constructors included.

With both at their defaults, what a pool holds, idle memory included, stays within an eighth more than the largest number of \
bytes that were ever in use, and idle memory goes after `decay`. Any other value of either is obeyed literally.",
    example: "\
>>> ft.pool(max_idle=\"1 GiB\", decay=5.0)
pool(max_idle='1 GiB', decay=5.0)",
}];

pub fn make(arguments: &Arguments) -> MakeResult {
    let decay = match arguments.value("decay") {
        Value::Float(seconds) => Duration::try_from_secs_f64(*seconds).ok(),
        _ => None,
    };
    let options = Options { max_idle: arguments.number("max_idle"), decay, ..Options::default() };
    if *arguments.value("upstream") == Value::None {
        return Ok(Pool::new(options));
    }
    let upstream = arguments.upstream()?;
    // A pool over plain pages is a pool with a heap, which can split blocks, join them, and return parts.
    let placement = downcast::<Pages>(&upstream).map(Pages::placement);
    match [false, true].into_iter().find(|&huge| placement == Some(&Placement::of_pages(huge))) {
        Some(huge) => Ok(Pool::new(Options { huge, ..options })),
        None => Ok(Pool::over(upstream, options)),
    }
}

/// The options of a pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The most bytes that may be idle; by default a quarter of the memory or, at the default `decay`, what the peak justifies.
    pub max_idle: Option<usize>,
    /// How long memory may stay idle before it is returned; `None` for ever.
    pub decay: Option<Duration>,
    /// Whether blocks may lie on huge pages.
    pub huge: bool,
    /// Whether it serves arrays alone, or any blocks of a program.
    pub arrays: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_idle: None, decay: Some(DECAY), huge: true, arrays: true }
    }
}

impl Options {
    fn describe(&self, upstream: Description) -> Description {
        let decay = self.decay.map_or(Value::None, |decay| Value::Float(decay.as_secs_f64()));
        let max_idle = self.max_idle.map(Value::size);
        Description::of("pool").with(upstream).named("max_idle", max_idle).named("decay", decay)
    }

    /// Whether both options have their defaults: the pool then keeps what the peak justifies.
    fn is_automatic(&self) -> bool {
        let Self { max_idle, decay, .. } = Self::default();
        (self.max_idle, self.decay) == (max_idle, decay)
    }
}

/// See the module.
pub struct Pool {
    options: Options,
    machine: Machine,
    /// By node, each for its processors.
    heaps: Box<[Heap]>,
    /// By processor; where there are many, some share one.
    shards: Box<[Padded<Lock<Shard>>]>,
    meter: Meter,
    clock: Clock,
    evidence: Lock<Evidence>,
    /// Idle bytes that the last purge could not return.
    stuck: AtomicUsize,
    /// The fresh bytes taken since the bounds on memory were last queried.
    unasked: AtomicUsize,
    /// Bytes of address space that may be idle; `usize::MAX` without a bound on it.
    idle_space: AtomicUsize,
}

impl Pool {
    /// Creates a pool.
    pub fn new(options: Options) -> Arc<Self> {
        Self::on(options, Machine::this())
    }

    /// Creates a pool that takes the machine to be another one.
    pub fn on(options: Options, machine: Machine) -> Arc<Self> {
        let last_node = machine.node_of.iter().max().copied().unwrap_or(0);
        let pool = Arc::new_cyclic(|this: &Weak<Self>| Self {
            options,
            // SAFETY: the pool is not moved before it is dropped, which closes the heaps.
            heaps: (0..=last_node).map(|node| unsafe { Heap::new(node, this.as_ptr()) }).collect(),
            shards: machine.node_of.iter().take(SHARDS).map(|_| Padded(Lock::new(Shard::new()))).collect(),
            machine,
            meter: Meter::default(),
            clock: Clock::new(options.decay),
            evidence: Lock::new(Evidence::new()),
            stuck: AtomicUsize::new(0),
            unasked: AtomicUsize::new(0),
            idle_space: AtomicUsize::new(usize::MAX),
        });
        pool.look_at_bound();
        // SAFETY: dropping the pool unregisters it.
        unsafe { purger::enter(Arc::<Self>::as_ptr(&pool)) };
        pool
    }

    #[inline]
    fn shard(&self, here: Processor) -> &Lock<Shard> {
        &self.shards[here.shard].0
    }

    /// The heap that a span belongs to.
    #[inline]
    fn heap_of(&self, span: Span) -> &Heap {
        &self.heaps[usize::from(span.segment.node)]
    }

    /// The age of what is freed now.
    #[inline]
    fn epoch(&self) -> u8 {
        age_of(self.clock.epoch())
    }

    /// The warmest span of this processor that fits.
    #[inline]
    fn take_recent(&self, kind: RegionKind, request: Request) -> Option<Span> {
        if request.size() > SHARD_MAX {
            return None;
        }
        let here = self.machine.here();
        let mut shard = self.shard(here).lock();
        let mut take = |kind: RegionKind| shard.take(here.node, kind, span_size(kind, request), request.align());
        let smaller = kind == RegionKind::Base && serves_small(request.size());
        let span = take(kind).or_else(|| if smaller { take(RegionKind::Huge) } else { None })?;
        self.count(&mut shard.counts, span, request, Origin::Recycled, span.bytes());
        Some(span)
    }

    /// Records the block of a request in a span, of which `recycled` bytes were used before.
    #[inline]
    fn count(&self, counts: &mut PoolCounts, span: Span, request: Request, origin: Origin, recycled: usize) {
        let asked = request.size();
        let offset = policy::offset(counts.allocations, span.bytes() - asked, request.align());
        span.segment.set_occupant(span.start, Occupant::new(asked, offset, origin as u8));
        counts.blocks += 1;
        counts.served(asked, span.bytes(), recycled);
        self.meter.add(counts, asked as isize, span.bytes() as isize);
    }

    /// Takes a span from the local heap: mostly dirty, if need be from the other processors' shards, else mostly fresh.
    #[cold]
    fn take_from_heap(&self, kind: RegionKind, request: Request) -> Result<Taken, Errno> {
        let (size, align) = (span_size(kind, request), request.align().into());
        let heap = &self.heaps[usize::from(self.machine.here().node)];
        let take_dirty = || heap.region(kind).take(size, align, Supply::MostlyDirty(kind.pages()));
        let idle = match take_dirty()? {
            None if self.flush() > 0 => take_dirty()?,
            idle => idle,
        };
        let idle = if idle.is_none() { self.take_from_other(heap, kind, request)? } else { idle };
        let (taken, origin) = match idle {
            Some(idle) => match self.exchange(heap, kind, idle.span, request) {
                Some(fresh) => (fresh, Origin::Exchanged),
                None => (idle, Origin::Recycled),
            },
            None => {
                let (kind, fresh, origin) = self.pages_for(request);
                (heap.take_or_grow(kind, span_size(kind, request), align, fresh)?, origin)
            }
        };
        self.record(taken, request, origin);
        Ok(taken)
    }

    /// Huge pages in exchange for an idle span on base pages that was filled, if the request may have some. `None`, and the span
    /// serves, if not, or if no huge pages are to be had.
    fn exchange(&self, heap: &Heap, kind: RegionKind, idle: Span, request: Request) -> Option<Taken> {
        if kind == RegionKind::Base || idle.kind() == RegionKind::Huge || !self.evidence.lock().is_filled(idle) {
            return None;
        }
        let taken = heap.take_or_grow(kind, span_size(kind, request), request.align().into(), FreshPages::Huge).ok()?;
        self.meter.purged_for_fresh(idle.bytes());
        heap.free_purged(idle);
        Some(taken)
    }

    /// On which pages fresh memory for a request comes.
    fn pages_for(&self, request: Request) -> (RegionKind, FreshPages, Origin) {
        let (size, zeroed) = (request.size(), request.is_zeroed());
        // If nothing stays idle, every block is fresh, and the rest of a huge page beside a small one would be wasted.
        let is_small = size < huge_min(zeroed);
        if !self.options.huge || (is_small && self.options.decay == Some(Duration::ZERO)) {
            return (RegionKind::Base, FreshPages::Base, Origin::Unfit);
        }
        self.evidence.lock().choose(size, zeroed, self.has_precedent(request))
    }

    /// Whether NumPy would ask for huge pages for a request. Beginning inside a huge page costs up to one more; too much
    /// where address space is bounded.
    fn has_precedent(&self, request: Request) -> bool {
        let is_scarce = self.idle_space.load(Relaxed) != usize::MAX;
        let is_array = self.options.arrays && !request.is_of_interpreter();
        is_array && !is_scarce && request.size() >= NUMPYS_HUGE.max(huge_min(request.is_zeroed()))
    }

    /// Takes a span from the other region if all of it was handed out before: fresh memory would have to be faulted in.
    fn take_from_other(&self, heap: &Heap, kind: RegionKind, request: Request) -> Result<Option<Taken>, Errno> {
        let other = match kind {
            RegionKind::Base if !serves_small(request.size()) => return Ok(None),
            RegionKind::Base => RegionKind::Huge,
            RegionKind::Huge => RegionKind::Base,
        };
        heap.region(other).take(span_size(other, request), request.align().into(), Supply::Dirty)
    }

    /// Records the block of a request in a span that was taken from a heap, and what of it is fresh.
    fn record(&self, Taken { span, dirty }: Taken, request: Request, origin: Origin) {
        self.count(&mut self.shard(self.machine.here()).lock().counts, span, request, origin, dirty);
        let fresh = span.bytes() - dirty;
        if fresh == 0 {
            return;
        }
        let huge = span.segment.on_fresh_huge(span.start, span.len);
        let is_evidence = request.size() >= huge_min(true) || !request.is_zeroed(); // a small zeroed block may be sparse
        if is_evidence {
            self.evidence.lock().taken(span, origin, self.has_precedent(request), fresh, huge);
        }
        self.count_fresh(fresh, huge);
    }

    /// Counts `fresh` bytes that were taken from the system, `huge` of them on huge pages, and purges what is too much then.
    fn count_fresh(&self, fresh: usize, huge: usize) {
        self.meter.touched(fresh - huge, huge);
        self.purge_excess(fresh);
        if !purger::ensure() {
            self.tick_if_due();
        }
    }

    /// Tries again after trimming the pool, at last on base pages, of which less is mapped at a time.
    #[cold]
    fn retry(&self, kind: RegionKind, request: Request) -> Result<Taken, AllocError> {
        self.trim();
        let result = self.take_from_heap(kind, request).or_else(|refused| {
            let heap = &self.heaps[usize::from(self.machine.here().node)];
            let taken = heap.take_or_grow(RegionKind::Base, request.size(), request.align().into(), FreshPages::Base);
            let taken = taken.map_err(|_| refused)?;
            self.record(taken, request, Origin::Unfit);
            Ok(taken)
        });
        result.map_err(|error| self.refused(AllocError::new(request.size(), os::why_refused(request.size(), error))))
    }

    /// Counts and remembers a failure.
    #[cold]
    fn refused(&self, error: AllocError) -> AllocError {
        self.meter.failures.fetch_add(1, Relaxed);
        failure::remember(error);
        error
    }

    /// Resizes a block where it is; a large one that cannot grow there moves with its pages. Returns `None` and changes nothing if
    /// neither is possible.
    ///
    /// # Safety
    /// As for [`Allocator::reallocate`], where the block suits the request.
    unsafe fn resize(&self, address: NonNull<u8>, request: Request) -> Option<NonNull<u8>> {
        let span = heap::span_at(address.as_ptr() as usize)?;
        let old = span.segment.occupant(span.start);
        let need = round_up(request.size().saturating_add(old.offset()), span.segment.unit())?;
        let (to, fresh) = if need > span.bytes() {
            let (_, pages, _) = self.pages_for(request);
            let extended = self.heap_of(span).region(span.kind()).extend(span, need, pages);
            // SAFETY: the block is its owner's, who resizes it.
            extended.or_else(|| unsafe { self.relocated(span, need, request.align(), pages) })?
        } else if policy::cuts(span.bytes(), span.bytes() - need) {
            let keep = (need >> span.segment.unit_shift).max(1) as u32;
            (self.heap_of(span).shrink(span, keep, self.epoch()), 0)
        } else {
            (span, 0)
        };
        let block = if to.address() == span.address() { old } else { old.moved() };
        to.segment.set_occupant(to.start, block.resized(request.size()));
        let more = (request.size() as isize - old.asked() as isize, to.bytes() as isize - span.bytes() as isize);
        self.meter.add(&mut self.shard(self.machine.here()).lock().counts, more.0, more.1);
        if fresh > 0 {
            let huge = to.segment.on_fresh_huge(to.start + span.len, to.len - span.len);
            self.evidence.lock().spend(huge);
            self.count_fresh(fresh, huge);
        }
        NonNull::new(with_exposed_provenance_mut(to.block()))
    }

    /// The larger span of a block that moves with its pages, as it seldom did before, and how many bytes of it are fresh.
    ///
    /// # Safety
    /// As for [`Heap::relocate`].
    unsafe fn relocated(&self, span: Span, need: usize, align: usize, pages: FreshPages) -> Option<(Span, usize)> {
        let block = span.segment.occupant(span.start);
        let most_moves = policy::moves(span.bytes()).min(Occupant::MOST_MOVES);
        if block.moves() >= most_moves || !block.offset().is_multiple_of(align) {
            return None;
        }
        // SAFETY: nobody uses the span meanwhile, as demanded.
        let taken = unsafe { self.heap_of(span).relocate(span, policy::with_growth(need), align, pages) }?;
        let to = taken.span;
        let left = to.segment.bytes(to.segment.count_dirty(to.start + span.len, to.len - span.len));
        self.meter.purged_for_fresh(taken.dirty - left); // these gave way to the pages that came along
        Some((to, to.bytes() - span.bytes() - left))
    }
}

/// Bytes that a span of a region needs for a request.
fn span_size(kind: RegionKind, request: Request) -> usize {
    policy::span_size(kind.unit(), request.size(), request.align())
}

/// Whether idle memory on huge pages may serve a smaller block.
fn serves_small(size: usize) -> bool {
    size >= SMALL_ON_HUGE * RegionKind::Huge.unit()
}

/// Clears the first `size` bytes of a span. Whole pages are discarded where the block is large, was hardly used, or is clean in
/// part: the kernel then zeroes what is used, and only that. Returns the dirty bytes of these.
///
/// # Safety
/// The span belongs to the caller and is not in use yet.
unsafe fn clear(Taken { span, dirty }: Taken, size: usize) -> usize {
    let (segment, start, page) = (span.segment, span.address(), span.kind().page());
    let end = start + size;
    let first = start.next_multiple_of(page).min(end);
    let last = round_down(end, page).max(first);
    let is_sparse = || dirty < span.bytes() || evidence::written(start, size) < HALF_FILLED;
    // SAFETY: the span is the caller's and nobody uses it yet (`Pool::allocate`).
    unsafe {
        let fill = |from: usize, to: usize| with_exposed_provenance_mut::<u8>(from).write_bytes(0, to - from);
        let discards = first < last && (size >= RENEW_MIN || (size >= DISCARD_MIN && is_sparse()));
        if !discards || os::discard(first, last - first).is_err() {
            fill(start, end);
            return 0;
        }
        let unit = |at: usize| ((at - start) >> segment.unit_shift) as u32;
        segment.set_ages(span.start + unit(first), unit(last) - unit(first), CLEAN);
        fill(start, first);
        fill(last, end);
    }
    dirty.min(last - first)
}

// SAFETY: spans are whole pages, so blocks are aligned and never overlap; they stay until they are freed (law 8); zeroed requests
// are cleared below (law 2); a free acquires a shard's lock and perhaps the heap's, and calls no foreign code (law 5).
unsafe impl Allocator for Pool {
    fn describe(&self) -> Description {
        self.options.describe(Placement::of_pages(self.options.huge).describe())
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().map_err(|error| self.refused(error))?;
        // The region for huge pages if the block may have some of its own.
        let is_large = self.options.huge && request.size() >= huge_min(request.is_zeroed());
        let kind = if is_large { RegionKind::Huge } else { RegionKind::Base };
        let taken = match self.take_recent(kind, request) {
            Some(span) => Taken { span, dirty: span.bytes() },
            None => self.take_from_heap(kind, request).or_else(|_| self.retry(kind, request))?,
        };
        let Taken { span, dirty } = taken;
        if request.is_zeroed() && dirty > 0 {
            let end = span.block() - span.address() + request.size();
            // SAFETY: the span was just allocated and is not in use.
            let again = unsafe { clear(taken, end) };
            if again > 0 {
                let huge = if span.kind() == RegionKind::Huge { again } else { 0 };
                self.meter.touched(again - huge, huge);
                self.meter.purged_for_fresh(again);
            }
        }
        let zeroed = request.is_zeroed() || dirty == 0;
        // SAFETY: spans lie in mapped memory, never at zero.
        let address = unsafe { NonNull::new_unchecked(with_exposed_provenance_mut(span.block())) };
        Ok(Block { address, size: span.usable(), zeroed })
    }

    #[inline]
    unsafe fn deallocate(&self, address: NonNull<u8>) {
        let Some(span) = heap::span_at(address.as_ptr() as usize) else { return };
        let asked = span.segment.occupant(span.start).asked() as isize;
        span.segment.set_occupant(span.start, Occupant::NONE);
        let here = self.machine.here();
        let mut shard = self.shard(here).lock();
        shard.counts.blocks -= 1;
        self.meter.add(&mut shard.counts, -asked, -(span.bytes() as isize));
        let stays = span.bytes() <= SHARD_MAX && span.segment.node == here.node;
        let oldest = if stays { shard.put(span) } else { Some(span) };
        drop(shard);
        if let Some(span) = oldest {
            self.heap_of(span).region(span.kind()).free(span, self.epoch());
        }
        purger::restart_after_fork();
        if self.idle_space.load(Relaxed) != usize::MAX {
            self.keep_to_bound();
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        heap::span_at(address.as_ptr() as usize).map_or(0, |span| span.usable())
    }

    unsafe fn reallocate(&self, address: NonNull<u8>, request: Request) -> Result<Block, AllocError> {
        let (size, request) = (request.size(), request.with_zeroed(false));
        // SAFETY: a live block, as the trait demands; what is copied lies within both blocks, which do not overlap.
        unsafe {
            let at = |address| Block { address, size: self.usable_size(address), zeroed: false };
            if request.suits(address)
                && let Some(resized) = self.resize(address, request)
            {
                return Ok(at(resized));
            }
            // A block that is copied can grow, as two that grow in turn would move at every step. Arrays seldom grow.
            let larger = if self.options.arrays { size } else { policy::with_growth(size) };
            let block = self.allocate(request.with_size(larger)).or_else(|_| self.allocate(request))?.address;
            self.resize(block, request); // notes the size that was asked for; the block stays where it is
            block.copy_from_nonoverlapping(address, self.usable_size(address).min(size));
            self.deallocate(address);
            Ok(at(block))
        }
    }

    fn trim(&self) -> usize {
        let gone = self.purge_whole();
        *self.evidence.lock() = Evidence::new(); // what comes next is served as at the beginning
        gone
    }

    fn stats(&self) -> Stats {
        self.gather()
    }

    fn small_limit(&self) -> usize {
        SMALL_LIMIT
    }
}

impl AtFork for Pool {
    fn locks(&self, each: &mut dyn FnMut(&RawLock)) {
        // No thread holds locks of two of these kinds at once, so any order will do.
        each(self.evidence.raw());
        self.heaps.iter().for_each(|heap| heap.locks(each));
        self.shards().for_each(|shard| each(shard.raw()));
    }
}

impl Registered for Pool {
    fn tick(&self) {
        self.decay();
    }

    fn needs_no_tick(&self) -> bool {
        let held = self.footprint();
        held.out + held.dirty == 0
    }

    fn trim_idle(&self) {
        self.purge_whole();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        purger::leave(std::ptr::from_ref(self));
        self.flush();
        // SAFETY: there are no other references to the pool; a heap with live blocks stays open (law 8).
        self.heaps.iter().for_each(|heap| unsafe { heap.close() });
    }
}
