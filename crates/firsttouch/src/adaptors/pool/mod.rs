//! The pool: keeps freed blocks, reuses the warmest first, splits and joins them, and returns idle memory to the
//! system.
//!
//! A free only puts the span on its processor's shard; the oldest span of the shard moves to the heap, where it is
//! joined with its neighbors. A request tries its processor's shard, then the heap, then the shards of the other
//! processors, and only then takes fresh memory, on the pages that `policy.rs` decides on. The memory held stays close to
//! the peak of what was in use. On machines with several nodes there is a heap for each, and memory that is
//! idle there serves no other node.

#![allow(unsafe_code)] // Safety: blocks are handed out whole and once, by the heap's spans.

mod coloring;
mod nodes;
mod policy;
mod shard;
mod upstream;
mod zero;

use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::description::Value;
use crate::failure;
use crate::heap;
use crate::heap::Heap;
use crate::heap::growing::Span;
use crate::heap::purger::{self, Clock, DeferredTrim, Purgeable};
use crate::heap::purging::{self, look_at_mappings};
use crate::heap::segment::Side;
use crate::heap::segment::{Fresh, Occupant, PageKind, huge_page, ticks_since};
pub use crate::layout::SMALL_LIMIT;
use crate::layout::round_up;
use crate::os::{self, Errno};
use crate::sources::Pages;
use crate::stats::Stats;
use crate::sync::lock::Lock;
pub use nodes::Machine;
use nodes::{Heaps, Place};
use policy::{ASK_MIN, Asked, CARRY_MIN, CUT_MIN, Evidence, IDLE_SPACE, WORTH_A_SEARCH};
pub use policy::{DECAY, NUMPYS_HUGE, Origin, RENEW_MIN, huge_min};
use shard::{MAX as SHARD_MAX, Meter, Recent, Shard};
use std::any::Any;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The options of a pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The most bytes that may be idle; by default a quarter of the memory of the machine or container.
    pub max_idle: Option<usize>,
    /// How long memory may stay idle before it is returned; `None` for ever.
    pub decay: Option<Duration>,
    /// Whether blocks may lie on huge pages.
    pub huge: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_idle: None, decay: Some(DECAY), huge: true }
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

#[repr(align(128))] // two cache lines, which the prefetcher loads together
struct Padded(Lock<Shard>);

/// Whether an allocator is a pool, over any memory.
pub fn is_pool(allocator: &dyn Allocator) -> bool {
    let kind: &dyn Any = allocator;
    kind.is::<Pool>() || kind.is::<upstream::UpstreamPool>()
}

/// See the module.
pub struct Pool {
    options: Options,
    max_idle: usize,
    /// Whether it serves arrays alone, or any blocks of a program.
    for_arrays: bool,
    heaps: Heaps,
    shards: Box<[Padded]>,
    meter: Meter,
    clock: Clock,
    evidence: Lock<Evidence>,
    /// Idle bytes that the last purge could not return.
    stuck: AtomicUsize,
    /// The memory of the machine or container, and the fresh bytes taken since the available memory was last queried.
    total: usize,
    unasked: AtomicUsize,
    /// Bytes of address space that may be idle; `usize::MAX` if the process has no bound on it.
    idle_space: AtomicUsize,
    /// Bytes of these that the last purge could not return.
    stuck_space: AtomicUsize,
}

impl Pool {
    /// Creates a pool for arrays.
    pub fn new(options: Options) -> Arc<Self> {
        Self::make(options, true, Machine::this())
    }

    /// Creates a pool for arrays that takes the machine to be another one.
    pub fn on(options: Options, machine: Machine) -> Arc<Self> {
        Self::make(options, true, machine)
    }

    /// Creates a pool for any blocks of a program.
    pub fn for_any_blocks(options: Options) -> Arc<Self> {
        Self::make(options, false, Machine::this())
    }

    fn make(options: Options, for_arrays: bool, machine: Machine) -> Arc<Self> {
        let total = os::memory_total();
        let heaps = Heaps::new(machine);
        let pool = Arc::new(Self {
            options,
            max_idle: options.max_idle.unwrap_or(total / 4),
            for_arrays,
            shards: (0..heaps.shards()).map(|_| Padded(Lock::new(Shard::default()))).collect(),
            heaps,
            meter: Meter::default(),
            clock: Clock::new(options.decay),
            evidence: Lock::new(Evidence::new()),
            stuck: AtomicUsize::new(0),
            total,
            unasked: AtomicUsize::new(0),
            idle_space: AtomicUsize::new(usize::MAX),
            stuck_space: AtomicUsize::new(0),
        });
        let address = Arc::as_ptr(&pool);
        // SAFETY: the pool is not moved before it is dropped, which closes the heaps and unregisters it.
        unsafe {
            pool.heaps.set_owner(address);
            purger::enter(address);
        }
        pool
    }

    /// Allocates a block for an array, also where the pool serves any blocks.
    ///
    /// # Errors
    /// As for [`Allocator::allocate`].
    pub fn allocate_array(&self, request: Request) -> Result<Block, AllocError> {
        self.allocate_for(request, true)
    }

    fn allocate_for(&self, request: Request, is_array: bool) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| {
            self.meter.failures.fetch_add(1, Relaxed);
            failure::remember(error);
        })?;
        let kind = self.kind(request.size(), request.is_zeroed());
        let recent = self.take_recent(kind, request);
        let told = recent.is_none(); // whether its ages, and so its dirty bytes, are valid
        let span = match recent {
            Some(span) => span,
            None => self
                .take_from_heap(kind, request, is_array)
                .or_else(|refused| self.retry(kind, request, is_array, refused))?,
        };
        if request.is_zeroed() {
            let end = span.block() - span.address() + request.size();
            // SAFETY: the span was just allocated and is not in use.
            unsafe {
                let kind = span.kind(); // may differ from the preferred kind
                let again = match span.dirty {
                    dirty if !told || dirty == span.bytes() => zero::recycled(span, end, kind.page()),
                    0 => 0,
                    _ => zero::dirty_units(span, end, kind.page()),
                };
                if again > 0 {
                    self.touched(kind, again);
                    self.renewed(again);
                }
            }
        }
        let zeroed = request.is_zeroed() || (told && span.dirty == 0);
        // SAFETY: spans lie in mapped memory, never at zero.
        let address = unsafe { NonNull::new_unchecked(with_exposed_provenance_mut(span.block())) };
        Ok(Block { address, size: span.usable(), zeroed })
    }

    /// The region whose idle memory a request prefers: that for huge pages if it may have some of its own.
    fn kind(&self, size: usize, zeroed: bool) -> PageKind {
        if self.options.huge && size >= huge_min(zeroed) { PageKind::Huge } else { PageKind::Base }
    }

    #[inline]
    fn shard(&self, here: Place) -> &Lock<Shard> {
        &self.shards[here.shard].0
    }

    /// The warmest span of this processor that fits.
    #[inline]
    fn take_recent(&self, kind: PageKind, request: Request) -> Option<Span> {
        if request.size() > SHARD_MAX {
            return None;
        }
        let mut shard = self.shard(self.heaps.here()).lock();
        let mut take = |kind: PageKind| shard.take(kind, coloring::room(kind.unit(), request.size(), request.align()));
        let smaller = kind == PageKind::Base && serves_small(request.size());
        let span = take(kind).or_else(|| if smaller { take(PageKind::Huge) } else { None })?;
        if span.address() & (request.align() - 1) != 0 {
            let epoch = self.heaps.epoch();
            let _ = shard.put(Recent { span, epoch }); // there is room: a span was just removed
            return None;
        }
        shard.counts.recycled += 1;
        shard.counts.recycled_bytes += span.bytes() as u64;
        self.count(&mut shard, span, request, Origin::Recycled);
        Some(span)
    }

    #[inline]
    fn count(&self, shard: &mut Shard, span: Span, request: Request, origin: Origin) {
        let asked = request.size();
        let offset = coloring::offset(shard.counts.allocations, span.bytes() - asked, request.align());
        span.segment.set_occupant(span.start, Occupant::new(asked, offset, origin as u8));
        shard.counts.allocations += 1;
        shard.counts.blocks += 1;
        shard.counts.allocated_bytes += asked as u64;
        self.meter.note(&mut shard.counts, asked as isize, span.bytes() as isize);
    }

    /// Takes a span from the local heap: dirty, then from the other processors' shards, then fresh.
    #[cold]
    fn take_from_heap(&self, kind: PageKind, request: Request, is_array: bool) -> Result<Span, Errno> {
        let (size, align) = (coloring::room(kind.unit(), request.size(), request.align()), request.align());
        let node = self.heaps.here().node;
        let heap = self.heaps.at(node);
        self.flush_large();
        if request.is_zeroed() && kind == PageKind::Huge && request.size() >= RENEW_MIN {
            let (kind, fresh, origin) = self.pages_for(request, is_array);
            if kind == PageKind::Huge {
                let span = self.take_renewed(heap, request, fresh)?;
                self.taken(span, request, origin);
                return Ok(span);
            }
        }
        let mut idle = heap.take_dirty(kind, size, align)?;
        if idle.is_none() && self.flush_node(node) > 0 {
            idle = heap.take_dirty(kind, size, align)?;
        }
        let mut exchanged = false;
        if idle.is_none() {
            idle = self.take_resident(heap, kind, request);
            exchanged =
                idle.is_some_and(|span| kind == PageKind::Huge && policy::is_filled(span.address(), span.bytes()));
        }
        let (kind, fresh, origin) = match idle {
            Some(span) if exchanged => {
                self.renewed(span.bytes());
                heap.give_back(span);
                (PageKind::Huge, Fresh::Huge, Origin::Exchanged)
            }
            Some(span) => {
                self.taken(span, request, Origin::Recycled);
                return Ok(span);
            }
            None => self.pages_for(request, is_array),
        };
        let size = coloring::room(kind.unit(), request.size(), align);
        let span = heap.take_or_grow(kind, size, align, [Side::Dirty, Side::Clean], fresh)?;
        self.taken(span, request, origin);
        Ok(span)
    }

    /// On which pages fresh memory for a request comes.
    fn pages_for(&self, request: Request, is_array: bool) -> (PageKind, Fresh, Origin) {
        let (size, zeroed) = (request.size(), request.is_zeroed());
        // Without decay every block is fresh, and what is left of a huge page beside a small one would be for nothing.
        let is_small = size < huge_min(zeroed);
        if !self.options.huge || (is_small && self.options.decay == Some(Duration::ZERO)) {
            return (PageKind::Base, Fresh::Base, Origin::Off);
        }
        let (kind, fresh, origin) = self.evidence.lock().pages(Asked { size, zeroed, is_array });
        // Where the process has a bound on address space, it is worth more than a huge page more in some blocks: of 6 MiB
        // each, those that begin right before a huge page are 8 MiB apart.
        let scarce = self.idle_space.load(Relaxed) != usize::MAX;
        (kind, if fresh == Fresh::Inner && scarce { Fresh::Packed } else { fresh }, origin)
    }

    /// Takes a span from the other region if all of it was handed out before: fresh memory would have to be faulted in.
    fn take_resident(&self, heap: &Heap, kind: PageKind, request: Request) -> Option<Span> {
        let (size, align) = (request.size(), request.align());
        let other = match kind {
            PageKind::Base if !serves_small(size) => return None,
            PageKind::Base => PageKind::Huge,
            PageKind::Huge => PageKind::Base,
        };
        heap.take_resident(other, coloring::room(other.unit(), size, align), align)
    }

    /// Takes a span from what is free and mapped in either region of the local heap, wherever it lies.
    fn take_mapped(&self, kind: PageKind, request: Request) -> Option<Span> {
        let (size, align) = (request.size(), request.align());
        let heap = self.heaps.at(self.heaps.here().node);
        let of = |kind: PageKind| heap.take_mapped(kind, coloring::room(kind.unit(), size, align), align);
        let other = match kind {
            PageKind::Huge => Some(PageKind::Base),
            PageKind::Base => self.options.huge.then_some(PageKind::Huge),
        };
        let span = of(kind).or_else(|| other.and_then(of))?;
        self.taken(span, request, Origin::Mapped);
        Some(span)
    }

    /// Takes a span from the region for base pages, from fresh memory if need be, as its granules are smaller.
    fn take_base_pages(&self, request: Request) -> Option<Span> {
        let heap = self.heaps.at(self.heaps.here().node);
        let sides = [Side::Dirty, Side::Clean];
        let span = heap.take_or_grow(PageKind::Base, request.size(), request.align(), sides, Fresh::Base).ok()?;
        self.taken(span, request, Origin::Mapped);
        Some(span)
    }

    /// Records that a span was taken from a heap for a request.
    fn taken(&self, span: Span, request: Request, origin: Origin) {
        let mut shard = self.shard(self.heaps.here()).lock();
        let fresh = span.bytes() - span.dirty;
        shard.counts.recycled += u64::from(fresh == 0);
        shard.counts.recycled_bytes += span.dirty as u64;
        self.count(&mut shard, span, request, origin);
        drop(shard);
        if fresh == 0 {
            return;
        }
        let huge = span.segment.on_fresh_huge(span.start, span.len);
        let counts = request.size() >= huge_min(true) || !request.is_zeroed(); // others may be sparse, and prove nothing
        if counts && origin != Origin::Exchanged {
            self.evidence.lock().taken(span, origin, fresh, huge);
        }
        self.taken_fresh_of(fresh, huge);
    }

    /// Counts `fresh` bytes that were taken from the system, `huge` of them on huge pages, and makes room for them.
    fn taken_fresh_of(&self, fresh: usize, huge: usize) {
        self.touched(PageKind::Huge, huge);
        self.touched(PageKind::Base, fresh - huge);
        self.make_room(fresh);
        if !purger::ensure() {
            self.tick_if_due();
        }
    }

    /// Takes a span of whole huge pages for a large zeroed request; dirty memory is purged first, as often as that
    /// helps.
    fn take_renewed(&self, heap: &Heap, request: Request, fresh: Fresh) -> Result<Span, Errno> {
        let page = huge_page();
        let whole = round_up(request.size(), page).ok_or(Errno::NO_MEMORY)?;
        let align = request.align().max(page);
        let take = || heap.take_or_grow(PageKind::Huge, whole, align, [Side::Clean, Side::Dirty], fresh);
        for _ in 0..3 {
            let span = take()?;
            if span.dirty == 0 {
                return Ok(span);
            }
            self.renewed(span.dirty);
            heap.give_back(span);
        }
        take()
    }

    /// Counts bytes that go back to the system because the request that finds them is better served by fresh ones.
    fn renewed(&self, bytes: usize) {
        self.meter.purged.fetch_add(bytes as u64, Relaxed);
        self.meter.renewed.fetch_add(bytes as u64, Relaxed);
    }

    fn touched(&self, kind: PageKind, bytes: usize) {
        let counter =
            if kind == PageKind::Huge { &self.meter.first_touched_huge } else { &self.meter.first_touched_small };
        counter.fetch_add(bytes as u64, Relaxed);
    }

    /// Serves a request from what is mapped of either region, because at the limit on mappings memory cannot move from one
    /// place to another; else tries again after trimming the pool.
    #[cold]
    fn retry(&self, kind: PageKind, request: Request, is_array: bool, refused: Errno) -> Result<Span, AllocError> {
        if refused == Errno::NO_MEMORY {
            look_at_mappings();
            if let Some(span) = self.take_mapped(kind, request) {
                return Ok(span);
            }
        }
        self.trim();
        self.unmap_clean();
        let unsupported = refused == Errno::UNSUPPORTED;
        let result = if unsupported { Err(refused) } else { self.take_from_heap(kind, request, is_array) };
        let result = result.or_else(|error| self.take_mapped(kind, request).ok_or(error));
        let result = match kind {
            PageKind::Huge => result.or_else(|error| self.take_base_pages(request).ok_or(error)),
            PageKind::Base => result,
        };
        result.map_err(|error| {
            self.meter.failures.fetch_add(1, Relaxed);
            let error = heap::refused(request.size(), error);
            failure::remember(error);
            error
        })
    }

    /// Whether a live block begins at `address`, which may be any address.
    pub fn is_block(&self, address: NonNull<u8>) -> bool {
        heap::lives(address.as_ptr() as usize)
    }

    /// The bytes that were asked for the live block at `address`.
    pub fn asked(&self, address: NonNull<u8>) -> usize {
        heap::span_at(address.as_ptr() as usize).map_or(0, |span| span.segment.occupant(span.start).asked())
    }

    /// Resizes the block at `address` to at least `size` bytes, moving it if it cannot grow in place; `None`, and the
    /// block is unchanged, if there is no memory.
    ///
    /// A block that moves gets room to grow; otherwise two blocks that grow in turn would move at every step.
    ///
    /// # Safety
    /// As for [`Allocator::reallocate`].
    pub unsafe fn grow(&self, address: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: as for `Allocator::reallocate`, a live block of this pool (`large.rs` of the preloaded library); the
        // copy fits into both blocks, which do not overlap.
        unsafe {
            if self.resize_in_place(address, size) {
                return Some(address);
            }
            let roomy = size.saturating_add(size / 8);
            if let Some(to) = self
                .carry(address, roomy, Request::bytes(size))
                .or_else(|| self.carry(address, size, Request::bytes(size)))
            {
                return Some(to);
            }
            let old = self.usable_size(address);
            let block = self.allocate(Request::bytes(roomy)).or_else(|_| self.allocate(Request::bytes(size)));
            let Ok(Block { address: to, .. }) = block else {
                // What was idle has been given back meanwhile, so there may be room to grow now.
                return self.resize_in_place(address, size).then_some(address);
            };
            to.copy_from_nonoverlapping(address, old.min(size));
            self.deallocate(address);
            Some(to)
        }
    }

    /// Moves a large block that grows as `request` says to a span with `room` bytes, with its pages: nothing is copied, and no
    /// page is there twice. `None`, and nothing has changed, if that cannot be.
    ///
    /// # Safety
    /// As for [`Allocator::reallocate`].
    unsafe fn carry(&self, address: NonNull<u8>, room: usize, request: Request) -> Option<NonNull<u8>> {
        let size = request.size();
        let span = heap::span_at(address.as_ptr() as usize)?;
        let kind = span.kind();
        let old = span.segment.occupant(span.start);
        if span.bytes() < CARRY_MIN || size < span.bytes() {
            return None;
        }
        let heap = self.heaps.of(span);
        self.flush_large();
        let (_, pages, _) = self.pages_for(request, self.for_arrays);
        // Huge pages can be moved as such only to where others could lie.
        let align =
            if span.address().is_multiple_of(huge_page()) { huge_page() } else { kind.unit() }.max(request.align());
        let to =
            heap.take_or_grow(kind, room.checked_add(old.offset())?, align, [Side::Clean, Side::Dirty], pages).ok()?;
        let behind = (to.start + span.len, to.len - span.len);
        let (dirty, huge) = (to.segment.dirty_bytes(behind.0, behind.1), to.segment.on_fresh_huge(behind.0, behind.1));
        // SAFETY: the block is its owner's, who resizes it, and nobody knows of the other span yet.
        if !unsafe { heap.carry(span, to) } {
            return None;
        }
        to.segment.set_occupant(to.start, Occupant::new(size, old.offset(), Origin::Carried as u8));
        // The pages that came along are reused, and those that lay where they are now are gone.
        let grown = to.bytes() - span.bytes();
        let fresh = grown - dirty;
        let mut shard = self.shard(self.heaps.here()).lock();
        shard.counts.allocations += 1;
        shard.counts.allocated_bytes += size as u64;
        shard.counts.recycled += u64::from(fresh == 0);
        shard.counts.recycled_bytes += (span.bytes() + dirty) as u64;
        self.meter.note(&mut shard.counts, size as isize - old.asked() as isize, grown as isize);
        drop(shard);
        self.meter.purged.fetch_add((to.dirty - dirty) as u64, Relaxed);
        self.evidence.lock().grown(huge);
        if fresh > 0 {
            self.taken_fresh_of(fresh, huge);
        }
        // SAFETY: spans lie in mapped memory, never at zero.
        Some(unsafe { NonNull::new_unchecked(with_exposed_provenance_mut(to.block())) })
    }
}

// ---- What goes back, and when

impl Pool {
    fn shards(&self) -> impl Iterator<Item = &Lock<Shard>> {
        self.shards.iter().map(|Padded(shard)| shard)
    }

    /// Moves the spans that the shards remember to the heaps if `old` returns `true` for their epoch.
    fn flush(&self, old: impl Fn(u8) -> bool) {
        for shard in self.shards() {
            self.flush_shard(shard, &old);
        }
    }

    /// Moves all spans that the shards of one node remember to its heap; returns their number.
    fn flush_node(&self, node: u8) -> usize {
        let shards = &self.shards[self.heaps.shards_of(node)];
        shards.iter().map(|Padded(shard)| self.flush_shard(shard, &|_| true)).sum()
    }

    fn flush_shard(&self, shard: &Lock<Shard>, old: &impl Fn(u8) -> bool) -> usize {
        let mut count = 0;
        loop {
            let recent = shard.lock().pop_oldest(old);
            let Some(recent) = recent else { return count };
            self.heaps.of(recent.span).give(recent.span, recent.epoch);
            count += 1;
        }
    }

    /// Moves the large spans that this processor's shard remembers to the heaps, which are about to be searched.
    fn flush_large(&self) {
        let large = self.shard(self.heaps.here()).lock().pop_large();
        for Recent { span, epoch } in large.into_iter().flatten() {
            self.heaps.of(span).give(span, epoch);
        }
    }

    fn cached(&self) -> usize {
        self.shards().map(|shard| shard.lock().bytes()).sum()
    }

    /// Called when `fresh` bytes of memory were taken: purges idle memory if more is held than the peak justifies, or
    /// the machine runs short of memory.
    fn make_room(&self, fresh: usize) {
        self.look_at_bound();
        let held = self.heaps.held();
        let held = held.out + held.dirty;
        self.meter.peak_held.fetch_max(held as isize, Relaxed);
        let idle = held.saturating_sub(self.meter.active());
        let shortage = self.shortage(fresh, held, idle);
        let stuck = self.stuck.load(Relaxed);
        if self.beyond(held).max(shortage) > 0 && idle > stuck + WORTH_A_SEARCH {
            // With many shards, what they have not reported may be all of it.
            self.shards().for_each(|shard| self.meter.report(&mut shard.lock().counts));
            let idle = held.saturating_sub(self.meter.active());
            let excess = self.beyond(held).max(shortage);
            if excess == 0 || idle <= stuck + WORTH_A_SEARCH {
                return;
            }
            self.flush(|_| true);
            // Purges somewhat more at a time, because searching for victims is expensive.
            let wanted = excess + policy::allowed(self.meter.most_active()) / 32;
            let gone = self.purge_oldest(wanted);
            // Asked anew: another thread may have purged at the same time.
            self.stuck.store(if gone < wanted { self.idle() } else { 0 }, Relaxed);
        }
    }

    /// Bytes by which what is held exceeds what the peak justifies.
    fn beyond(&self, held: usize) -> usize {
        let allowed = || policy::allowed(self.meter.most_active());
        if self.options.is_automatic() { held.saturating_sub(allowed()) } else { 0 }
    }

    /// Bytes by which idle memory exceeds what the machine, the container or an outer bound have left, if that may be
    /// little. The kernel's OOM killer does not wait for the background purger.
    fn shortage(&self, fresh: usize, held: usize, idle: usize) -> usize {
        let unasked = self.unasked.fetch_add(fresh, Relaxed) + fresh;
        if unasked < ASK_MIN {
            return 0;
        }
        self.unasked.store(0, Relaxed);
        let by_bound = purger::left_of_bound().map_or(0, |left| idle.saturating_sub(left));
        if held < self.total / 2 {
            return by_bound;
        }
        let left = os::headroom().saturating_sub(self.total / 16);
        idle.saturating_sub(left).max(by_bound)
    }

    /// Queries whether the process has a bound on its address space.
    fn look_at_bound(&self) {
        self.idle_space.store(os::address_space_limit().map_or(usize::MAX, |limit| limit / IDLE_SPACE), Relaxed);
    }

    /// Returns address space at once if more than `may` bytes of it are idle, because other code, which never asks us
    /// for memory, would run out. Only then does a free make system calls.
    #[cold]
    fn vacate(&self, may: usize) {
        if self.idle_space_beyond(may.saturating_add(self.stuck_space.load(Relaxed))) > 0 {
            // Half of it at a time, because searching for victims is expensive. What could not be purged is not
            // searched for at every free.
            self.flush(|_| true);
            self.purge_oldest(self.idle_space_beyond(may / 2));
            if self.idle_space_beyond(may / 2) > 0 {
                self.unmap_clean();
            }
            self.stuck_space.store(self.idle_space_beyond(may / 2), Relaxed);
        }
    }

    /// Bytes of idle address space beyond so many.
    fn idle_space_beyond(&self, may: usize) -> usize {
        let held = self.heaps.held();
        (held.mapped.saturating_sub(held.out) + self.cached()).saturating_sub(may)
    }

    /// Does the background purger's work, where it has no thread, if a tick is due.
    #[cold]
    pub fn tick_if_due(&self) {
        if self.clock.is_due() {
            self.age();
        }
    }

    /// Ends an epoch: purges what is too old or too much.
    fn age(&self) {
        self.look_at_bound();
        if self.clock.tick() {
            self.heaps.all().for_each(Heap::tick);
        }
        let now = self.heaps.epoch();
        self.flush(|epoch| ticks_since(epoch, now) >= 2);
        if let Some(epochs) = self.clock.decay_epochs {
            if epochs < 2 {
                self.flush(|_| true);
            }
            // Parts of huge pages later, because the rest of a split one stays on base pages.
            let parts = self.heaps.purge_parts(epochs.saturating_add(epochs / 2));
            if self.purged(self.heaps.purge(epochs) + parts) > 0 {
                self.lower_tops();
            }
        }
        let idle = self.idle();
        // What could not be purged may have gone since. Once a tick, or each request would search.
        self.stuck.fetch_min(idle, Relaxed);
        let idle_space = self.idle_space.load(Relaxed);
        if idle_space != usize::MAX {
            self.stuck_space.fetch_min(self.idle_space_beyond(idle_space / 2), Relaxed);
        }
        let limit = policy::idle_limit(self.max_idle, idle);
        if idle > limit {
            self.flush(|_| true);
            self.purge_oldest(idle - limit);
        }
    }

    /// Records and returns the bytes that the heaps returned.
    fn purged(&self, gone: usize) -> usize {
        self.meter.purged.fetch_add(gone as u64, Relaxed);
        gone
    }

    /// Purges at least `bytes` of idle memory if there is as much, the longest idle first; bytes purged.
    fn purge_oldest(&self, bytes: usize) -> usize {
        self.purged(purging::purge_oldest(self.heaps.all(), bytes))
    }

    fn unmap_clean(&self) {
        for heap in self.heaps.all() {
            heap.unmap_clean();
        }
    }

    fn lower_tops(&self) {
        self.heaps.all().for_each(Heap::lower_tops);
    }

    /// Bytes of spans that hold blocks, to within 1 MiB for each processor.
    pub fn active(&self) -> usize {
        self.meter.active()
    }

    /// Idle bytes.
    pub fn idle(&self) -> usize {
        self.heaps.held().dirty + self.cached()
    }

    /// Bytes that were taken fresh from the system.
    pub fn taken_fresh(&self) -> usize {
        (self.meter.first_touched_small.load(Relaxed) + self.meter.first_touched_huge.load(Relaxed)) as usize
    }

    /// Of these, bytes beyond the most that was ever held and what was renewed: they had been given back too early.
    pub fn taken_again(&self) -> usize {
        let once = self.meter.peak_held.load(Relaxed).max(0) as usize + self.meter.renewed.load(Relaxed) as usize;
        self.taken_fresh().saturating_sub(once)
    }

    /// Gives back what is idle in parts of huge pages, which [`Allocator::trim`] leaves whole; bytes given back.
    pub fn trim_parts(&self) -> usize {
        self.purged(self.heaps.purge_parts(0))
    }

    fn gather(&self) -> Stats {
        let mut stats = Stats::default();
        let mut blocks = 0isize;
        let whole = |n: &AtomicIsize| n.load(Relaxed).max(0) as usize;
        // All shards at once: a block that one processor allocates and another frees would be counted twice, or never.
        self.shards().for_each(Lock::hold);
        for shard in self.shards() {
            // SAFETY: the line above holds the lock, and no other reference is made before its release below.
            let counts = unsafe { &mut shard.held().counts };
            self.meter.report(counts);
            blocks += counts.blocks;
            stats.allocations += counts.allocations;
            stats.recycled += counts.recycled;
            stats.allocated_bytes += counts.allocated_bytes;
            stats.recycled_bytes += counts.recycled_bytes;
        }
        stats.in_use = whole(&self.meter.in_use);
        stats.active = whole(&self.meter.active);
        stats.peak_in_use = whole(&self.meter.peak_in_use);
        stats.peak_active = whole(&self.meter.peak_active);
        // SAFETY: held above; nothing in between can panic.
        self.shards().for_each(|shard| unsafe { shard.release() });
        // The heaps are asked a moment later, as no lock of theirs is taken under a shard's. What they say is made to agree.
        let heaps = self.heaps.held();
        let idle = (heaps.out + heaps.dirty + heaps.leaving).saturating_sub(stats.active);
        let held = stats.active + idle;
        self.meter.peak_held.fetch_max(held.max(stats.peak_active) as isize, Relaxed);
        Stats {
            idle,
            mapped: heaps.mapped.max(held),
            retained: heaps.mapped.saturating_sub(held),
            peak_held: whole(&self.meter.peak_held),
            blocks: blocks.max(0) as usize,
            first_touched_small_bytes: self.meter.first_touched_small.load(Relaxed),
            first_touched_huge_bytes: self.meter.first_touched_huge.load(Relaxed),
            purged_bytes: self.meter.purged.load(Relaxed),
            refaulted_bytes: self.taken_again() as u64,
            failures: self.meter.failures.load(Relaxed),
            ..stats
        }
    }
}

/// Whether idle memory on huge pages may serve a smaller block: rounding to its units then wastes at most a quarter.
fn serves_small(size: usize) -> bool {
    size >= 4 * PageKind::Huge.unit()
}

// SAFETY: spans are whole pages, so blocks are aligned and never overlap; they stay until they are freed (law 8);
// zeroed requests are cleared below (law 2); a free acquires a shard's lock and perhaps the heap's, and calls no
// foreign code (law 5).
unsafe impl Allocator for Pool {
    fn describe(&self) -> Description {
        self.options.describe(Pages::description(self.options.huge))
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        self.allocate_for(request, self.for_arrays)
    }

    #[inline]
    unsafe fn deallocate(&self, address: NonNull<u8>) {
        let Some(span) = heap::span_at(address.as_ptr() as usize) else { return };
        let asked = span.segment.occupant(span.start).asked() as isize;
        span.segment.set_occupant(span.start, Occupant::NONE);
        let here = self.heaps.here();
        let mut shard = self.shard(here).lock();
        shard.counts.blocks -= 1;
        self.meter.note(&mut shard.counts, -asked, -(span.bytes() as isize));
        let recent = Recent { span, epoch: self.heaps.epoch() };
        let stays = span.bytes() <= SHARD_MAX && span.segment.node == here.node;
        let oldest = if stays { shard.put(recent) } else { Some(recent) };
        drop(shard);
        if let Some(Recent { span, epoch }) = oldest {
            self.heaps.of(span).give(span, epoch);
        }
        let idle_space = self.idle_space.load(Relaxed);
        if idle_space != usize::MAX {
            self.vacate(idle_space);
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        heap::span_at(address.as_ptr() as usize).map_or(0, |span| span.usable())
    }

    unsafe fn reallocate(&self, address: NonNull<u8>, request: Request) -> Result<Block, AllocError> {
        // SAFETY: a live block, as the trait demands; what is copied lies within both blocks, which do not overlap.
        unsafe {
            if request.suits(address) {
                let size = request.size();
                let there = if self.resize_in_place(address, size) { Some(address) } else { None };
                if let Some(address) = there.or_else(|| self.carry(address, size, request)) {
                    return Ok(Block { address, size: self.usable_size(address), zeroed: false });
                }
            }
            let old = self.usable_size(address);
            let block = self.allocate(request.with_zeroed(false))?;
            block.address.copy_from_nonoverlapping(address, old.min(request.size()));
            self.deallocate(address);
            Ok(Block { zeroed: false, ..block })
        }
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        let Some(span) = heap::span_at(address.as_ptr() as usize) else { return false };
        let old = span.segment.occupant(span.start);
        let Some(need) = round_up(size.saturating_add(old.offset()), span.segment.unit()) else { return false };
        let (mut change, mut fresh, mut huge) = (0, 0, 0);
        if need > span.bytes() {
            let (_, pages, _) = self.pages_for(Request::bytes(size), self.for_arrays);
            self.flush_large();
            let Some((_, clean)) = self.heaps.of(span).extend(span, need, pages) else { return false };
            (change, fresh) = ((need - span.bytes()) as isize, clean);
            huge = span
                .segment
                .on_fresh_huge(span.start + span.len, (need >> span.segment.unit_shift()) as u32 - span.len);
            self.evidence.lock().grown(huge);
        } else if span.bytes() - need >= CUT_MIN.max(span.bytes() / 8) {
            self.heaps.of(span).shrink(span, (need >> span.segment.unit_shift()).max(1) as u32);
            change = need.max(span.segment.unit()) as isize - span.bytes() as isize;
        }
        span.segment.set_occupant(span.start, Occupant::new(size, old.offset(), old.note()));
        self.meter.note(&mut self.shard(self.heaps.here()).lock().counts, size as isize - old.asked() as isize, change);
        if fresh > 0 {
            self.taken_fresh_of(fresh, huge);
        }
        true
    }

    fn trim(&self) -> usize {
        self.flush(|_| true);
        let gone = self.purged(self.heaps.purge(0));
        self.lower_tops();
        *self.evidence.lock() = Evidence::new(); // what comes next is served as at the beginning
        gone
    }

    fn stats(&self) -> Stats {
        self.gather()
    }

    fn in_segments(&self) -> bool {
        true
    }

    fn small_limit(&self) -> usize {
        SMALL_LIMIT
    }

    fn calls_out(&self) -> bool {
        false
    }
}

impl Purgeable for Pool {
    fn tick(&self) -> Option<Arc<dyn DeferredTrim>> {
        self.age();
        None // its memory comes from no upstream
    }

    fn is_idle(&self) -> bool {
        let held = self.heaps.held();
        held.out + held.dirty + held.leaving == 0
    }

    fn trim_idle(&self) {
        self.trim();
    }

    fn hold(&self) {
        // A heap's locks and a shard's are never held together. The purge lock comes first.
        self.evidence.hold();
        self.heaps.all().for_each(Heap::hold);
        self.shards().for_each(Lock::hold);
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` acquired them all.
        unsafe {
            self.shards().for_each(|shard| shard.release());
            self.heaps.all().for_each(|heap| heap.release());
            self.evidence.release();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        purger::leave(std::ptr::from_ref(self));
        self.flush(|_| true);
        // SAFETY: there are no other references to the pool; a heap with live blocks stays open (law 8).
        self.heaps.all().for_each(|heap| unsafe { heap.close() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_not_idle_while_its_memory_goes_back() {
        let pool = Pool::new(Options::default());
        assert!(pool.is_idle());
        pool.heaps.at(0).regions()[0].leaving = 4096; // another thread is giving it back
        assert!(!pool.is_idle());
        pool.heaps.at(0).regions()[0].leaving = 0;
    }
}
