//! A pool over any upstream, of whose pages it knows nothing: it keeps freed blocks whole, in lists by size, and hands out
//! the warmest that fits.
//!
//! A free only puts the block into its list. The background purger, or the next request that takes fresh memory, returns
//! blocks that are too old or too many to the upstream; trimming and running out of memory return all.

use super::purging::{Clock, idle_limit};
use super::{Options, Pool, SMALL_LIMIT, policy};
use crate::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use crate::failure;
use crate::heap::ledger::Ledger;
use crate::heap::nodes::{self, Found};
use crate::heap::purger::{self, DeferredTrim, Purgeable};
use crate::heap::segment;
use crate::layout::DEFAULT_ALIGN;
use crate::numa::local_nodes::LocalNodes;
use crate::numa::policy::Policy;
use crate::os;
use crate::sources::{Pages, PlacedPages};
use crate::stats::Stats;
use crate::sync::lock::Lock;
use std::any::Any;
use std::collections::VecDeque;
use std::ops::Range;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Lists per power of two of the size, and in all.
const STEPS: u32 = 8;
const LISTS: usize = ((usize::BITS - DEFAULT_ALIGN.ilog2()) * STEPS) as usize + 1;
/// Blocks tried in each list. Not all of them fit, because their sizes and alignments differ.
const LOOK: usize = 16;

fn list_of(size: usize) -> usize {
    let size = size.max(DEFAULT_ALIGN);
    let doubling = size.ilog2();
    let step = (size >> (doubling - STEPS.ilog2())) as u32 % STEPS;
    ((doubling - DEFAULT_ALIGN.ilog2()) * STEPS + step) as usize
}

/// What the ledger records of a live block.
#[derive(Clone, Copy)]
struct Living {
    asked: usize,
    usable: usize,
    local_node: u8,
    seen: u32,
}

/// A block that waits for its next user.
#[derive(Clone, Copy)]
struct Idle {
    address: usize,
    /// The usable size.
    size: usize,
    /// When it was freed, and its place among all that were.
    epoch: u32,
    order: u64,
    /// The local node that it serves, on machines with several nodes, and when all of it was last seen there.
    local_node: u8,
    seen: u32,
}

/// Idle blocks of similar size for one local node, oldest first. There is room for all blocks of the list that live, so that
/// freeing one allocates nothing.
#[derive(Default)]
struct List {
    idle: VecDeque<Idle>,
    blocks: usize,
}

/// What a pool keeps and counts, under one lock.
struct State {
    /// By local node, then by size.
    lists: Vec<List>,
    /// The usable bytes of all idle blocks.
    idle: usize,
    order: u64,
    counts: Stats,
}

impl State {
    fn new(local_nodes: usize) -> Self {
        let lists = (0..local_nodes * LISTS).map(|_| List::default()).collect();
        Self { lists, idle: 0, order: 0, counts: Stats::default() }
    }

    fn list(&mut self, local_node: u8, size: usize) -> &mut List {
        &mut self.lists[usize::from(local_node) * LISTS + list_of(size)]
    }

    /// Makes room for a new block of `size` bytes; whether there was memory for that.
    fn admit(&mut self, local_node: u8, size: usize) -> bool {
        let list = self.list(local_node, size);
        let has_room = list.idle.try_reserve(list.blocks + 1 - list.idle.len()).is_ok();
        list.blocks += usize::from(has_room);
        has_room
    }

    /// A block of `size` bytes is no longer among those of its list.
    fn dismiss(&mut self, local_node: u8, size: usize) {
        let list = self.list(local_node, size);
        list.blocks = list.blocks.saturating_sub(1);
    }

    /// Keeps a block; returns it if there is no room.
    fn put(&mut self, idle: Idle) -> Option<Idle> {
        self.order += 1;
        let idle = Idle { order: self.order, ..idle };
        let list = self.list(idle.local_node, idle.size);
        if list.idle.len() == list.idle.capacity() {
            return Some(idle);
        }
        list.idle.push_back(idle);
        self.idle += idle.size;
        None
    }

    /// Takes the block of `local_node` freed last among those that hold `size` bytes at `align` and waste at most an
    /// eighth.
    fn take(&mut self, local_node: u8, size: usize, align: usize) -> Option<Idle> {
        let most = size + size / 8;
        let fits = |idle: &Idle| (size..=most).contains(&idle.size) && idle.address.is_multiple_of(align);
        let first = usize::from(local_node) * LISTS;
        let of_list = |at: usize| {
            let newest_first = self.lists[at].idle.iter().enumerate().rev().take(LOOK);
            newest_first.filter(|(_, idle)| fits(idle)).map(|(place, idle)| (idle.order, at, place)).next()
        };
        let (_, at, place) = (first + list_of(size)..=first + list_of(most)).filter_map(of_list).max()?;
        self.remove(at, place)
    }

    /// Takes the block that has been idle longest if `old` returns `true` for its epoch.
    fn take_oldest(&mut self, old: impl Fn(u32) -> bool) -> Option<Idle> {
        let fronts = self.lists.iter().enumerate().filter_map(|(at, list)| Some((list.idle.front()?, at)));
        let (oldest, at) = fronts.min_by_key(|(idle, _)| idle.order)?;
        if old(oldest.epoch) { self.remove(at, 0) } else { None }
    }

    fn remove(&mut self, at: usize, place: usize) -> Option<Idle> {
        let idle = self.lists[at].idle.remove(place)?;
        self.idle -= idle.size;
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
        let local_nodes = LocalNodes::of_the_machine().filter(|_| !is_placed(&*upstream));
        let own_pages = has_own_pages(&*upstream);
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

/// Whether an option decides the placement of an allocator's memory. A pool over it does not check which node is
/// local.
fn is_placed(allocator: &dyn Allocator) -> bool {
    let any: &dyn Any = allocator;
    let policy = any.downcast_ref::<PlacedPages>().and_then(|pages| pages.placement().policy);
    policy.is_some_and(|policy| policy != Policy::Local) || allocator.upstream().is_some_and(|on| is_placed(&**on))
}

/// Whether an allocator's blocks do not share pages, not even their first and last.
fn has_own_pages(allocator: &dyn Allocator) -> bool {
    let any: &dyn Any = allocator;
    any.is::<Pages>()
        || any.is::<PlacedPages>()
        || any.is::<Pool>()
        || allocator.upstream().is_some_and(|on| has_own_pages(&**on))
}

impl UpstreamPool {
    /// Takes an idle block.
    fn recycle(&self, request: Request) -> Option<Idle> {
        let local_node = self.local_node();
        let take = || self.state.lock().take(local_node, request.size(), request.align());
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
        let before = failure::now();
        let again = |_| {
            failure::retract(before);
            self.trim();
            self.upstream.allocate(request)
        };
        let asked = request.size();
        let block = self.upstream.allocate(request).or_else(again).map_err(|error| AllocError { asked, ..error })?;
        let local_node = self.local_node();
        let mut state = self.state.lock();
        if !state.admit(local_node, block.size) {
            drop(state);
            // SAFETY: the block was just allocated, and nobody knows of it.
            unsafe { self.upstream.deallocate(block.address) };
            return Err(AllocError::new(asked, Limit::Upstream));
        }
        state.counts.first_touched_small_bytes += block.size as u64;
        state.on_alloc(asked, block.size);
        let address = block.address.as_ptr() as usize;
        Ok((Idle { address, size: block.size, epoch: 0, order: 0, local_node, seen: 0 }, block.zeroed))
    }

    /// Keeps a freed block.
    fn put(&self, address: NonNull<u8>, Living { asked, usable, local_node, seen }: Living) {
        let (address, epoch) = (address.as_ptr() as usize, self.epoch.load(Relaxed));
        let mut state = self.state.lock();
        state.counts.blocks -= 1;
        state.changed((asked, usable), (0, 0));
        let left = state.put(Idle { address, size: usable, epoch, order: 0, local_node, seen });
        drop(state);
        if let Some(idle) = left {
            self.give_back(idle); // it was resized when there was no memory for a place in another list
        }
    }

    /// Returns idle blocks while more is held than the peak justifies, unless the options say what may be idle.
    fn make_room(&self) {
        if !self.options.is_automatic() {
            return;
        }
        loop {
            let mut state = self.state.lock();
            if state.counts.active + state.idle <= policy::allowed(state.counts.peak_active) {
                return;
            }
            let oldest = state.take_oldest(|_| true);
            drop(state);
            let Some(idle) = oldest else { return };
            self.give_back(idle);
        }
    }

    fn give_back(&self, idle: Idle) {
        // SAFETY: it was freed, and is in no list.
        unsafe { self.upstream.deallocate(pointer(idle.address)) };
        let mut state = self.state.lock();
        state.counts.purged_bytes += idle.size as u64;
        state.dismiss(idle.local_node, idle.size);
    }

    /// Returns blocks, oldest first, while `more` returns `true` for their epoch and idle bytes; says how many bytes.
    fn give_back_while(&self, more: impl Fn(u32, usize) -> bool) -> usize {
        let mut gone = 0;
        loop {
            let mut state = self.state.lock();
            let bytes = state.idle;
            let oldest = state.take_oldest(|epoch| more(epoch, bytes));
            drop(state);
            let Some(idle) = oldest else { return gone };
            gone += idle.size;
            self.give_back(idle);
        }
    }

    /// Does the background purger's work if its thread could not be started.
    #[cold]
    fn tick_if_due(&self) {
        if self.clock.is_due() && self.advance() {
            self.run(false);
        }
    }

    /// Counts a tick; returns whether any block is to be returned.
    fn advance(&self) -> bool {
        self.epoch.fetch_add(u32::from(self.clock.tick()), Relaxed);
        let state = self.state.lock();
        let bytes = state.idle;
        let mut fronts = state.lists.iter().filter_map(|list| list.idle.front());
        let has_old = fronts.any(|idle| self.is_old(idle.epoch));
        drop(state);
        has_old || bytes > idle_limit(self.max_idle, bytes)
    }

    /// Whether a block freed in `epoch` has decayed.
    fn is_old(&self, epoch: u32) -> bool {
        let age = self.epoch.load(Relaxed).wrapping_sub(epoch);
        self.clock.decay_epochs.is_some_and(|epochs| age >= epochs.into())
    }

    /// The pages that are freed with a block: only the whole ones if blocks may share pages.
    fn pages_of(&self, idle: &Idle) -> Range<usize> {
        let (page, start, end) = (os::page_size(), idle.address, idle.address + idle.size);
        if self.own_pages {
            return start - start % page..end.next_multiple_of(page);
        }
        let first = start.next_multiple_of(page);
        first..(end - end % page).max(first)
    }

    /// The local node of the calling thread.
    fn local_node(&self) -> u8 {
        self.local_nodes.map_or(0, |local_nodes| local_nodes.look_here().local_node)
    }

    /// Whether an idle block may serve its local node: its pages are there, or placement is decided elsewhere.
    fn is_local(&self, local_nodes: &LocalNodes, idle: &mut Idle) -> bool {
        // A fork copies pages, and a migration leaves none in place.
        let now = self.forks.load(Relaxed).wrapping_add(segment::moves()).max(1);
        let epoch = self.epoch.load(Relaxed).wrapping_add(1);
        let takes_any = || self.untold.load(Relaxed) || self.elsewhere.load(Relaxed) == epoch;
        if idle.seen == now || takes_any() {
            return true;
        }
        let look = || match local_nodes.policy_leads(idle.local_node)? {
            true => nodes::in_pages(local_nodes, idle.local_node, self.pages_of(idle)),
            false => Ok(Found::Absent),
        };
        match look() {
            Ok(Found::Local) => idle.seen = now,
            Ok(Found::Absent) => {}
            Ok(Found::Remote) if local_nodes.has_room(idle.local_node, idle.size) => return false,
            Ok(Found::Remote) => self.elsewhere.store(epoch, Relaxed),
            Err(_) => self.untold.store(true, Relaxed),
        }
        true
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
        let Idle { size: usable, local_node, seen, .. } = idle;
        let living = Living { asked: request.size(), usable, local_node, seen };
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
            if list_of(usable) != list_of(old.usable) {
                let _ = state.admit(old.local_node, usable); // without room for it, it goes back when it is freed
                state.dismiss(old.local_node, old.usable);
            }
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

impl DeferredTrim for UpstreamPool {
    fn run(&self, all: bool) {
        if all {
            self.trim();
            return;
        }
        self.give_back_while(|epoch, _| self.is_old(epoch));
        let limit = idle_limit(self.max_idle, self.state.lock().idle);
        self.give_back_while(|_, bytes| bytes > limit);
    }
}

impl Purgeable for UpstreamPool {
    fn tick(&self) -> Option<Arc<dyn DeferredTrim>> {
        let may_return = self.advance() && purger::may_call(&self.upstream);
        if may_return { self.me.upgrade().map(|me| me as Arc<dyn DeferredTrim>) } else { None }
    }

    fn is_idle(&self) -> bool {
        let state = self.state.lock();
        state.counts.blocks == 0 && state.idle == 0
    }

    fn trim_idle(&self) {
        if !self.upstream.calls_out() {
            self.trim();
        }
    }

    fn deferred_trim(&self) -> Option<Arc<dyn DeferredTrim>> {
        if self.upstream.calls_out() { self.me.upgrade().map(|me| me as Arc<dyn DeferredTrim>) } else { None }
    }

    fn hold(&self) {
        self.forks.fetch_add(1, Relaxed); // after a fork, the process that writes first copies pages to its own node
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_rise_with_the_size() {
        let sizes =
            (1usize..5000).chain((13..63).flat_map(|shift| (0..9).map(move |n| (1 << shift) + n * (1 << (shift - 4)))));
        let lists: Vec<_> = sizes.chain([usize::MAX]).map(list_of).collect();
        assert!(lists.is_sorted() && lists[lists.len() - 1] < LISTS);
    }

    /// Compared with a list that is searched exhaustively.
    #[test]
    #[cfg_attr(miri, ignore = "20,000 steps, without unsafe code")]
    fn it_agrees_with_a_plain_list() {
        let mut state = State::new(3);
        let (mut plain, mut dice) = (Vec::<Idle>::new(), 1u64);
        for step in 0..20_000usize {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (roll, size) = ((dice >> 60) as usize, 900 + (dice >> 33) as usize % (900 << (step % 8)));
            let local_node = (dice >> 20) as u8 % 3;
            let (taken, expected) = match roll {
                0..=6 => {
                    let idle =
                        Idle { address: (step + 1) * 64, size, epoch: step as u32, order: 0, local_node, seen: 0 };
                    assert!(state.admit(local_node, size) && state.put(idle).is_none());
                    plain.push(idle);
                    (None, None)
                }
                7..=12 => {
                    let align = 64 << (roll % 3);
                    let fits = |idle: &Idle| {
                        let wasted = idle.size.checked_sub(size);
                        idle.local_node == local_node
                            && wasted.is_some_and(|n| n <= size / 8)
                            && idle.address.is_multiple_of(align)
                    };
                    let expected = plain.iter().rposition(fits).map(|at| plain.remove(at));
                    (state.take(local_node, size, align), expected)
                }
                _ => {
                    let old = |epoch: u32| (epoch as usize) < step / 2 * 2;
                    let expected = (plain.first().is_some_and(|idle| old(idle.epoch))).then(|| plain.remove(0));
                    (state.take_oldest(old), expected)
                }
            };
            assert_eq!(taken.map(|idle| idle.address), expected.map(|idle| idle.address));
            if let Some(idle) = taken {
                state.dismiss(idle.local_node, idle.size);
            }
            assert_eq!(state.idle, plain.iter().map(|idle| idle.size).sum::<usize>());
        }
        assert!(plain.len() > 5);
    }
}
