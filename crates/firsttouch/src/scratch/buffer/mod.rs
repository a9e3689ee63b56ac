//! A buffer that scopes allocate from: it grows by chunks, or uses storage of a fixed size.
//!
//! Blocks are bump-allocated, freed blocks are reused, and live blocks stay in place: the buffer reuses the gaps
//! between them, whatever becomes of their scopes. One lock guards everything; the upstream is never called under it.

mod grow;
mod large;
mod options;
mod purging;
mod serving;
mod state;

use super::backing::{Refused, Slot};
use super::space::{Space, Taken};
use crate::allocator::{AllocError, Allocator, Limit, Request};
use crate::failure;
use crate::heap::ledger::Ledger;
use crate::heap::purger;
use crate::sync::brief_lock::BriefLock;
use large::Large;
use options::Sizes;
pub use options::{BadOptions, Options};
use state::{BlockRequest, State};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// Chunks from an upstream.
struct Chunks {
    upstream: Arc<dyn Allocator>,
    options: Options,
    sizes: Sizes,
    large: Arc<Ledger<Large>>,
}

/// Storage of a fixed size.
struct Storage {
    /// Whether forked children share it, and which process created the buffer.
    shared: bool,
    process: u32,
    size: usize,
    debug: bool,
    site: Option<fn() -> u64>,
    /// Keeps the storage alive.
    keep: Option<Box<dyn Any + Send + Sync>>,
}

/// Where the memory comes from.
enum Source {
    Chunks(Chunks),
    Storage(Storage),
}

/// See the module.
pub struct Buffer {
    me: Weak<Self>,
    state: BriefLock<State>,
    source: Source,
}

impl Buffer {
    /// Creates a buffer that grows by chunks from `upstream`.
    ///
    /// # Errors
    /// If the options contradict each other.
    pub fn growing(upstream: Arc<dyn Allocator>, options: Options) -> Result<Arc<Self>, BadOptions> {
        let sizes = options.sizes()?;
        Ok(Self::enter(State::new(), Source::Chunks(Chunks { upstream, options, sizes, large: Ledger::new() })))
    }

    /// Creates a buffer in `size` bytes of storage that `keep` keeps alive. If the storage is `shared` with forked
    /// children, the buffer is closed in them. `site` is called for every block, and its result is recorded. If there
    /// is no memory for the records, the buffer has no room.
    ///
    /// # Safety
    /// Until `keep` is dropped, the storage is readable and writable, and used only by this buffer.
    pub unsafe fn fixed(
        storage: NonNull<u8>,
        size: usize,
        shared: bool,
        debug: bool,
        site: Option<fn() -> u64>,
        keep: Box<dyn Any + Send + Sync>,
    ) -> Arc<Self> {
        // SAFETY: the storage is this buffer's alone until `keep` is dropped (the fronts' fixed buffers); a buffer with
        // live blocks never drops `keep`.
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
        let buffer = Arc::new_cyclic(|me| Self { me: me.clone(), state: BriefLock::new(state), source });
        let address: *const Self = Arc::as_ptr(&buffer);
        // SAFETY: the buffer is not moved before it is dropped, which unregisters it.
        unsafe { purger::enter(address) };
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

    /// Why the storage cannot serve a request.
    fn full(&self, state: &State, request: Request) -> Refused {
        let gap = state.spaces.iter().map(Space::gap).max().unwrap_or(0);
        let (capacity, used, blocks) = (state.held, state.used, state.blocks.min(u32::MAX as usize) as u32);
        AllocError::new(request.size(), Limit::Full { capacity, used, gap, blocks }).into()
    }

    /// Serves a request for which no space had room at first.
    #[cold]
    fn serve(&self, asked: BlockRequest) -> Result<Taken, Refused> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(AllocError::new(asked.request.size(), Limit::Forked).into());
        }
        match &self.source {
            Source::Storage(_) => state.serve(asked, true).ok_or_else(|| self.full(&state, asked.request)),
            Source::Chunks(from) => {
                drop(state);
                self.grow(from, asked)
            }
        }
    }

    /// Continues with requests that are too large here, or that the upstream may serve instead.
    #[cold]
    fn serve_otherwise(&self, asked: BlockRequest) -> Result<Taken, Refused> {
        let before = failure::now();
        match (self.serve(asked), &self.source) {
            // If no chunk can be allocated, a single block may still fit. Outside all scopes there is no other
            // allocator to turn to.
            (Err(refused), Source::Chunks(from)) if refused != Refused::Fragmented || asked.slot == Slot::OUTSIDE => {
                failure::retract(before);
                let block = self.take_large(from, asked.slot, asked.request, asked.site)?;
                let dirty = if block.zeroed { 0 } else { block.size };
                Ok(Taken { address: block.address, size: block.size, dirty })
            }
            (taken, _) => taken,
        }
    }
}
