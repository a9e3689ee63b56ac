//! A pool over any upstream: it keeps freed blocks whole, in the order in which they were freed, and hands out the last one that
//! fits. It splits and joins none, and does not ask on which node they lie.
//!
//! A free only puts the block into the list. The background purger returns blocks that are too old or too many to the upstream;
//! where that runs foreign code, the next request does. Trimming and running out of memory return all.

use super::meter::{Meter, PoolCounts};
use super::{Options, Pool};
use crate::allocator::{AllocError, Allocator, Block, BlockList, Description, Limit, Request};
use crate::failure;
use crate::heap::purger::{self, Clock, Registered};
use crate::layout::SMALL_LIMIT;
use crate::ledger::Ledger;
use crate::policy::{UPSTREAM_TRIES, UPSTREAM_WASTE, allowed, idle_limit};
use crate::stats::Stats;
use crate::sync::lock::{AtFork, Lock, RawLock};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The bytes of a block: asked for by its user, requested of the upstream, and usable.
#[derive(Clone, Copy)]
struct Sizes {
    asked: usize,
    requested: usize,
    usable: usize,
}

/// A block that waits for its next user.
struct IdleBlock {
    address: NonNull<u8>,
    sizes: Sizes,
    /// When it was freed.
    epoch: u32,
}

// SAFETY: an address, which only the pool uses.
unsafe impl Send for IdleBlock {}

/// The idle blocks and the counts of a pool, under one lock.
#[derive(Default)]
struct FreeList {
    /// Idle blocks, oldest first, with capacity for the live ones, too, so that freeing one allocates nothing.
    blocks: VecDeque<IdleBlock>,
    /// The usable bytes of the idle ones.
    idle: usize,
    counts: PoolCounts,
}

impl FreeList {
    /// Takes the block freed last among those that suit and waste little.
    fn take(&mut self, request: Request) -> Option<IdleBlock> {
        let sizes = request.size()..=request.size() + request.size() / UPSTREAM_WASTE;
        let fits = |idle: &IdleBlock| sizes.contains(&idle.sizes.requested) && request.suits(idle.address);
        let (at, _) = self.blocks.iter().enumerate().rev().take(UPSTREAM_TRIES).find(|(_, idle)| fits(idle))?;
        self.remove(at)
    }

    fn remove(&mut self, at: usize) -> Option<IdleBlock> {
        let idle = self.blocks.remove(at)?;
        self.idle -= idle.sizes.usable;
        Some(idle)
    }
}

/// See the module.
pub(super) struct UpstreamPool {
    upstream: Arc<dyn Allocator>,
    /// Whether the background purger's thread may call it.
    is_purged: bool,
    options: Options,
    state: Lock<FreeList>,
    meter: Meter,
    ledger: Arc<Ledger<Sizes>>,
    clock: Clock,
}

impl Pool {
    /// Creates a pool over `upstream`. (For pages use [`Pool::new`], which splits and joins them.)
    pub fn over(upstream: Arc<dyn Allocator>, options: Options) -> Arc<dyn Allocator> {
        let pool = Arc::new(UpstreamPool {
            is_purged: !upstream.calls_out(),
            upstream,
            options,
            state: Lock::new(FreeList::default()),
            meter: Meter::default(),
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
    /// A fresh block, if need be after all idle ones were returned. If nothing was idle, the upstream is not asked again: it may
    /// call this pool.
    fn fresh(&self, request: Request) -> Result<Block, AllocError> {
        let again = |error| {
            if self.trim() == 0 {
                return Err(error);
            }
            failure::retract(error);
            self.upstream.allocate(request)
        };
        let block = self.upstream.allocate(request).or_else(again)?;
        self.meter.touched(block.size, 0);
        Ok(block)
    }

    /// Counts a block that is handed out, and lets the list have the capacity for it.
    fn count(&self, Sizes { asked, usable, .. }: Sizes, recycled: usize) -> Result<(), AllocError> {
        let mut state = self.state.lock();
        let live = state.counts.blocks as usize + 1;
        state.blocks.try_reserve(live).map_err(|_| AllocError::new(asked, Limit::Upstream))?;
        state.counts.blocks += 1;
        state.counts.served(asked, usable, recycled);
        self.meter.add(&mut state.counts, asked as isize, usable as isize);
        Ok(())
    }

    /// Returns blocks, oldest first, while `more` returns `true` for their epoch and the idle bytes; says how many bytes.
    fn purge_while(&self, more: impl Fn(u32, usize) -> bool) -> usize {
        let mut gone = 0;
        loop {
            let mut state = self.state.lock();
            let is_old = state.blocks.front().is_some_and(|oldest| more(oldest.epoch, state.idle));
            let Some(IdleBlock { address, sizes, .. }) = (if is_old { state.remove(0) } else { None }) else {
                return gone;
            };
            drop(state);
            self.meter.purged.fetch_add(sizes.usable as u64, Relaxed);
            gone += sizes.usable;
            // SAFETY: it was freed, and is in no list.
            unsafe { self.upstream.deallocate(address) };
        }
    }

    /// Returns what is too old or too much.
    fn decay(&self) {
        self.clock.tick();
        let (now, decay) = (self.clock.epoch(), self.clock.decay_epochs);
        self.purge_while(|epoch, _| decay.is_some_and(|epochs| now.wrapping_sub(epoch) >= epochs.into()));
        let limit = idle_limit(self.options.max_idle, self.state.lock().idle);
        self.purge_while(|_, idle| idle > limit);
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
        let asked = request.size();
        let refused = |error: AllocError| {
            let error = AllocError { asked, ..error };
            self.meter.failures.fetch_add(1, Relaxed);
            failure::pass_on(error);
            error
        };
        request.check().map_err(refused)?;
        let idle = self.state.lock().take(request);
        let (block, requested, recycled) = match idle {
            Some(IdleBlock { address, sizes: Sizes { requested, usable, .. }, .. }) => {
                (Block { address, size: usable, zeroed: false }, requested, usable)
            }
            None => (self.fresh(request).map_err(refused)?, asked, 0),
        };
        let sizes = Sizes { asked, requested, usable: block.size };
        let entered = self.ledger.enter(block.address, asked, sizes);
        entered.and_then(|()| self.count(sizes, recycled)).map_err(|error| {
            self.ledger.leave(block.address);
            // SAFETY: it was just allocated, or taken out of the list, and nobody else knows of it.
            unsafe { self.upstream.deallocate(block.address) };
            refused(error)
        })?;
        if request.is_zeroed() && !block.zeroed {
            // SAFETY: the block was just allocated and is not in use yet.
            unsafe { block.address.write_bytes(0, asked) };
        }
        if recycled == 0 && self.options.is_automatic() {
            self.purge_while(|_, idle| self.meter.active() + idle > allowed(self.meter.most_active()));
        }
        if !(self.is_purged && purger::ensure()) && self.clock.is_due() {
            self.decay();
        }
        Ok(Block { zeroed: request.is_zeroed() || block.zeroed, ..block })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        let Some(sizes) = self.ledger.leave(address) else {
            // SAFETY: as demanded; a block that is not listed was the upstream's own.
            return unsafe { self.upstream.deallocate(address) };
        };
        let mut state = self.state.lock();
        state.counts.blocks -= 1;
        self.meter.add(&mut state.counts, -(sizes.asked as isize), -(sizes.usable as isize));
        state.idle += sizes.usable;
        state.blocks.push_back(IdleBlock { address, sizes, epoch: self.clock.epoch() });
        drop(state);
        if self.is_purged {
            purger::restart_after_fork();
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: as above.
        self.ledger.get(address).map_or_else(|| unsafe { self.upstream.usable_size(address) }, |sizes| sizes.usable)
    }

    fn trim(&self) -> usize {
        self.purge_while(|_, _| true).max(self.upstream.trim())
    }

    fn stats(&self) -> Stats {
        let upstream = self.upstream.stats();
        let mut state = self.state.lock();
        let stats = self.meter.stats(std::iter::once(&mut state.counts));
        let idle = state.idle + upstream.idle; // what was returned may be idle in the upstream still
        let held = stats.active + idle;
        self.meter.hold(held.max(stats.peak_active));
        let mapped = upstream.mapped.max(held + upstream.retained);
        Stats { idle, mapped, retained: upstream.retained, peak_held: self.meter.most_held(), ..stats }
    }

    fn list(&self) -> Option<&dyn BlockList> {
        Some(&*self.ledger)
    }

    fn small_limit(&self) -> usize {
        SMALL_LIMIT
    }
}

impl AtFork for UpstreamPool {
    fn locks(&self, each: &mut dyn FnMut(&RawLock)) {
        each(self.state.raw());
    }
}

impl Registered for UpstreamPool {
    fn tick(&self) {
        if self.is_purged {
            self.decay();
        }
    }

    fn needs_no_tick(&self) -> bool {
        let state = self.state.lock();
        !self.is_purged || state.counts.blocks == 0 && state.idle == 0
    }

    fn trim_idle(&self) {
        if self.is_purged {
            self.trim();
        }
    }
}

impl Drop for UpstreamPool {
    fn drop(&mut self) {
        purger::leave(std::ptr::from_ref(self));
        self.purge_while(|_, _| true);
    }
}
