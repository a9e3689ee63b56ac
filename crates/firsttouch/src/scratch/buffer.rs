//! A buffer: scratch memory in chunks from an upstream, or in storage of a fixed size.
//!
//! One lock guards everything; the upstream is never called under it. Requests of at least an eighth of a chunk go to the
//! upstream, which knows their blocks: one that outlives its scope keeps no other memory.

use crate::address_map;
use crate::allocator::{AllocError, Allocator, Block, BlockList, Description, Limit, Request};
use crate::description::Value;
use crate::fork::forks;
use crate::heap::purger::{self, Registered};
use crate::stats::Stats;
use crate::sync::lock::{AtFork, Lock, RawLock};
use crate::{failure, heap};
use std::any::Any;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Blocks begin and end at multiples of this, the least alignment of a request.
pub(super) const GRANULE: usize = 64;
/// The upstream serves blocks of at least this part of a chunk: an eighth.
const LARGE_PART: usize = 8;
/// While the chunks have more than this many times the bytes of live blocks, gaps between these are used before another chunk is
/// added.
const WASTE: usize = 4;
/// Chunks in which a gap is looked for.
const LOOKS: usize = 16;
/// Ticks of the background purger that a chunk may stay unused.
const QUIET_TICKS: u8 = 10;

/// The record of a block of a chunk.
struct BlockRecord {
    /// Where it begins in the chunk.
    start: usize,
    size: usize,
    live: bool,
    /// The number of the request among all that the buffer got.
    serial: u64,
}

impl BlockRecord {
    fn end(&self) -> usize {
        self.start + self.size
    }
}

/// A piece of a buffer's memory, and the blocks that were cut off it.
///
/// Blocks are cut off by moving the top up. Each has a record, out of band, so that nothing is read from the memory to know
/// whose it is (law 4). A block that is freed at the top moves the top down, past the blocks below that were freed before
/// it. A chunk without live blocks starts again.
struct Chunk {
    start: NonNull<u8>,
    size: usize,
    /// The offset of the free memory behind the last block.
    top: usize,
    /// In the order of their addresses. Those of freed blocks are dropped once the top passes them.
    records: Vec<BlockRecord>,
    live: usize,
    /// Ticks of the background purger since it was last used.
    quiet: u8,
}

// SAFETY: its memory belongs to no thread.
unsafe impl Send for Chunk {}

impl Chunk {
    /// A chunk in `size` bytes.
    ///
    /// # Safety
    /// As long as the chunk is used, they are readable and writable, and nobody else's.
    unsafe fn new(start: NonNull<u8>, size: usize) -> Self {
        Self { start, size, top: 0, records: Vec::new(), live: 0, quiet: 0 }
    }

    fn range(&self) -> Range<usize> {
        let start = self.start.addr().get();
        start..start + self.size
    }

    /// The lowest offset from `from` on at which a block may begin.
    #[inline]
    fn aligned(&self, from: usize, request: Request) -> usize {
        let (start, align) = (self.start.addr().get(), request.align());
        ((start + from + align - 1) & !(align - 1)) - start
    }

    /// Cuts a block off at the top. `None` if there is no space for it, or for its record.
    #[inline]
    fn take(&mut self, request: Request, serial: u64) -> Option<Block> {
        let (start, size) = (self.aligned(self.top, request), block_size(request));
        if size > self.size.checked_sub(start)? {
            return None;
        }
        self.insert(self.records.len(), BlockRecord { start, size, live: true, serial })
    }

    /// Cuts a block off in the first gap between live blocks that is large enough.
    fn take_in_gap(&mut self, request: Request, serial: u64) -> Option<Block> {
        self.records.retain(|record| record.live);
        let (mut from, size) = (0, block_size(request));
        for at in 0..=self.records.len() {
            let start = self.aligned(from, request);
            let end = self.records.get(at).map_or(self.size, |next| next.start);
            if start <= end && end - start >= size {
                return self.insert(at, BlockRecord { start, size, live: true, serial });
            }
            from = self.records.get(at)?.end();
        }
        None
    }

    #[inline]
    fn insert(&mut self, at: usize, record: BlockRecord) -> Option<Block> {
        self.records.try_reserve(1).ok()?;
        // SAFETY: the callers' records lie in the chunk.
        let block = Block { address: unsafe { self.start.add(record.start) }, size: record.size, zeroed: false };
        self.top = self.top.max(record.end());
        self.records.insert(at, record);
        self.live += 1;
        self.quiet = 0;
        Some(block)
    }

    /// The position of the record of the live block at `address`.
    #[inline]
    fn find(&self, address: usize) -> Option<usize> {
        let start = address.wrapping_sub(self.start.addr().get());
        let last = self.records.len().checked_sub(1)?;
        // As a rule, the last block is freed first.
        let at = if self.records[last].start == start {
            last
        } else {
            self.records.binary_search_by_key(&start, |record| record.start).ok()?
        };
        self.records[at].live.then_some(at)
    }

    /// Frees the live block at `address`; returns its size.
    #[inline]
    fn free(&mut self, address: usize) -> Option<usize> {
        let at = self.find(address)?;
        self.records[at].live = false;
        self.live -= 1;
        let size = self.records[at].size;
        if at + 1 == self.records.len() {
            while self.records.pop_if(|record| !record.live).is_some() {}
            self.top = self.records.last().map_or(0, BlockRecord::end);
        }
        Some(size)
    }
}

/// The bytes of a block.
#[inline]
fn block_size(request: Request) -> usize {
    request.size().next_multiple_of(GRANULE)
}

#[derive(Default)]
struct State {
    /// In the order of their addresses.
    chunks: Vec<Chunk>,
    /// The number of the chunk that blocks are cut off.
    current: usize,
    /// Bytes of live blocks, and the most there were.
    used: usize,
    peak: usize,
    /// The owner of storage of a fixed size.
    keep: Option<Box<dyn Any + Send>>,
}

/// See the module.
pub struct Buffer {
    state: Lock<State>,
    /// The number of requests so far.
    serial: AtomicU64,
    /// Where chunks come from. Without one, the only chunk is storage of a fixed size.
    upstream: Option<Arc<dyn Allocator>>,
    /// Bytes of a chunk.
    chunk: usize,
    /// Requests of this size or alignment go to the upstream.
    large: usize,
    /// For storage that forked children share: the number of forks when the buffer was made.
    shared: Option<u32>,
}

impl State {
    /// The chunk with the byte at `address`.
    #[inline]
    fn find(&mut self, address: usize) -> Option<&mut Chunk> {
        let at = self.chunks.partition_point(|chunk| chunk.range().end <= address);
        self.chunks.get_mut(at).filter(|chunk| chunk.range().contains(&address))
    }

    /// Lets the chunk at `at` cut a block off, in one of its two ways. It is the current one from then on.
    #[inline]
    fn take(&mut self, at: usize, cut: impl FnOnce(&mut Chunk) -> Option<Block>) -> Option<Block> {
        let block = cut(self.chunks.get_mut(at)?)?;
        self.current = at;
        self.used += block.size;
        self.peak = self.peak.max(self.used);
        Some(block)
    }

    /// Bytes of chunks.
    fn held(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.size).sum()
    }

    /// Frees the live block at `address`; returns whether there is one.
    #[inline]
    fn free(&mut self, address: usize) -> bool {
        let Some(size) = self.find(address).and_then(|chunk| chunk.free(address)) else { return false };
        self.used -= size;
        true
    }

    /// Goes on in the next chunk that has space for the block. One that is half full of survivors is left to them.
    fn advance(&mut self, request: Request, serial: u64) -> Option<Block> {
        let count = self.chunks.len();
        for step in 1..=count {
            let at = (self.current + step) % count;
            let chunk = &self.chunks[at];
            if chunk.top <= chunk.size / 2
                && let Some(block) = self.take(at, |chunk| chunk.take(request, serial))
            {
                return Some(block);
            }
        }
        // Gaps between survivors are used before more memory is held.
        let is_wasteful = self.held() > WASTE * (self.used + self.chunks.last()?.size);
        let looks = if is_wasteful { count.min(LOOKS) } else { 0 };
        (0..looks).find_map(|step| self.take((self.current + step) % count, |chunk| chunk.take_in_gap(request, serial)))
    }

    /// Adds a chunk, which is the current one from then on; returns whether there was memory to list it.
    fn insert(&mut self, chunk: Chunk) -> bool {
        if self.chunks.try_reserve(1).is_err() {
            return false;
        }
        address_map::note_outside_all(chunk.range());
        heap::mark_listed(chunk.range().start);
        self.current = self.chunks.partition_point(|other| other.start < chunk.start);
        self.chunks.insert(self.current, chunk);
        true
    }

    /// Removes a chunk without live blocks that was unused for `patience` ticks.
    fn remove(&mut self, patience: u8) -> Option<Chunk> {
        let at = self.chunks.iter().position(|chunk| chunk.live == 0 && chunk.quiet >= patience)?;
        let chunk = self.chunks.remove(at);
        self.current = self.current.min(self.chunks.len().saturating_sub(1));
        Some(chunk)
    }
}

impl Buffer {
    /// The default size of a chunk: two or three lie in a processor's second cache together, and blocks of 16 KiB and more, which
    /// the pool serves as fast and which may escape at no cost, go to the upstream.
    pub const CHUNK: usize = 128 << 10;

    /// The largest size of a chunk.
    pub const LARGEST_CHUNK: usize = 1 << 37;

    /// Makes a buffer that grows by chunks of about `chunk_size` bytes from `upstream`, which recognizes its blocks.
    pub fn growing(upstream: Arc<dyn Allocator>, chunk_size: usize) -> Arc<Self> {
        let chunk = chunk_size.clamp(1, Self::LARGEST_CHUNK).next_multiple_of(GRANULE * LARGE_PART);
        Self::enter(State::default(), Some(upstream), chunk, None)
    }

    /// Makes a buffer in `size` bytes of storage that `keep` keeps. If forked children share it, the buffer is closed in them.
    ///
    /// # Safety
    /// Until `keep` is dropped, the storage is readable and writable, and used only by this buffer.
    pub unsafe fn fixed(storage: NonNull<u8>, size: usize, shared: bool, keep: Box<dyn Any + Send>) -> Arc<Self> {
        let mut state = State { keep: Some(keep), ..State::default() };
        // SAFETY: the storage is this buffer's alone until `keep` is dropped, which it is not while blocks live.
        state.insert(unsafe { Chunk::new(storage, size) });
        Self::enter(state, None, size, shared.then(forks))
    }

    fn enter(state: State, upstream: Option<Arc<dyn Allocator>>, chunk: usize, shared: Option<u32>) -> Arc<Self> {
        let large = if upstream.is_some() { chunk / LARGE_PART } else { usize::MAX };
        let serial = AtomicU64::new(0);
        let buffer = Arc::new(Self { state: Lock::new(state), serial, upstream, chunk, large, shared });
        let address: *const Self = Arc::as_ptr(&buffer);
        // SAFETY: the buffer is not moved before it is dropped, which unregisters it.
        unsafe { purger::enter(address) };
        buffer
    }

    /// Whether the purger may call the upstream.
    fn may_be_purged(&self) -> bool {
        self.upstream.as_ref().is_some_and(|upstream| !upstream.calls_out())
    }

    /// Whether this is a forked child and the storage is its parent's.
    #[inline]
    fn is_closed(&self) -> bool {
        self.shared.is_some_and(|made| made != forks())
    }

    /// Serves a request for which there is no space at the top of the current chunk.
    #[cold]
    fn take_slowly(&self, request: Request, serial: u64) -> Result<Block, AllocError> {
        let refused = |limit| Err(AllocError::new(request.size(), limit));
        let mut state = self.state.lock();
        let Some(upstream) = &self.upstream else {
            if self.is_closed() {
                return refused(Limit::Forked);
            }
            if let Some(block) = state.take(0, |chunk| chunk.take_in_gap(request, serial)) {
                return Ok(block);
            }
            let blocks = state.chunks.first().map_or(0, |chunk| chunk.live as u32);
            return refused(Limit::Full { capacity: state.held(), used: state.used, blocks });
        };
        if let Some(block) = state.advance(request, serial) {
            return Ok(block);
        }
        drop(state);
        let memory = match upstream.allocate(Request::bytes(self.chunk)) {
            Ok(memory) => memory,
            Err(error) => {
                failure::retract(error);
                // Where there is no memory for a chunk there may be some for a single block.
                return self.allocate_large(request);
            }
        };
        let mut state = self.state.lock();
        // SAFETY: the block was just allocated with this size, and goes back only once no block lies in it.
        if state.insert(unsafe { Chunk::new(memory.address, self.chunk) }) {
            let at = state.current;
            if let Some(block) = state.take(at, |chunk| chunk.take(request, serial)) {
                drop(state);
                purger::ensure();
                return Ok(block);
            }
        } else {
            drop(state);
            // SAFETY: it is not in use.
            unsafe { upstream.deallocate(memory.address) };
        }
        refused(Limit::Upstream)
    }

    /// A block of the upstream's. Before a request fails, idle chunks go back (law 7).
    fn allocate_large(&self, request: Request) -> Result<Block, AllocError> {
        let Some(upstream) = &self.upstream else { return Err(AllocError::new(request.size(), Limit::Size)) };
        upstream.allocate(request).or_else(|error| {
            if self.release(0) == 0 {
                return Err(error);
            }
            failure::retract(error);
            upstream.allocate(request)
        })
    }

    /// Returns chunks without live blocks to the upstream that were unused for `patience` ticks; how many bytes.
    fn release(&self, patience: u8) -> usize {
        let Some(upstream) = &self.upstream else { return 0 };
        let mut bytes = 0;
        loop {
            let Some(chunk) = self.state.lock().remove(patience) else { return bytes };
            bytes += chunk.size;
            // SAFETY: no block lies in it, and it is no longer listed.
            unsafe { upstream.deallocate(chunk.start) };
        }
    }

    /// Whether all chunks have live blocks.
    fn is_in_use(&self) -> bool {
        self.state.lock().chunks.iter().all(|chunk| chunk.live > 0)
    }

    /// A scope on this buffer ended: the purger gives back empty chunks after a while; where it cannot, they go now.
    pub fn settle(&self) {
        if self.is_in_use() || (self.may_be_purged() && purger::ensure()) {
            return;
        }
        self.release(0);
    }

    /// Returns the memory that no live block needs, and forgets the peak.
    pub fn reset(&self) {
        let mut state = self.state.lock();
        state.peak = state.used;
        drop(state);
        self.release(0);
    }

    /// Bytes of live blocks in the buffer's own memory.
    pub fn used(&self) -> usize {
        self.state.lock().used
    }

    /// The most bytes that were in use since the last reset.
    pub fn peak(&self) -> usize {
        self.state.lock().peak
    }

    /// Bytes of chunks or of the storage.
    pub fn capacity(&self) -> usize {
        self.state.lock().held()
    }

    /// The number of the next request.
    #[inline]
    pub fn serial(&self) -> u64 {
        self.serial.load(Relaxed)
    }

    /// The usable size of the live block at `address` and the number of its request, where it lies in the buffer's own memory.
    #[inline]
    pub fn block(&self, address: NonNull<u8>) -> Option<(usize, u64)> {
        let mut state = self.state.lock();
        let chunk = state.find(address.addr().get())?;
        let record = &chunk.records[chunk.find(address.addr().get())?];
        Some((record.size, record.serial))
    }

    /// The size from which on requests are the upstream's.
    pub fn large(&self) -> usize {
        self.large
    }

    /// Frees the block at `address` where it lies in the buffer's own memory; returns whether it does.
    ///
    /// # Safety
    /// `address` is a live block of any allocator; if it is one of this buffer's, it is no longer in use.
    #[inline]
    pub unsafe fn try_deallocate(&self, address: NonNull<u8>) -> bool {
        let address = address.addr().get();
        let mut state = self.state.lock();
        if self.is_closed() { state.find(address).is_some() } else { state.free(address) }
    }
}

// SAFETY: a chunk cuts a block off only where no live one lies, and goes back only without live blocks (law 8); zeroed
// requests are cleared (law 2); all else is the upstream's.
unsafe impl Allocator for Buffer {
    fn describe(&self) -> Description {
        let name = if self.upstream.is_some() { "ScratchBuffer" } else { "FixedBuffer" };
        let described = Description::of(name).with(Value::size(self.chunk));
        match &self.upstream {
            Some(upstream) => described.named("upstream", upstream.describe()),
            None => described,
        }
    }

    #[inline]
    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        if request.size().max(request.align()) >= self.large {
            return self.allocate_large(request);
        }
        let serial = self.serial.fetch_add(1, Relaxed);
        let mut state = self.state.lock();
        let at = state.current;
        let taken = if self.is_closed() { None } else { state.take(at, |chunk| chunk.take(request, serial)) };
        drop(state);
        let block = match taken {
            Some(block) => block,
            None => self.take_slowly(request, serial).inspect_err(|&error| failure::pass_on(error))?,
        };
        if request.is_zeroed() && !block.zeroed {
            // SAFETY: the block was just allocated and is not in use yet.
            unsafe { block.address.write_bytes(0, request.size()) };
        }
        Ok(Block { zeroed: request.is_zeroed(), ..block })
    }

    #[inline]
    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: the caller's promise; what does not lie in the buffer's own memory is a block of the upstream's.
        unsafe {
            if !self.try_deallocate(address)
                && let Some(upstream) = &self.upstream
            {
                upstream.deallocate(address);
            }
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        let own = self.block(address).map(|(size, _)| size);
        // SAFETY: a live block, as demanded, that is not cut off a chunk is the upstream's.
        own.unwrap_or_else(|| self.upstream.as_ref().map_or(0, |upstream| unsafe { upstream.usable_size(address) }))
    }

    fn trim(&self) -> usize {
        self.release(0) + self.upstream().map_or(0, |upstream| upstream.trim())
    }

    /// None are counted: the upstream's would count chunks.
    fn stats(&self) -> Stats {
        Stats::default()
    }

    fn upstream(&self) -> Option<&Arc<dyn Allocator>> {
        self.upstream.as_ref()
    }

    fn list(&self) -> Option<&dyn BlockList> {
        Some(self)
    }

    fn is_lent(&self) -> bool {
        self.upstream.is_none()
    }

    fn small_limit(&self) -> usize {
        0
    }
}

/// Those in its own memory; large ones are its upstream's.
impl BlockList for Buffer {
    fn contains(&self, address: NonNull<u8>) -> bool {
        self.block(address).is_some()
    }

    fn is_empty(&self) -> bool {
        self.used() == 0
    }
}

impl AtFork for Buffer {
    fn locks(&self, each: &mut dyn FnMut(&RawLock)) {
        each(self.state.raw());
    }
}

impl Registered for Buffer {
    fn tick(&self) {
        if !self.may_be_purged() {
            return;
        }
        for chunk in self.state.lock().chunks.iter_mut().filter(|chunk| chunk.live == 0) {
            chunk.quiet = chunk.quiet.saturating_add(1);
        }
        self.release(QUIET_TICKS);
    }

    fn needs_no_tick(&self) -> bool {
        !self.may_be_purged() || self.is_in_use()
    }

    fn trim_idle(&self) {
        if self.may_be_purged() {
            self.release(0);
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        purger::leave(std::ptr::from_ref(self));
        self.release(0);
        let mut state = self.state.lock();
        if state.used > 0 {
            std::mem::forget(state.keep.take()); // law 8
        }
        // Large blocks may live on, and if their owner is no keeper, nobody else may keep it.
        let stays = |upstream: &mut Arc<dyn Allocator>| upstream.list().is_none() && upstream.stats().in_use > 0;
        std::mem::forget(self.upstream.take_if(stays));
    }
}
