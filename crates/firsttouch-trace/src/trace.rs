//! The trace of the process: its large blocks by the line that asks for them, with what they take fresh from the system, which
//! is seen, and what they would take on a pool, which is simulated. It is summed up as the program runs, at the cost of a short
//! lock, a look into a table and a question to the kernel for each event. A forked child is not traced unless it begins a trace
//! of its own.

use firsttouch::adaptors::{DECAY, RENEW_MIN};
use firsttouch::fork;
use firsttouch::heap::purger;
use firsttouch::layout::SMALL_LIMIT;
use firsttouch::ledger::BlockMap;
use firsttouch::os::{self, Usage};
use firsttouch::sync::lock::Lock;
use firsttouch_report::gain::{FreshBytes, Taken};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// The kernel is asked for so many bytes of a block at a time.
const MOST_ASKED: usize = 16 << 20;
/// Each question costs as much time as a page fault, so that fewer are asked about blocks below this size.
const SURE: usize = 128 << 10;
const SAMPLE: usize = 8;

static TRACE: Lock<Option<Tracing>> = Lock::new(None);
/// One more than the forks before the process that is traced; 0 if none is.
static TRACED: AtomicU32 = AtomicU32::new(0);

/// What the program asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Bytes.
    pub size: usize,
    /// Whether they are to read as zero.
    pub zeroed: bool,
    /// Whether they are for an array of NumPy's, and not for a buffer of Python's, as `bytes` are.
    pub is_array: bool,
    /// The number of the line that asks, or 0.
    pub site: usize,
}

/// The blocks that one line made, or that it resized to [`SMALL_LIMIT`] bytes or more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    /// Number of blocks.
    pub count: u64,
    /// Their bytes.
    pub bytes: usize,
    /// What they took.
    pub taken: Taken,
    /// Microseconds that they lived, taken together; those that are not freed lived until the end.
    pub lived: u64,
}

/// What was traced.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// What the process used meanwhile.
    pub used: Usage,
    /// Number of arrays allocated.
    pub allocations: u64,
    /// Their bytes, growth by resizing included.
    pub allocated_bytes: usize,
    /// Largest number of bytes of arrays that were live at once.
    pub peak_in_use: usize,
    /// Bytes of arrays that are live at the end.
    pub in_use: usize,
    /// Number of blocks that are for no array.
    pub buffers: u64,
    /// Their bytes, growth by resizing included.
    pub buffer_bytes: usize,
    /// By the number of the line; index 0 is for blocks that no Python code requested.
    pub lines: Vec<Line>,
}

/// A live block.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    size: usize,
    /// Microseconds after the beginning.
    made: u64,
    is_array: bool,
    site: usize,
}

/// A trace that goes on.
struct Tracing {
    found: Trace,
    begun: Instant,
    before: Usage,
    pool: Pool,
    blocks: BlockMap<Block>,
}

/// What a pool would keep: the microseconds when it was freed, and bytes, the latest last. Fragmentation is ignored, so a pool may
/// take a little more fresh.
#[derive(Default)]
struct Pool(VecDeque<(u64, usize)>);

impl Pool {
    fn give(&mut self, bytes: usize, now: u64) {
        if bytes > 0 && self.0.try_reserve(1).is_ok() {
            self.0.push_back((now, bytes));
        }
    }

    /// Takes up to `wanted` idle bytes, after giving back what has been idle for long; returns how many are missing.
    fn take(&mut self, wanted: usize, now: u64) -> usize {
        let is_cold = |&(freed_at, _): &(u64, usize)| u128::from(now.saturating_sub(freed_at)) > DECAY.as_micros();
        while self.0.front().is_some_and(is_cold) {
            self.0.pop_front();
        }
        let mut missing = wanted;
        while missing > 0 {
            let Some((_, bytes)) = self.0.back_mut() else { break };
            let taken = missing.min(*bytes);
            *bytes -= taken;
            missing -= taken;
            if *bytes == 0 {
                self.0.pop_back();
            }
        }
        missing
    }
}

/// Whether this process is traced.
#[inline]
pub fn is_on() -> bool {
    let traced = TRACED.load(Relaxed);
    traced != 0 && traced == fork::forks() + 1
}

/// Begins a trace; returns whether none went on.
pub fn begin() -> bool {
    static ENTERED: AtomicBool = AtomicBool::new(false);
    purger::enter_once(&TRACE, &ENTERED);
    let mut trace = TRACE.lock();
    if is_on() {
        return false;
    }
    let found = Trace { lines: vec![Line::default()], ..Trace::default() };
    let (pool, blocks) = (Pool::default(), BlockMap::default());
    *trace = Some(Tracing { found, begun: Instant::now(), before: os::usage(), pool, blocks });
    TRACED.store(fork::forks() + 1, Relaxed);
    true
}

/// Ends the trace; `None` if none went on.
pub fn end() -> Option<Trace> {
    let mut trace = TRACE.lock();
    let mut ended = if is_on() { trace.take()? } else { return None };
    TRACED.store(0, Relaxed);
    drop(trace);
    let in_use = ended.found.in_use;
    let live: Vec<usize> = ended.blocks.keys().copied().collect();
    live.into_iter().for_each(|address| ended.on_free(address));
    Some(Trace { used: os::usage().since(&ended.before), in_use, ..ended.found })
}

fn with<T>(body: impl FnOnce(&mut Tracing) -> T) -> Option<T> {
    if is_on() { TRACE.lock().as_mut().map(body) } else { None }
}

/// Bytes of a new block behind which there is no page. Of small blocks one of [`SAMPLE`] is asked about, for all.
fn fresh(address: usize, size: usize) -> usize {
    static SMALL: AtomicU64 = AtomicU64::new(0);
    match size {
        RENEW_MIN.. => return size, // glibc maps each of them
        SURE.. => return absent(address, size),
        _ => {}
    }
    let golden = SMALL.fetch_add(1, Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15); // in no step with any loop
    if golden < u64::MAX / SAMPLE as u64 { SAMPLE * absent(address, size) } else { 0 }
}

/// Bytes of a range behind which there is no page.
fn absent(start: usize, size: usize) -> usize {
    let page = os::page_size();
    let (from, to) = (start - start % page, (start + size).next_multiple_of(page));
    let pages = |at| os::resident_pages(at, MOST_ASKED.min(to - at)).unwrap_or(0);
    size.saturating_sub(page * (from..to).step_by(MOST_ASKED).map(pages).sum::<usize>())
}

/// Tells of a block that was allocated, and that nobody has written to but the C library.
pub fn on_alloc(address: usize, request: Request) {
    if request.size >= SMALL_LIMIT && is_on() {
        let fresh = fresh(address, request.size);
        with(|trace| trace.on_alloc(address, request, fresh));
    }
}

/// Tells of a block that is about to be freed. `size` need not be exact.
#[inline]
pub fn on_free(address: usize, size: usize) {
    if size >= SMALL_LIMIT {
        with(|trace| trace.on_free(address));
    }
}

/// Tells of a block that is about to be resized: another may get its address. Returns it, if it is traced, and the page faults
/// so far; [`on_resize_end`] must follow.
pub fn on_resize_begin(address: usize) -> Option<(Block, u64)> {
    let block = with(|trace| trace.blocks.remove(&address)).flatten()?;
    Some((block, os::usage().minor_faults))
}

/// Tells that the block at `old` was resized: it is at `address` now, or as it was if that is `None`. The request counts where it
/// was not traced before.
pub fn on_resize_end(before: Option<(Block, u64)>, old: usize, address: Option<usize>, request: Request) {
    match (before, address) {
        (None, None) => {}
        (None, Some(address)) => on_alloc(address, request),
        (Some((block, _)), None) => _ = with(|trace| trace.insert(old, block)),
        (Some((block, faults)), Some(address)) => {
            // What was copied to fresh memory took its page faults; what the block grew by has no pages yet.
            let copied = os::usage().minor_faults.saturating_sub(faults) as usize * os::page_size();
            let grown = absent(address + block.size, request.size.saturating_sub(block.size));
            with(|trace| trace.on_resize(block, address, request.size, (copied + grown).min(request.size)));
        }
    }
}

impl Tracing {
    /// Microseconds since the beginning.
    fn now(&self) -> u64 {
        self.begun.elapsed().as_micros() as u64
    }

    /// Counts a change of a block's size.
    fn changed(&mut self, is_array: bool, old: usize, new: usize) {
        let found = &mut self.found;
        let grown = new.saturating_sub(old);
        if is_array {
            found.allocated_bytes += grown;
            found.in_use = (found.in_use + new).saturating_sub(old);
            found.peak_in_use = found.peak_in_use.max(found.in_use);
        } else {
            found.buffer_bytes += grown;
        }
    }

    /// Without memory for it, a block is forgotten.
    fn insert(&mut self, address: usize, block: Block) {
        if self.blocks.try_reserve(1).is_ok() {
            self.blocks.insert(address, block);
        }
    }

    fn on_alloc(&mut self, address: usize, Request { size, zeroed, is_array, site }: Request, plainly: usize) {
        self.on_free(address); // if that was not told
        let made = self.now();
        let lines = &mut self.found.lines;
        let missing = (site + 1).saturating_sub(lines.len());
        let site = if lines.try_reserve(missing).is_ok() { site } else { 0 };
        lines.resize(lines.len().max(site + 1), Line::default());
        let fresh = if zeroed && size >= RENEW_MIN { size } else { self.pool.take(size, made) } as u64;
        // Zeroed blocks that fill no huge page may be sparse.
        let on_huge = os::available_huge_page_size().is_some_and(|huge| !zeroed || size >= huge);
        let line = &mut lines[site];
        (line.count, line.bytes) = (line.count + 1, line.bytes + size);
        line.taken += Taken {
            plainly: FreshBytes::of(plainly, size, is_array),
            pooled: if on_huge { FreshBytes { base: 0, huge: fresh } } else { FreshBytes { base: fresh, huge: 0 } },
            cleared: if zeroed { plainly as f64 - fresh as f64 } else { 0.0 },
        };
        *(if is_array { &mut self.found.allocations } else { &mut self.found.buffers }) += 1;
        self.changed(is_array, 0, size);
        self.insert(address, Block { size, made, is_array, site });
    }

    fn on_resize(&mut self, block: Block, address: usize, size: usize, plainly: usize) {
        self.on_free(address); // if that was not told
        self.changed(block.is_array, block.size, size);
        let now = self.now();
        self.pool.give(block.size.saturating_sub(size), now);
        let fresh = self.pool.take(size.saturating_sub(block.size), now) as u64;
        self.line(block).taken += Taken {
            plainly: FreshBytes { base: plainly as u64, huge: 0 }, // NumPy advises nothing where a block is resized
            pooled: FreshBytes { base: 0, huge: fresh },
            cleared: 0.0,
        };
        self.insert(address, Block { size, ..block });
        if size < SMALL_LIMIT {
            self.on_free(address); // which will not be told
        }
    }

    fn on_free(&mut self, address: usize) {
        let Some(block) = self.blocks.remove(&address) else { return };
        self.changed(block.is_array, block.size, 0);
        let now = self.now();
        self.pool.give(block.size, now);
        self.line(block).lived += now.saturating_sub(block.made);
    }

    /// The line that made a block, which may be one of an earlier trace where another thread resizes it meanwhile.
    fn line(&mut self, block: Block) -> &mut Line {
        let lines = &mut self.found.lines;
        let site = if block.site < lines.len() { block.site } else { 0 };
        &mut lines[site]
    }
}

impl Trace {
    /// What all lines took.
    pub fn taken(&self) -> Taken {
        let mut all = Taken::default();
        self.lines.iter().for_each(|line| all += line.taken);
        all
    }
}
