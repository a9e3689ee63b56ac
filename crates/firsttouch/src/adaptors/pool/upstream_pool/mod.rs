//! A pool over any upstream: keeps freed blocks whole and hands out the warmest that fits.
//!
//! A free only puts the block into the free cache. The background purger, or the next request that takes fresh memory,
//! returns blocks that are too old or too many to the upstream; trimming and running out of memory return all.

mod free_cache;
mod locality;
mod purging;
mod state;

use super::policy;
use super::purging::Clock;
use super::{Options, Pool, SMALL_LIMIT};
use crate::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use crate::failure;
use crate::heap::ledger::Ledger;
use crate::heap::purger;
use crate::numa::local_nodes::LocalNodes;
use crate::os;
use crate::stats::Stats;
use crate::sync::lock::Lock;
use free_cache::Idle;
use state::State;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// What the ledger records of a live block.
#[derive(Clone, Copy)]
struct Living {
    asked: usize,
    usable: usize,
    slot: u32,
    local_node: u8,
    seen: u32,
}

/// See the module.
pub(super) struct UpstreamPool {
    me: Weak<Self>,
    upstream: Arc<dyn Allocator>,
    options: Options,
    max_idle: usize,
    state: Lock<State>,
    ledger: Arc<Ledger<Living>>,
    clock: Clock,
    /// Incremented at every tick of the background purger.
    epoch: AtomicU32,
    /// `None` if the location of blocks does not matter: all memory is equally near, or the upstream decides the
    /// placement.
    local_nodes: Option<&'static LocalNodes>,
    /// Whether a block's first and last page are its own, too.
    own_pages: bool,
    /// The number of forks plus one.
    forks: AtomicU32,
    /// One more than the epoch in which blocks were last found to be placed by another policy.
    elsewhere: AtomicU32,
    /// Whether the system once failed to report the nodes of pages.
    untold: AtomicBool,
}

impl Pool {
    /// Creates a pool over `upstream`. (For pages use [`Pool::new`], which splits and joins them.)
    pub fn over(upstream: Arc<dyn Allocator>, options: Options) -> Arc<dyn Allocator> {
        let local_nodes = LocalNodes::of_the_machine().filter(|_| !locality::is_placed(&*upstream));
        let own_pages = locality::has_own_pages(&*upstream);
        let pool = Arc::new_cyclic(|me| UpstreamPool {
            me: me.clone(),
            upstream,
            options,
            max_idle: options.max_idle.unwrap_or(os::memory_total() / 4),
            state: Lock::new(State::new(local_nodes.map_or(1, LocalNodes::count))),
            ledger: Ledger::new(),
            clock: Clock::new(options.decay),
            epoch: AtomicU32::new(0),
            local_nodes,
            own_pages,
            forks: AtomicU32::new(1),
            elsewhere: AtomicU32::new(0),
            untold: AtomicBool::new(false),
        });
        let address = Arc::as_ptr(&pool);
        // SAFETY: the pool is not moved before it is dropped, which unregisters it.
        unsafe { purger::enter(address) };
        pool
    }
}

impl UpstreamPool {
    /// Takes a block from the free cache.
    fn recycle(&self, request: Request) -> Option<Idle> {
        let local_node = self.local_node();
        let take = || self.state.lock().free_cache.take(local_node, request.size(), request.align());
        let mut idle = take()?;
        while self.local_nodes.is_some_and(|local_nodes| !self.is_local(local_nodes, &mut idle)) {
            self.give_back(idle);
            idle = take()?;
        }
        let mut state = self.state.lock();
        state.counts.recycled += 1;
        state.counts.recycled_bytes += idle.size as u64;
        state.on_alloc(request.size(), idle.size);
        Some(idle)
    }

    /// Allocates a block, if need be after all idle ones were returned; also returns whether it reads zero.
    fn fresh(&self, request: Request) -> Result<(Idle, bool), AllocError> {
        let slot = self.state.lock().free_cache.admit().ok_or(AllocError::new(request.size(), Limit::Upstream))?;
        let before = failure::now();
        let again = |_| {
            failure::retract(before);
            self.trim();
            self.upstream.allocate(request)
        };
        let block = self.upstream.allocate(request).or_else(again).map_err(|error| {
            self.state.lock().free_cache.dismiss(slot);
            AllocError { asked: request.size(), ..error }
        })?;
        let mut state = self.state.lock();
        state.counts.first_touched_small_bytes += block.size as u64;
        state.on_alloc(request.size(), block.size);
        drop(state);
        let idle = Idle {
            address: block.address.as_ptr() as usize,
            size: block.size,
            epoch: 0,
            slot,
            local_node: self.local_node(),
            seen: 0,
        };
        Ok((idle, block.zeroed))
    }

    /// Puts a freed block into the free cache.
    fn put(&self, address: NonNull<u8>, Living { asked, usable, slot, local_node, seen }: Living) {
        let epoch = self.epoch.load(Relaxed);
        let mut state = self.state.lock();
        state.counts.blocks -= 1;
        state.changed((asked, usable), (0, 0));
        state.free_cache.put(Idle { address: address.as_ptr() as usize, size: usable, epoch, slot, local_node, seen });
    }

    /// Returns idle blocks while more is held than the peak justifies, unless the options say what may be idle.
    fn make_room(&self) {
        if !self.options.is_automatic() {
            return;
        }
        loop {
            let mut state = self.state.lock();
            if state.counts.active + state.free_cache.bytes <= policy::allowed(state.counts.peak_active) {
                return;
            }
            let oldest = state.free_cache.take_oldest(|_| true);
            drop(state);
            let Some(idle) = oldest else { return };
            self.give_back(idle);
        }
    }

    fn give_back(&self, idle: Idle) {
        // SAFETY: it was freed, and was removed from the free cache.
        unsafe { self.upstream.deallocate(pointer(idle.address)) };
        let mut state = self.state.lock();
        state.counts.purged_bytes += idle.size as u64;
        state.free_cache.dismiss(idle.slot);
    }

    /// Returns blocks, oldest first, while `more` returns `true` for their epoch and idle bytes; says how many bytes.
    fn give_back_while(&self, more: impl Fn(u32, usize) -> bool) -> usize {
        let mut gone = 0;
        loop {
            let mut state = self.state.lock();
            let bytes = state.free_cache.bytes;
            let oldest = state.free_cache.take_oldest(|epoch| more(epoch, bytes));
            drop(state);
            let Some(idle) = oldest else { return gone };
            gone += idle.size;
            self.give_back(idle);
        }
    }
}

fn pointer(address: usize) -> NonNull<u8> {
    // SAFETY: only addresses of the upstream's blocks are passed.
    unsafe { NonNull::new_unchecked(with_exposed_provenance_mut(address)) }
}

// SAFETY: blocks of the upstream are handed out whole and once: they are removed from the free cache first.
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
        let recycled = self.recycle(request);
        let (idle, zero) = match recycled {
            Some(idle) => (idle, false),
            None => self.fresh(request).map_err(refused)?,
        };
        let address = pointer(idle.address);
        let Idle { size: usable, slot, local_node, seen, .. } = idle;
        let living = Living { asked: request.size(), usable, slot, local_node, seen };
        if let Err(error) = self.ledger.enter(address, request.size(), living) {
            self.put(address, living);
            return Err(refused(error));
        }
        if request.is_zeroed() && !zero {
            // SAFETY: the block was just allocated and is not in use yet.
            unsafe { address.write_bytes(0, request.size()) };
        }
        if recycled.is_none() {
            self.make_room();
            if !purger::ensure() {
                self.tick_if_due();
            }
        }
        Ok(Block { address, size: idle.size, zeroed: request.is_zeroed() || zero })
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

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: `Allocator::resize_in_place` is called with a live block whose lost end nobody uses, by handlers,
        // adaptors, buffers and fronts.
        unsafe {
            let Some(old) = self.ledger.get(address) else { return self.upstream.resize_in_place(address, size) };
            // A block keeps its end, unless that is most of it.
            let whole = size <= old.usable && size >= old.usable / 2;
            if !whole && !self.upstream.resize_in_place(address, size) {
                return false;
            }
            let most = old.usable.max(size);
            let usable = if whole { most } else { self.upstream.usable_size(address).clamp(size, most) };
            let seen = if usable > old.usable { 0 } else { old.seen };
            self.ledger.set(address, Living { asked: size, usable, seen, ..old });
            let mut state = self.state.lock();
            state.counts.first_touched_small_bytes += usable.saturating_sub(old.usable) as u64;
            state.changed((old.asked, old.usable), (size, usable));
            true
        }
    }

    fn trim(&self) -> usize {
        self.give_back_while(|_, _| true).max(self.upstream.trim())
    }

    fn stats(&self) -> Stats {
        let upstream = self.upstream.stats();
        let mut state = self.state.lock();
        let idle = state.free_cache.bytes + upstream.idle;
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
