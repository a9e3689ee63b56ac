//! A buffer that scopes take their memory from: it grows by chunks, or stands on storage of a fixed size.
//!
//! Blocks are bumped, freed blocks are used again, and living ones stay where they are: the buffer works around them,
//! whatever becomes of their scopes. One lock guards it all; the upstream is never called under it.

mod care;
mod grow;
mod large;
mod options;
mod state;

use super::backing::{Backing, Closed, Damage, Hold, Refused, Slot, Survivor};
use super::space::{Space, Taken, granules};
use crate::allocator::{AllocError, Allocator, Block, Limit, Request};
use crate::failure;
use crate::memory::brief_lock::BriefLock;
use crate::memory::caretaker;
use crate::memory::ledger::Ledger;
use large::Large;
use options::Sizes;
pub use options::{BadOptions, Options};
use state::{State, Wish};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

/// Chunks from an upstream.
struct Chunks {
    upstream: Arc<dyn Allocator>,
    options: Options,
    sizes: Sizes,
    large: Arc<Ledger<Large>>,
}

/// Storage that is all there.
struct Storage {
    /// Whether children that are forked share it, and which process made the buffer.
    shared: bool,
    process: u32,
    size: usize,
    debug: bool,
    site: Option<fn() -> u64>,
    /// What keeps it there.
    keep: Option<Box<dyn Any + Send + Sync>>,
}

/// Where memory comes from.
enum Source {
    Chunks(Chunks),
    Storage(Storage),
}

/// See the module.
pub struct Buffer {
    state: BriefLock<State>,
    source: Source,
}

impl Buffer {
    /// A buffer that grows by chunks from `upstream`.
    ///
    /// # Errors
    /// Where the options contradict each other.
    pub fn growing(upstream: Arc<dyn Allocator>, options: Options) -> Result<Arc<Self>, BadOptions> {
        let sizes = options.sizes()?;
        Ok(Self::enter(State::new(), Source::Chunks(Chunks { upstream, options, sizes, large: Ledger::new() })))
    }

    /// A buffer on `size` bytes of storage that `keep` keeps where it is. Where it is `shared` with processes that this
    /// one forks, the buffer is closed in them. `site` is called for every block, and its answer noted. Where there is
    /// no memory to write down what is where, the buffer has no room.
    ///
    /// # Safety
    /// The storage is readable and writable and nobody else's until `keep` is dropped.
    pub unsafe fn fixed(
        storage: NonNull<u8>,
        size: usize,
        shared: bool,
        debug: bool,
        site: Option<fn() -> u64>,
        keep: Box<dyn Any + Send + Sync>,
    ) -> Arc<Self> {
        // SAFETY: the caller's promise; a buffer with living blocks never drops `keep`.
        let space = unsafe { Space::new(storage, size, false, debug) };
        let mut state = State::new();
        if let Some(space) = space.filter(|_| state.spaces.make_room()) {
            (state.held, state.chunks) = (space.bytes(), space.bytes());
            state.spaces.insert(Box::new(space));
        }
        let process = std::process::id();
        Self::enter(state, Source::Storage(Storage { shared, process, size, debug, site, keep: Some(keep) }))
    }

    fn enter(state: State, source: Source) -> Arc<Self> {
        let buffer = Arc::new(Self { state: BriefLock::new(state), source });
        let address: *const Self = Arc::as_ptr(&buffer);
        // SAFETY: the buffer stays where it is until it is dropped, which leaves the caretaker.
        unsafe { caretaker::enter(address) };
        buffer
    }

    #[inline]
    fn site(&self) -> u64 {
        match &self.source {
            Source::Chunks(Chunks { options: Options { site, .. }, .. }) | Source::Storage(Storage { site, .. }) => {
                site.map_or(0, |site| site())
            }
        }
    }

    /// Why the storage can't serve a request.
    fn full(&self, state: &State, request: Request) -> Refused {
        let gap = state.spaces.iter().map(Space::gap).max().unwrap_or(0);
        let (capacity, used, blocks) = (state.held, state.used, state.blocks.min(u32::MAX as usize) as u32);
        AllocError::new(request.size, Limit::Full { capacity, used, gap, blocks }).into()
    }

    /// Serves a request that no space had room for at once, or says why not.
    #[cold]
    fn serve(&self, wish: Wish) -> Result<Taken, Refused> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(AllocError::new(wish.request.size, Limit::Forked).into());
        }
        match &self.source {
            Source::Storage(_) => state.serve(wish, true).ok_or_else(|| self.full(&state, wish.request)),
            Source::Chunks(from) => {
                drop(state);
                self.grow(from, wish)
            }
        }
    }

    /// The same in full: the upstream may serve what is too much here.
    #[cold]
    fn serve_otherwise(&self, wish: Wish) -> Result<Taken, Refused> {
        match (self.serve(wish), &self.source) {
            // Outside all scopes there is nobody else who could serve it.
            (Err(Refused::Crowded), Source::Chunks(from)) if wish.slot == Slot::OUTSIDE => {
                let block = self.take_large(from, wish.slot, wish.request, wish.site)?;
                let dirty = if block.zeroed { 0 } else { block.size };
                Ok(Taken { address: block.address, size: block.size, dirty })
            }
            (taken, _) => taken,
        }
    }
}

/// A refusal, kept as the last failure.
#[cold]
fn remembered(refused: Refused) -> Refused {
    if let Refused::Failed(error) = refused {
        failure::remember(error);
    }
    refused
}

// SAFETY: a space hands a granule out only while no living block lies on it, and large blocks are the upstream's; closing
// and resetting give back only what no block lies on (law 8); zeroed requests are made zero below (law 2).
unsafe impl Backing for Buffer {
    fn open(&self) -> Slot {
        let mut state = self.state.lock();
        state.spaces.touch();
        state.slots.open()
    }

    fn close(&self, slot: Slot) -> Closed {
        let mut state = self.state.lock();
        let (survivors, bytes) = state.slots.count(slot);
        if !state.slots.close(slot) {
            return Closed::default();
        }
        let damage = state.find_damage();
        drop(state);
        self.see_to_excess();
        Closed { survivors, bytes, damage }
    }

    #[inline]
    fn allocate(&self, slot: Slot, request: Request) -> Result<Block, Refused> {
        if let Err(error) = request.check() {
            return Err(remembered(error.into()));
        }
        let site = self.site();
        if let Source::Chunks(from) = &self.source
            && request.size.max(request.align) > from.sizes.bumped
        {
            return self.take_large(from, slot, request, site).map_err(remembered);
        }
        let Some(need) = granules(request.size) else {
            return Err(remembered(AllocError::new(request.size, Limit::Size).into()));
        };
        // Field by field: a copy of the whole request would wait for the caller's stores.
        let taken = self.state.lock().take(slot, need, request.align, site);
        let taken = match taken {
            Some(taken) => taken,
            None => self.serve_otherwise(Wish { slot, request, need, site }).map_err(remembered)?,
        };
        let dirty = taken.dirty.min(request.size);
        if request.zeroed && dirty > 0 {
            // SAFETY: the block was just taken, and nobody uses it yet.
            unsafe { taken.address.write_bytes(0, dirty) };
        }
        Ok(Block { address: taken.address, size: taken.size, zeroed: request.zeroed || dirty == 0 })
    }

    #[inline]
    unsafe fn deallocate(&self, address: NonNull<u8>) -> bool {
        let mut state = self.state.lock();
        if state.closed {
            return state.spaces.find(address.as_ptr() as usize).is_some();
        }
        if state.give(address.as_ptr() as usize) {
            return true;
        }
        drop(state);
        // SAFETY: the caller's promise.
        unsafe { self.give_large(address) }
    }

    fn usable_size(&self, address: NonNull<u8>) -> Option<usize> {
        let mut state = self.state.lock();
        if let Some((space, at)) = state.spaces.find(address.as_ptr() as usize) {
            return Some(space.block(at).0);
        }
        drop(state);
        self.large_at(address).map(|large| large.usable)
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        let most = match &self.source {
            Source::Chunks(from) => from.sizes.bumped,
            Source::Storage(_) => usize::MAX,
        };
        let mut state = self.state.lock();
        let closed = state.closed;
        let need = granules(size).filter(|_| size <= most && !closed);
        if let Some(done) = state.resize(address.as_ptr() as usize, need) {
            return done;
        }
        drop(state);
        // SAFETY: the caller's promise.
        unsafe { self.resize_large(address, size) }
    }

    fn survivors(&self, slot: Slot) -> Vec<Survivor> {
        let mut list = Vec::new();
        let state = self.state.lock();
        state.survivors(slot, &mut list);
        let place = state.slots.index(slot);
        drop(state);
        if let (Source::Chunks(Chunks { large, .. }), Some(place)) = (&self.source, place) {
            large.each(|address, large| {
                if large.place == place {
                    list.push(Survivor { address, size: large.usable, site: large.site });
                }
            });
        }
        list
    }

    fn living(&self, slot: Slot) -> usize {
        self.state.lock().slots.count(slot).0
    }

    fn hold(&self, slot: Slot, address: NonNull<u8>) -> Hold {
        let mut state = self.state.lock();
        let Some(place) = state.slots.index(slot) else { return Hold::Elsewhere };
        if let Some((space, at)) = state.spaces.find(address.as_ptr() as usize) {
            return if space.block(at).1.slot == place { Hold::Shared } else { Hold::Elsewhere };
        }
        drop(state);
        if self.large_at(address).is_some_and(|large| large.place == place) { Hold::Alone } else { Hold::Elsewhere }
    }

    fn release(&self, address: NonNull<u8>) {
        self.release_large(address);
    }

    fn upstream(&self) -> Option<Arc<dyn Allocator>> {
        match &self.source {
            Source::Chunks(Chunks { upstream, .. }) => Some(upstream.clone()),
            Source::Storage(_) => None,
        }
    }

    fn damage(&self) -> Option<Damage> {
        self.state.lock().find_damage()
    }

    fn used(&self) -> usize {
        self.state.lock().used
    }

    fn capacity(&self) -> usize {
        self.state.lock().held
    }

    fn peak(&self) -> usize {
        self.state.lock().peak
    }

    fn depth(&self) -> usize {
        self.state.lock().slots.depth
    }

    fn reset(&self) -> Result<(), usize> {
        let mut state = self.state.lock();
        if state.slots.depth > 0 {
            return Err(state.slots.depth);
        }
        state.peak = state.used;
        state.damage = state.find_damage();
        drop(state);
        self.give_back_all();
        Ok(())
    }

    fn in_segments(&self) -> bool {
        matches!(&self.source, Source::Chunks(Chunks { upstream, .. }) if upstream.in_segments())
    }

    fn expression(&self) -> String {
        let flag = |is| if is { "True" } else { "False" };
        match &self.source {
            Source::Chunks(Chunks { upstream, options, .. }) => format!(
                "ScratchBuffer({}, upstream={}, limit={}, debug={})",
                options.chunk_size,
                upstream.expression(),
                options.limit.map_or("None".into(), |bytes| bytes.to_string()),
                flag(options.debug)
            ),
            Source::Storage(Storage { size, debug, .. }) => format!("FixedBuffer({size}, debug={})", flag(*debug)),
        }
    }
}
