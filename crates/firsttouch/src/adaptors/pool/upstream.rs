//! A pool over an upstream of which it knows nothing: it keeps freed blocks whole, in the order in which they were freed, and
//! hands out the last one that fits. It splits and joins none, and does not ask on which node they lie.
//!
//! A free only puts the block into the list. The background purger returns blocks that are too old or too many to the upstream;
//! where that runs foreign code, the next request does. Trimming and running out of memory return all.

use super::policy::{allowed, idle_limit};
use super::{Options, Pool, SMALL_LIMIT};
use crate::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use crate::failure;
use crate::heap::purger::{self, Clock, Purgeable};
use crate::ledger::Ledger;
use crate::os;
use crate::sources::may_be_called_by_purger;
use crate::stats::Stats;
use crate::sync::lock::Lock;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

/// Idle blocks that a request tries, the last freed first. To try this many costs less than a page fault.
const LOOK: usize = 256;

/// What the ledger records of a live block.
#[derive(Clone, Copy)]
struct Living {
    asked: usize,
    usable: usize,
    /// The size that was requested of the upstream.
    made: usize,
}

/// A block that waits for its next user.
#[derive(Clone, Copy)]
struct Idle {
    address: NonNull<u8>,
    usable: usize,
    made: usize,
    /// When it was freed.
    epoch: u32,
}

// SAFETY: an address, which only the pool uses.
unsafe impl Send for Idle {}

/// What a pool keeps and counts, under one lock.
#[derive(Default)]
struct Kept {
    /// Idle blocks, oldest first. There is room for all blocks, so that freeing one allocates nothing.
    blocks: VecDeque<Idle>,
    /// The number of blocks, idle or live.
    count: usize,
    /// The usable bytes of the idle ones.
    idle: usize,
    counts: Stats,
}

impl Kept {
    /// Makes room for a new block; whether there was memory for that.
    fn admit(&mut self) -> bool {
        let has_room = self.blocks.try_reserve(self.count + 1 - self.blocks.len()).is_ok();
        self.count += usize::from(has_room);
        has_room
    }

    /// Keeps a block that was admitted.
    fn put(&mut self, address: NonNull<u8>, Living { usable, made, .. }: Living, epoch: u32) {
        self.idle += usable;
        self.blocks.push_back(Idle { address, usable, made, epoch });
    }

    /// Takes the block freed last among those that suit and waste at most an eighth.
    fn take(&mut self, request: Request) -> Option<Idle> {
        let (size, most) = (request.size(), request.size() + request.size() / 8);
        let fits = |idle: &Idle| (size..=most).contains(&idle.made) && request.suits(idle.address);
        let (place, _) = self.blocks.iter().enumerate().rev().take(LOOK).find(|(_, idle)| fits(idle))?;
        self.remove(place)
    }

    /// Takes the block that has been idle longest if `old` returns `true` for its epoch and the bytes that are idle. The
    /// caller gives it back to the upstream.
    fn take_oldest(&mut self, old: impl Fn(u32, usize) -> bool) -> Option<Idle> {
        let is_old = self.blocks.front().is_some_and(|oldest| old(oldest.epoch, self.idle));
        let idle = if is_old { self.remove(0) } else { None }?;
        self.count -= 1;
        self.counts.purged_bytes += idle.usable as u64;
        Some(idle)
    }

    fn remove(&mut self, place: usize) -> Option<Idle> {
        let idle = self.blocks.remove(place)?;
        self.idle -= idle.usable;
        Some(idle)
    }

    /// Counts an allocation.
    fn on_alloc(&mut self, asked: usize, usable: usize) {
        self.counts.blocks += 1;
        self.counts.allocations += 1;
        self.counts.allocated_bytes += asked as u64;
        self.changed((0, 0), (asked, usable));
    }

    /// Counts a change of the requested and usable sizes of a live block.
    fn changed(&mut self, old: (usize, usize), new: (usize, usize)) {
        let counts = &mut self.counts;
        counts.in_use = counts.in_use + new.0 - old.0;
        counts.active = counts.active + new.1 - old.1;
        counts.peak_in_use = counts.peak_in_use.max(counts.in_use);
        counts.peak_active = counts.peak_active.max(counts.active);
        counts.peak_held = counts.peak_held.max(counts.active + self.idle);
    }
}

/// See the module.
pub(super) struct UpstreamPool {
    upstream: Arc<dyn Allocator>,
    /// Whether the background purger's thread may call it.
    is_purged: bool,
    options: Options,
    max_idle: usize,
    state: Lock<Kept>,
    ledger: Arc<Ledger<Living>>,
    clock: Clock,
}

impl Pool {
    /// Creates a pool over `upstream`. (For pages use [`Pool::new`], which splits and joins them.)
    pub fn over(upstream: Arc<dyn Allocator>, options: Options) -> Arc<dyn Allocator> {
        let pool = Arc::new(UpstreamPool {
            is_purged: may_be_called_by_purger(&upstream),
            upstream,
            options,
            max_idle: options.max_idle.unwrap_or(os::memory_total() / 4),
            state: Lock::new(Kept::default()),
            ledger: Ledger::new(),
            clock: Clock::new(options.decay),
        });
        let address = Arc::as_ptr(&pool);
        // SAFETY: the pool is not moved before it is dropped, which unregisters it.
        unsafe { purger::enter(address) };
        pool
    }
}

impl UpstreamPool {
    /// Takes an idle block, or else a fresh one, if need be after all idle ones were returned. Also returns what the ledger
    /// records, and whether the block is fresh.
    fn take(&self, request: Request) -> Result<(Block, Living, bool), AllocError> {
        let asked = request.size();
        let mut state = self.state.lock();
        if let Some(Idle { address, usable, made, .. }) = state.take(request) {
            state.counts.recycled += 1;
            state.counts.recycled_bytes += usable as u64;
            state.on_alloc(asked, usable);
            return Ok((Block { address, size: usable, zeroed: false }, Living { asked, usable, made }, false));
        }
        drop(state);
        let before = failure::now();
        let again = |_| {
            failure::retract(before);
            self.trim();
            self.upstream.allocate(request)
        };
        let block = self.upstream.allocate(request).or_else(again).map_err(|error| AllocError { asked, ..error })?;
        let mut state = self.state.lock();
        if !state.admit() {
            drop(state);
            // SAFETY: the block was just allocated, and nobody knows of it.
            unsafe { self.upstream.deallocate(block.address) };
            return Err(AllocError::new(asked, Limit::Upstream));
        }
        state.counts.first_touched_small_bytes += block.size as u64;
        state.on_alloc(asked, block.size);
        Ok((block, Living { asked, usable: block.size, made: asked }, true))
    }

    /// Keeps a freed block.
    fn put(&self, address: NonNull<u8>, living: Living) {
        let mut state = self.state.lock();
        state.counts.blocks -= 1;
        state.changed((living.asked, living.usable), (0, 0));
        state.put(address, living, self.clock.epoch());
    }

    /// Returns idle blocks while more is held than the peak justifies, unless the options say what may be idle.
    fn make_room(&self) {
        if self.options.is_automatic() {
            let (active, peak) = {
                let counts = &self.state.lock().counts;
                (counts.active, counts.peak_active)
            };
            self.give_back_while(|_, idle| active + idle > allowed(peak));
        }
    }

    /// Returns blocks, oldest first, while `more` returns `true` for their epoch and idle bytes; says how many bytes.
    fn give_back_while(&self, more: impl Fn(u32, usize) -> bool) -> usize {
        let mut gone = 0;
        loop {
            let oldest = self.state.lock().take_oldest(&more);
            let Some(idle) = oldest else { return gone };
            gone += idle.usable;
            // SAFETY: it was freed, and is in no list.
            unsafe { self.upstream.deallocate(idle.address) };
        }
    }

    /// Returns what is too old or too much.
    fn age(&self) {
        self.clock.tick();
        self.give_back_while(|epoch, _| self.is_old(epoch));
        let limit = idle_limit(self.max_idle, self.state.lock().idle);
        self.give_back_while(|_, bytes| bytes > limit);
    }

    /// Whether a block freed in `epoch` has decayed.
    fn is_old(&self, epoch: u32) -> bool {
        let age = self.clock.epoch().wrapping_sub(epoch);
        self.clock.decay_epochs.is_some_and(|epochs| age >= epochs.into())
    }
}

// SAFETY: blocks of the upstream are handed out whole and once: they are removed from the lists first.
unsafe impl Allocator for UpstreamPool {
    fn describe(&self) -> Description {
        self.options.describe(self.upstream.describe())
    }

    fn upstream(&self) -> Option<&Arc<dyn Allocator>> {
        Some(&self.upstream)
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        let refused = |error| {
            self.state.lock().counts.failures += 1;
            failure::pass_on(error);
            error
        };
        request.check().map_err(refused)?;
        let (block, living, is_fresh) = self.take(request).map_err(refused)?;
        if let Err(error) = self.ledger.enter(block.address, request.size(), living) {
            self.put(block.address, living);
            return Err(refused(error));
        }
        if request.is_zeroed() && !block.zeroed {
            // SAFETY: the block was just allocated and is not in use yet.
            unsafe { block.address.write_bytes(0, request.size()) };
        }
        if is_fresh {
            self.make_room();
        }
        if !(self.is_purged && purger::ensure()) && self.clock.is_due() {
            self.age();
        }
        Ok(Block { zeroed: request.is_zeroed() || block.zeroed, ..block })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        match self.ledger.leave(address) {
            Some(living) => self.put(address, living),
            // SAFETY: `Allocator::deallocate` is called with a live block of this allocator that nobody uses any more,
            // by handlers, adaptors, buffers and fronts; a block that is not listed was the upstream's own.
            None => unsafe { self.upstream.deallocate(address) },
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: `Allocator::usable_size` is called with a live block of this allocator, by handlers, adaptors,
        // buffers and fronts.
        self.ledger.get(address).map_or_else(|| unsafe { self.upstream.usable_size(address) }, |living| living.usable)
    }

    /// A block keeps its end, unless it is large and that is most of it.
    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        let Some(old) = self.ledger.get(address) else {
            // SAFETY: as for `usable_size`; nobody uses the end that it loses.
            return unsafe { self.upstream.resize_in_place(address, size) };
        };
        let stays = size <= old.usable && (size >= old.usable / 2 || old.usable <= SMALL_LIMIT);
        if stays {
            self.ledger.set(address, Living { asked: size, ..old });
            self.state.lock().changed((old.asked, 0), (size, 0));
        }
        stays
    }

    fn trim(&self) -> usize {
        self.give_back_while(|_, _| true).max(self.upstream.trim())
    }

    fn stats(&self) -> Stats {
        let upstream = self.upstream.stats();
        let mut state = self.state.lock();
        let idle = state.idle + upstream.idle;
        // What was returned may be idle in the upstream still.
        state.counts.peak_held = state.counts.peak_held.max(state.counts.active + idle);
        let mapped = upstream.mapped.max(state.counts.active + idle + upstream.retained);
        Stats { idle, mapped, retained: upstream.retained, ..state.counts }
    }

    /// Idle blocks are no reason, although they live for the upstream: they go back to it with the pool.
    fn must_stay(&self) -> bool {
        self.ledger.any() && self.upstream.must_stay()
    }

    fn owns(&self, address: NonNull<u8>) -> Option<bool> {
        Some(self.ledger.get(address).is_some())
    }

    fn small_limit(&self) -> usize {
        SMALL_LIMIT
    }

    fn calls_out(&self) -> bool {
        self.upstream.calls_out()
    }
}

impl Purgeable for UpstreamPool {
    fn tick(&self) {
        if self.is_purged {
            self.age();
        }
    }

    fn is_idle(&self) -> bool {
        let state = self.state.lock();
        !self.is_purged || state.counts.blocks == 0 && state.idle == 0
    }

    fn trim_idle(&self) {
        if self.is_purged {
            self.trim();
        }
    }

    fn hold(&self) {
        self.state.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` acquired it.
        unsafe { self.state.release() }
    }
}

impl Drop for UpstreamPool {
    fn drop(&mut self) {
        purger::leave(std::ptr::from_ref(self));
        self.give_back_while(|_, _| true);
    }
}
