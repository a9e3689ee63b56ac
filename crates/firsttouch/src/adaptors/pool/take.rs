//! Where a request finds its span: on its processor's shard, in the heap, on other shards, or in fresh memory.

use super::shard::{Recent, Shard};
use super::zero::RENEW_MIN;
use super::{Pool, SHARD_MAX, coloring, huge_min};
use crate::allocator::{AllocError, Allocator, Request};
use crate::failure;
use crate::heap::free_lists::Side;
use crate::heap::heap::{self, Heap};
use crate::heap::mapping_limit;
use crate::heap::occupant::Occupant;
use crate::heap::purger;
use crate::heap::region::Span;
use crate::heap::shape::{Kind, huge_page};
use crate::layout::round_up;
use crate::numa::local_nodes::Place;
#[cfg(not(shuttle))]
use crate::os;
use crate::os::Errno;
use crate::sync::lock::Lock;
use std::sync::atomic::Ordering::Relaxed;

impl Pool {
    pub(super) fn kind(&self, size: usize, zeroed: bool) -> Kind {
        let huge = self.options.huge
            && match &self.guest {
                Some(guest) => guest.wants_huge(self, size, zeroed),
                None => size >= huge_min(zeroed),
            };
        if huge { Kind::Huge } else { Kind::Small }
    }

    /// The local node and the shard of the calling thread.
    #[inline]
    pub(super) fn here(&self) -> Place {
        self.heaps.here(self.shards.len(), processor)
    }

    #[inline]
    pub(super) fn shard(&self, here: Place) -> &Lock<Shard> {
        &self.shards[here.shard].0
    }

    /// The warmest span of this processor that fits.
    #[inline]
    pub(super) fn take_recent(&self, kind: Kind, request: Request) -> Option<Span> {
        if request.size() > SHARD_MAX {
            return None;
        }
        let mut shard = self.shard(self.here()).lock();
        let mut take = |kind: Kind| shard.take(kind, coloring::room(kind.unit(), request.size(), request.align()));
        let span = take(kind).or_else(|| self.other(kind, request.size()).and_then(&mut take))?;
        if span.address() & (request.align() - 1) != 0 {
            let epoch = self.heaps.epoch();
            let _ = shard.put(Recent { kind: span.kind(), span, epoch }); // there is room: a span was just removed
            return None;
        }
        shard.counts.recycled += 1;
        shard.counts.recycled_bytes += span.bytes() as u64;
        self.count(&mut shard, span, request);
        Some(span)
    }

    #[inline]
    fn count(&self, shard: &mut Shard, span: Span, request: Request) {
        let asked = request.size();
        let offset = coloring::offset(shard.counts.allocations, span.bytes() - asked, request.align());
        span.segment.set_occupant(span.start, Occupant::new(asked, offset));
        shard.counts.allocations += 1;
        shard.counts.blocks += 1;
        shard.counts.allocated_bytes += asked as u64;
        self.meter.note(&mut shard.counts, asked as isize, span.bytes() as isize);
    }

    /// Takes a span from the local heap: dirty, then from the other processors' shards, then fresh.
    #[cold]
    pub(super) fn take_from_heap(&self, kind: Kind, request: Request) -> Result<Span, Errno> {
        let (size, align) = (coloring::room(kind.unit(), request.size(), request.align()), request.align());
        let local_node = self.heaps.local_nodes.map_or(0, |local_nodes| local_nodes.look_here().local_node);
        let heap = self.heaps.at(local_node);
        self.flush_large();
        let span = if request.is_zeroed() && kind == Kind::Huge && request.size() >= RENEW_MIN {
            self.take_renewed(heap, request)?
        } else {
            let mut span = heap.take_dirty(kind, size, align)?;
            if span.is_none() && self.flush_node(local_node) > 0 {
                span = heap.take_dirty(kind, size, align)?;
            }
            if span.is_none() {
                span = self.take_resident(heap, kind, request);
            }
            match span {
                Some(span) => span,
                None => heap.take_or_map(kind, size, align, [Side::Dirty, Side::Clean], self.fresh(kind, request))?,
            }
        };
        self.taken(span, request);
        Ok(span)
    }

    /// The other region, if what is idle there may serve `size` bytes before fresh memory does. Base pages serve large blocks
    /// only in a program that was not written for pools, whose first blocks left them behind.
    #[inline]
    fn other(&self, kind: Kind, size: usize) -> Option<Kind> {
        let other = match kind {
            Kind::Small => Kind::Huge,
            Kind::Huge if self.guest.is_some() => Kind::Small,
            Kind::Huge => return None,
        };
        (size >= 4 * other.unit()).then_some(other) // rounding to units then wastes at most a quarter
    }

    /// Takes a span from the other region if all of it was handed out before: fresh memory would have to be faulted in.
    fn take_resident(&self, heap: &Heap, kind: Kind, request: Request) -> Option<Span> {
        let (size, align) = (request.size(), request.align());
        let other = self.other(kind, size)?;
        heap.take_resident(other, coloring::room(other.unit(), size, align), align)
    }

    /// Takes a span from what is free and mapped in either region of the local heap, wherever it lies.
    fn take_mapped(&self, kind: Kind, request: Request) -> Option<Span> {
        let (size, align) = (request.size(), request.align());
        let heap = self.heaps.at(self.here().local_node);
        let of = |kind: Kind| heap.take_mapped(kind, coloring::room(kind.unit(), size, align), align);
        let other = match kind {
            Kind::Huge => Some(Kind::Small),
            Kind::Small => self.options.huge.then_some(Kind::Huge),
        };
        let span = of(kind).or_else(|| other.and_then(of))?;
        self.taken(span, request);
        Some(span)
    }

    /// Takes a span from the region for base pages, from fresh memory if need be, as its granules are smaller.
    fn take_base_pages(&self, request: Request) -> Option<Span> {
        let heap = self.heaps.at(self.here().local_node);
        let span = heap.take_or_grow(Kind::Small, request.size(), request.align(), true).ok()?;
        self.taken(span, request);
        Some(span)
    }

    /// Records that a span was taken from a heap for a request.
    fn taken(&self, span: Span, request: Request) {
        let mut shard = self.shard(self.here()).lock();
        let fresh = span.bytes() - span.dirty;
        shard.counts.recycled += u64::from(fresh == 0);
        shard.counts.recycled_bytes += span.dirty as u64;
        self.count(&mut shard, span, request);
        drop(shard);
        if let Some(guest) = &self.guest {
            guest.taken(span, request.size());
        }
        if fresh == 0 {
            return;
        }
        let huge = span.segment.on_fresh_huge(span.start, span.len);
        if span.kind() == Kind::Small {
            self.growth.taken(span, fresh, huge, request);
        }
        self.touched(Kind::Huge, huge);
        self.touched(span.kind(), fresh - huge);
        self.taken_fresh_of(span.kind(), fresh);
    }

    /// Makes room for `fresh` bytes that were taken from the system.
    pub(super) fn taken_fresh_of(&self, kind: Kind, fresh: usize) {
        self.make_room(kind, fresh);
        if !self.clock.is_set_by_hand() && !purger::ensure() {
            self.tick_if_due();
        }
    }

    /// Takes a span of whole huge pages for a large zeroed request; dirty memory is purged first, as often as that
    /// helps.
    fn take_renewed(&self, heap: &Heap, request: Request) -> Result<Span, Errno> {
        let page = huge_page();
        let whole = round_up(request.size(), page).ok_or(Errno::NO_MEMORY)?;
        let align = request.align().max(page);
        for _ in 0..3 {
            let span = heap.take_or_grow(Kind::Huge, whole, align, false)?;
            if span.dirty == 0 {
                return Ok(span);
            }
            self.meter.purged.fetch_add(span.dirty as u64, Relaxed);
            heap.give_back(Kind::Huge, span);
        }
        heap.take_or_grow(Kind::Huge, whole, align, false)
    }

    pub(super) fn touched(&self, kind: Kind, bytes: usize) {
        let counter = if kind == Kind::Huge { &self.meter.first_touched_huge } else { &self.meter.first_touched_small };
        counter.fetch_add(bytes as u64, Relaxed);
    }

    /// Serves a request from what is mapped of either region, because at the limit on mappings memory cannot move from one
    /// place to another; else tries again after trimming the pool.
    #[cold]
    pub(super) fn retry(&self, kind: Kind, request: Request, refused: Errno) -> Result<Span, AllocError> {
        if refused == Errno::NO_MEMORY {
            mapping_limit::look_at_mappings();
            if let Some(span) = self.take_mapped(kind, request) {
                return Ok(span);
            }
        }
        self.trim();
        self.heaps.unmap_clean();
        let result = if refused == Errno::UNSUPPORTED { Err(refused) } else { self.take_from_heap(kind, request) };
        let result = result.or_else(|error| self.take_mapped(kind, request).ok_or(error));
        let result = match kind {
            Kind::Huge => result.or_else(|error| self.take_base_pages(request).ok_or(error)),
            Kind::Small => result,
        };
        result.map_err(|error| {
            self.meter.failures.fetch_add(1, Relaxed);
            let error = heap::refused(request.size(), error);
            failure::remember(error);
            error
        })
    }
}

/// The processor whose shard serves this thread. The model checker tries them all.
#[inline]
fn processor() -> usize {
    #[cfg(shuttle)]
    return shuttle::rand::Rng::gen_range(&mut shuttle::rand::thread_rng(), 0..2);
    #[cfg(not(shuttle))]
    os::current_processor()
}
