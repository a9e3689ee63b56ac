//! The pool: keeps freed blocks, reuses the warmest first, splits and joins them, and returns idle memory to the
//! system.
//!
//! A free only puts the span on its processor's shard; the oldest span of the shard moves to the heap, where it is
//! joined with its neighbors. A request tries its processor's shard, then the heap, then the shards of the other
//! processors, and only then takes fresh memory. The memory held stays close to the peak of what was in use. On
//! machines with several nodes there is a heap for each, and memory that is idle there serves no other node.

#![allow(unsafe_code)] // Safety: blocks are handed out whole and once, by the heap's spans.

mod clock;
mod coloring;
mod density;
mod growth;
mod guest;
mod heaps;
mod huge_min;
mod locality;
mod meter;
mod options;
mod purging;
mod replayed;
mod retention;
mod shard;
mod take;
mod upstream_pool;
mod zero;

use crate::allocator::{AllocError, Allocator, Block, Description, Request};
use crate::failure;
use crate::heap::heap;
use crate::heap::occupant::Occupant;
use crate::heap::purger;
use crate::heap::shape::Kind;
use crate::layout::round_up;
use crate::numa::local_nodes::LocalNodes;
use crate::os;
use crate::sources::Pages;
use crate::stats::Stats;
use crate::sync::lock::Lock;
use clock::Clock;
use growth::Growth;
use guest::Guest;
use heaps::Heaps;
pub use huge_min::huge_min;
use meter::Meter;
pub use options::Options;
use retention::Retention;
use shard::{MAX as SHARD_MAX, Recent, Shard};
use std::any::Any;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

pub use crate::layout::SMALL_LIMIT;

/// A block on base pages grows in place up to this size; beyond that it moves to huge pages.
const GROW_SMALL_MAX: usize = 8 << 20;
/// A shrinking block returns its end if that is at least this large.
const CUT_MIN: usize = 64 << 10;

#[repr(align(128))] // two cache lines, which the prefetcher loads together
struct Padded(Lock<Shard>);

/// Whether an allocator is a pool, over any memory.
pub fn is_pool(allocator: &dyn Allocator) -> bool {
    let kind: &dyn Any = allocator;
    kind.is::<Pool>() || kind.is::<upstream_pool::UpstreamPool>()
}

/// See the module.
pub struct Pool {
    options: Options,
    max_idle: usize,
    heaps: Heaps,
    shards: Box<[Padded]>,
    meter: Meter,
    clock: Clock,
    retention: Retention,
    growth: Growth,
    /// Idle bytes that the last purge could not return.
    stuck: AtomicUsize,
    /// The memory of the machine or container, and the fresh bytes taken since the available memory was last queried.
    total: usize,
    unasked: AtomicUsize,
    /// Bytes of address space that may be idle; `usize::MAX` if the process has no bound on it.
    idle_space: AtomicUsize,
    /// Bytes of these that the last purge could not return.
    stuck_space: AtomicUsize,
    /// Whether the system once failed to report the nodes of pages.
    untold: AtomicBool,
    /// Only in a program that was not written for pools.
    guest: Option<Guest>,
}

impl Pool {
    /// Creates a pool.
    pub fn new(options: Options) -> Arc<Self> {
        Self::make(options, Clock::new(options.decay), None)
    }

    fn make(options: Options, clock: Clock, guest: Option<Guest>) -> Arc<Self> {
        let total = os::memory_total();
        let heaps = Heaps::new(LocalNodes::of_the_machine());
        let shards = heaps.local_nodes.map_or(os::processors().min(64), LocalNodes::shards);
        let pool = Arc::new(Self {
            options,
            max_idle: options.max_idle.unwrap_or(total / 4),
            heaps,
            shards: (0..shards).map(|_| Padded(Lock::new(Shard::new()))).collect(),
            meter: Meter::default(),
            clock,
            retention: Retention::default(),
            growth: Growth::default(),
            stuck: AtomicUsize::new(0),
            total,
            unasked: AtomicUsize::new(0),
            idle_space: AtomicUsize::new(usize::MAX),
            stuck_space: AtomicUsize::new(0),
            untold: AtomicBool::new(false),
            guest,
        });
        let address = Arc::as_ptr(&pool);
        // SAFETY: the pool is not moved before it is dropped, which closes the heaps and unregisters it.
        unsafe {
            pool.heaps.set_owner(address);
            purger::enter(address);
        }
        pool
    }
}

// SAFETY: spans are whole pages, so blocks are aligned and never overlap; they stay until they are freed (law 8);
// zeroed requests are cleared below (law 2); a free acquires a shard's lock and perhaps the heap's, and calls no
// foreign code (law 5).
unsafe impl Allocator for Pool {
    fn describe(&self) -> Description {
        self.options.describe(Pages::description(self.options.huge))
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| {
            self.meter.failures.fetch_add(1, Relaxed);
            failure::remember(error);
        })?;
        let kind = self.kind(request.size(), request.is_zeroed());
        let recent = self.take_recent(kind, request);
        let mut told = recent.is_none(); // whether its ages, and so its dirty bytes, are valid
        let mut span = match recent {
            Some(span) => span,
            None => self.take_from_heap(kind, request).or_else(|refused| self.retry(kind, request, refused))?,
        };
        if let Some(local_nodes) = self.heaps.local_nodes
            && !span.segment.is_known_local(span.start, span.len)
        {
            // SAFETY: the span was just allocated and is not in use.
            (span, told) = unsafe { self.make_local(local_nodes, span, request, told) };
        }
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
                }
            }
        }
        let zeroed = request.is_zeroed() || (told && span.dirty == 0);
        // SAFETY: spans lie in mapped memory, never at zero.
        let address = unsafe { NonNull::new_unchecked(with_exposed_provenance_mut(span.block())) };
        Ok(Block { address, size: span.usable(), zeroed })
    }

    #[inline]
    unsafe fn deallocate(&self, address: NonNull<u8>) {
        let Some((kind, span)) = heap::span_at(address.as_ptr() as usize) else { return };
        let asked = span.segment.occupant(span.start).asked() as isize;
        span.segment.set_occupant(span.start, Occupant::NONE);
        if let Some(guest) = &self.guest {
            guest.look_at(self, span, asked as usize);
        }
        let here = self.here();
        let mut shard = self.shard(here).lock();
        shard.counts.blocks -= 1;
        self.meter.note(&mut shard.counts, -asked, -(span.bytes() as isize));
        let recent = Recent { kind, span, epoch: self.heaps.epoch() };
        let stays = span.bytes() <= SHARD_MAX && span.segment.local_node == here.local_node;
        let oldest = if stays { shard.put(recent) } else { Some(recent) };
        drop(shard);
        if let Some(Recent { kind, span, epoch }) = oldest {
            self.heaps.of(span).give(kind, span, epoch);
        }
        let idle_space = self.idle_space.load(Relaxed);
        if idle_space != usize::MAX {
            self.vacate(idle_space);
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        heap::span_at(address.as_ptr() as usize).map_or(0, |(_, span)| span.usable())
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        let Some((kind, span)) = heap::span_at(address.as_ptr() as usize) else { return false };
        let old = span.segment.occupant(span.start);
        let Some(need) = round_up(size.saturating_add(old.offset()), span.segment.unit()) else { return false };
        let (mut change, mut fresh) = (0, 0);
        if need > span.bytes() {
            if kind == Kind::Small && size > GROW_SMALL_MAX.max(huge_min(false)) && self.guest.is_none() {
                return false;
            }
            let Some(added) = self.extend(kind, span, need) else { return false };
            (change, fresh) = ((need - span.bytes()) as isize, added);
        } else if span.bytes() - need >= CUT_MIN.max(span.bytes() / 8) {
            self.heaps.of(span).shrink(kind, span, (need >> span.segment.unit_shift()).max(1) as u32);
            change = need.max(span.segment.unit()) as isize - span.bytes() as isize;
        }
        span.segment.set_occupant(span.start, Occupant::new(size, old.offset()));
        self.meter.note(&mut self.shard(self.here()).lock().counts, size as isize - old.asked() as isize, change);
        if fresh > 0 {
            self.touched(kind, fresh);
            self.taken_fresh_of(kind, fresh);
        }
        true
    }

    fn trim(&self) -> usize {
        self.flush(|_| true);
        let gone = self.purged(self.heaps.purge(0));
        self.heaps.lower_tops();
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

impl Drop for Pool {
    fn drop(&mut self) {
        purger::leave(std::ptr::from_ref(self));
        self.flush(|_| true);
        // SAFETY: there are no other references to the pool; a heap with live blocks stays open (law 8).
        unsafe { self.heaps.close() };
    }
}
