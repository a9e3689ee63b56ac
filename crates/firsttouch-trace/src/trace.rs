//! The trace of the process: its large blocks by the line that asks for them, with what they take fresh from the system, plainly
//! and on a pool (see [`firsttouch::gain`]). It is summed up as the program runs, at the cost of a short lock and a look into a
//! table for each event. A forked child is not traced unless it begins a trace of its own.

use firsttouch::adaptors::SMALL_LIMIT;
use firsttouch::fork;
use firsttouch::gain::{Simulation, Taken};
use firsttouch::heap::purger;
use firsttouch::ledger::Part;
use firsttouch::os::{self, Usage};
use firsttouch::sync::lock::Lock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Instant;

/// Smaller blocks are not traced: no pool serves them.
pub const LEAST: usize = SMALL_LIMIT;

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

/// The blocks that one line made, or that it resized to [`LEAST`] bytes or more.
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
    simulation: Simulation,
    blocks: Part<Block>,
}

/// Whether this process is traced.
#[inline]
pub fn is_on() -> bool {
    let traced = TRACED.load(Relaxed);
    traced != 0 && traced == fork::forks() + 1
}

/// Begins a trace, of a program whose C library has raised its thresholds so far (see [`firsttouch::glibc::raised_for`]); returns
/// whether none went on.
pub fn begin(raised_for: usize) -> bool {
    static ENTERED: AtomicBool = AtomicBool::new(false);
    purger::enter_once(&TRACE, &ENTERED);
    let mut trace = TRACE.lock();
    if is_on() {
        return false;
    }
    let found = Trace { lines: vec![Line::default()], ..Trace::default() };
    let simulation = Simulation::new(raised_for);
    *trace = Some(Tracing { found, begun: Instant::now(), before: os::usage(), simulation, blocks: Part::default() });
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

/// Tells of a block that was allocated.
pub fn on_alloc(address: usize, request: Request) {
    if request.size >= LEAST {
        with(|trace| trace.on_alloc(address, request));
    }
}

/// Tells of a block that is about to be freed. `size` need not be exact.
#[inline]
pub fn on_free(address: usize, size: usize) {
    if size >= LEAST {
        with(|trace| trace.on_free(address));
    }
}

/// Tells of a block that is about to be resized: another may get its address. Returns it, if it is traced; [`on_resize_end`]
/// must follow.
pub fn on_resize_begin(address: usize) -> Option<Block> {
    with(|trace| trace.blocks.remove(&address)).flatten()
}

/// Tells that the block at `old` was resized: it is at `address` now, or as it was if that is `None`. The request counts where it
/// was not traced before.
pub fn on_resize_end(before: Option<Block>, old: usize, address: Option<usize>, request: Request) {
    match (before, address) {
        (None, None) => {}
        (None, Some(address)) => on_alloc(address, request),
        (Some(block), None) => _ = with(|trace| trace.insert(old, block)),
        (Some(block), Some(address)) => _ = with(|trace| trace.on_resize((old, block), address, request.size)),
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

    fn on_alloc(&mut self, address: usize, Request { size, zeroed, is_array, site }: Request) {
        self.on_free(address); // if that was not told
        let made = self.now();
        let lines = &mut self.found.lines;
        let missing = (site + 1).saturating_sub(lines.len());
        let site = if lines.try_reserve(missing).is_ok() { site } else { 0 };
        lines.resize(lines.len().max(site + 1), Line::default());
        let taken = self.simulation.allocate(address, size, zeroed, is_array, made);
        let line = &mut lines[site];
        (line.count, line.bytes) = (line.count + 1, line.bytes + size);
        line.taken += taken;
        *(if is_array { &mut self.found.allocations } else { &mut self.found.buffers }) += 1;
        self.changed(is_array, 0, size);
        self.insert(address, Block { size, made, is_array, site });
    }

    fn on_resize(&mut self, (old, block): (usize, Block), address: usize, size: usize) {
        self.on_free(address); // if that was not told
        self.changed(block.is_array, block.size, size);
        let now = self.now();
        let taken = self.simulation.resize((old, block.size), (address, size), now);
        self.line(block).taken += taken;
        self.insert(address, Block { size, ..block });
        if size < LEAST {
            self.on_free(address); // which will not be told
        }
    }

    fn on_free(&mut self, address: usize) {
        let Some(block) = self.blocks.remove(&address) else { return };
        self.changed(block.is_array, block.size, 0);
        let now = self.now();
        self.simulation.free(address, block.size, now);
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
