//! Attributes large blocks to source lines: what they cost in page faults, and what they would cost on a pool.

use crate::format::{BlockDetail, EventKind, Metadata, Totals, TraceError};
use crate::reader::Reader;
use firsttouch::adaptors::SMALL_LIMIT;
use firsttouch::os;
use std::collections::VecDeque;
use std::io::Read;

/// Microseconds after which a pool gives idle memory back.
const DECAY: u64 = 1_000_000;
/// Zeroed blocks of at least this many bytes come fresh from a pool, because the kernel clears faster.
const CLEARED_MAX: u64 = 32 << 20;
/// The touched part of a block from which on a pool has it on huge pages; zeroed ones that fill none may be sparse.
const FILLED: f64 = 0.5;
/// The size from which NumPy advises huge pages (numpy/_core/src/multiarray/alloc.c).
const ADVISED_BY_NUMPY: u64 = 4 << 20;

/// The work of the kernel: pages faulted in, and mappings; and that of `calloc`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Base pages.
    pub small: f64,
    /// Huge pages.
    pub huge: f64,
    /// Blocks with no resident page at first: each was mapped, and unmapped when it was freed.
    pub mapped: f64,
    /// Bytes that were resident when a zeroed block came: what `calloc` recycles, it clears.
    pub cleared: f64,
}

/// The same on a pool, in bytes, as far as they were touched.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pooled {
    /// Fresh memory on base pages.
    pub small: f64,
    /// Fresh memory on huge pages.
    pub huge: f64,
    /// The number of times that idle memory was given back.
    pub purges: f64,
    /// Recycled memory that was cleared for zeroed requests.
    pub cleared: f64,
}

/// The large blocks allocated by one source line.
#[derive(Clone, Debug, Default)]
pub struct LineSummary {
    /// The file; empty for blocks that no Python code requested.
    pub file: String,
    /// The line number.
    pub line: u32,
    /// Number of large blocks.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The faults that they took.
    pub faults: Faults,
    /// What a pool does for them instead.
    pub pooled: Pooled,
    /// Most lines that a program names allocate no large block.
    lifetimes: Option<Box<LifetimeHistogram>>,
}

impl LineSummary {
    /// Returns the median lifetime of the blocks in microseconds. Blocks that are never freed live to the end.
    pub fn median_lifetime(&self) -> u64 {
        self.lifetimes.as_ref().map_or(0, |lifetimes| lifetimes.median())
    }
}

/// A log-linear histogram of lifetimes, with eight buckets per power of two.
#[derive(Clone, Debug)]
struct LifetimeHistogram([u64; 512]);

impl Default for LifetimeHistogram {
    fn default() -> Self {
        Self([0; 512])
    }
}

impl LifetimeHistogram {
    fn add(&mut self, micros: u64) {
        let bucket = if micros < 8 {
            micros
        } else {
            let exponent = u64::from(micros.ilog2());
            (exponent - 2) * 8 + (micros >> (exponent - 3)) - 8
        };
        self.0[bucket as usize] += 1;
    }

    fn median(&self) -> u64 {
        let half = self.0.iter().sum::<u64>().div_ceil(2);
        let mut count = 0;
        let bucket = self.0.iter().position(|&more| {
            count += more;
            count >= half
        });
        match bucket.unwrap_or(0) as u64 {
            small @ 0..8 => small,
            large => ((large % 8 + 8) * 2 + 1) << (large / 8 - 1) >> 1, // the middle of the bucket
        }
    }
}

/// The memory that a pool would keep: what the program freed less than [`DECAY`] ago, the latest first. Fragmentation is
/// ignored, so a pool may take a little more.
#[derive(Default)]
struct IdleMemory {
    /// Times of the frees, and bytes.
    freed: VecDeque<(u64, u64)>,
}

impl IdleMemory {
    /// Keeps memory that is freed now.
    fn give(&mut self, bytes: u64, now: u64) {
        if bytes > 0 {
            self.freed.push_back((now, bytes));
        }
    }

    /// Takes up to `wanted` bytes; returns how many there were.
    fn take(&mut self, wanted: u64) -> u64 {
        let mut missing = wanted;
        while missing > 0 {
            let Some((_, bytes)) = self.freed.back_mut() else { break };
            let taken = missing.min(*bytes);
            *bytes -= taken;
            missing -= taken;
            if *bytes == 0 {
                self.freed.pop_back();
            }
        }
        wanted - missing
    }

    /// Gives back what has been idle for long; returns whether there was any.
    fn decay(&mut self, now: u64) -> bool {
        let before = self.freed.len();
        while self.freed.front().is_some_and(|&(freed_at, _)| now.saturating_sub(freed_at) > DECAY) {
            self.freed.pop_front();
        }
        self.freed.len() < before
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct SummarizedBlock {
    size: u64,
    zeroed: bool,
    allocated_at: u64,
    /// Bytes that a pool would not have had.
    fresh: u64,
    /// Recorded for large blocks only.
    detail: Option<BlockDetail>,
}

/// The summary of a whole trace.
#[derive(Default)]
pub struct Summary {
    /// The metadata of the header and of the end mark.
    pub metadata: Metadata,
    /// Whether the trace has its end mark.
    pub complete: bool,
    /// The totals.
    pub totals: Totals,
    /// Time of the last event in microseconds.
    pub micros: u64,
    /// Indexed by site number; index 0 is for blocks that no Python code requested.
    pub lines: Vec<LineSummary>,
    /// Number of blocks smaller than [`LARGE_SIZE`](crate::recorder::LARGE_SIZE).
    pub small_blocks: u64,
    /// Their bytes.
    pub small_bytes: u64,
    /// Blocks of at least so many bytes were on huge pages wherever they cover whole ones.
    huge_from: u64,
    idle: IdleMemory,
    /// Live blocks by block number.
    blocks: Vec<SummarizedBlock>,
}

impl Summary {
    /// Reads a whole trace; with `allow_truncated`, as much of it as there is.
    ///
    /// # Errors
    /// If the trace cannot be read, or is truncated and that is not allowed.
    pub fn new(source: impl Read, allow_truncated: bool) -> Result<Self, TraceError> {
        let mut reader = Reader::new(source)?;
        let mut summary = Self {
            huge_from: huge_from(reader.metadata()),
            metadata: reader.metadata().clone(),
            lines: vec![LineSummary::default()],
            ..Self::default()
        };
        while let Some(event) = reader.next_event(allow_truncated)? {
            summary.micros = event.micros;
            match event.kind {
                EventKind::Site { file, line } => {
                    summary.lines.push(LineSummary { file, line, ..LineSummary::default() });
                }
                EventKind::Allocate { block, size, zeroed, detail } => summary.on_alloc(block, size, zeroed, detail),
                EventKind::Free { block, resident } => summary.on_free(block, resident),
                EventKind::Live { block, resident } => summary.on_free(block, Some(resident)),
                EventKind::Resize { block, size } => summary.on_resize(block, size),
            }
        }
        for block in 0..summary.blocks.len() as u32 {
            summary.on_free(block, None); // live at the end without a `Live` event
        }
        summary.totals = *reader.totals();
        if let Some((totals, metadata)) = reader.end() {
            summary.complete = true;
            summary.totals = *totals;
            summary.metadata.extend(metadata.iter().cloned());
        }
        Ok(summary)
    }

    fn on_alloc(&mut self, number: u32, size: u64, zeroed: bool, detail: Option<BlockDetail>) {
        let fresh = if size < SMALL_LIMIT as u64 { 0 } else { self.fresh(size, zeroed, detail) };
        if let Some(detail) = detail {
            let line = self.line_of(detail);
            line.count += 1;
            line.bytes = line.bytes.saturating_add(size); // of a damaged trace, any number
        } else {
            self.small_blocks += 1;
            self.small_bytes = self.small_bytes.saturating_add(size);
        }
        let index = number as usize;
        self.blocks.resize(self.blocks.len().max(index + 1), SummarizedBlock::default());
        self.blocks[index] = SummarizedBlock { size, zeroed, allocated_at: self.micros, fresh, detail };
    }

    /// Returns how many of these bytes a pool would have to take from the kernel.
    fn fresh(&mut self, size: u64, zeroed: bool, detail: Option<BlockDetail>) -> u64 {
        let decayed = self.idle.decay(self.micros);
        if let Some(detail) = detail {
            self.line_of(detail).pooled.purges += f64::from(u8::from(decayed));
        }
        if zeroed && size >= CLEARED_MAX { size } else { size - self.idle.take(size) }
    }

    fn on_resize(&mut self, number: u32, size: u64) {
        let old = self.blocks[number as usize];
        let grown = size.saturating_sub(old.size);
        let fresh = grown - self.idle.take(grown);
        self.idle.give(old.size.saturating_sub(size), self.micros);
        let block = &mut self.blocks[number as usize];
        (block.size, block.fresh) = (size, old.fresh.saturating_add(fresh).min(size));
    }

    fn line_of(&mut self, detail: BlockDetail) -> &mut LineSummary {
        let index = if (detail.site as usize) < self.lines.len() { detail.site as usize } else { 0 };
        &mut self.lines[index]
    }

    /// Accounts for a block that is freed; it counts as fully written if its resident pages are not known.
    fn on_free(&mut self, number: u32, resident: Option<u64>) {
        let block = std::mem::take(&mut self.blocks[number as usize]);
        let page = os::page_size() as u64;
        let pages = block.size.div_ceil(page);
        let touched = resident.unwrap_or(pages).min(pages);
        if block.size >= SMALL_LIMIT as u64 {
            self.idle.give(touched.saturating_mul(page).min(block.size), self.micros);
        }
        let Some(detail) = block.detail else { return };
        let faults = self.faults(block.size, pages, detail.huge_offset, touched.saturating_sub(detail.present));
        let share = touched as f64 / pages.max(1) as f64;
        let lived = self.micros - block.allocated_at;
        let line = self.line_of(detail);
        line.lifetimes.get_or_insert_default().add(lived);
        line.faults.small += faults.small;
        line.faults.huge += faults.huge;
        line.faults.mapped += f64::from(u8::from(detail.present == 0));
        let whole_pages = os::huge_page_size().is_some_and(|huge| block.size >= huge as u64);
        let on_huge = share >= FILLED && (whole_pages || !block.zeroed);
        *(if on_huge { &mut line.pooled.huge } else { &mut line.pooled.small }) += block.fresh as f64 * share;
        if block.zeroed {
            line.faults.cleared += detail.present.saturating_mul(page).min(block.size) as f64;
            line.pooled.cleared += (block.size - block.fresh) as f64 * share;
        }
    }

    /// Returns how the kernel serves `faulted` pages: as huge pages inside a block that is large enough for them.
    fn faults(&self, size: u64, pages: u64, huge_offset: u64, faulted: u64) -> Faults {
        let huge = os::huge_page_size().map_or(0, |huge| (huge / os::page_size()) as u64);
        if size < self.huge_from || huge < 2 || pages == 0 {
            return Faults { small: faulted as f64, ..Faults::default() };
        }
        let edge = (huge - huge_offset % huge) % huge;
        let whole = pages.saturating_sub(edge) / huge;
        let on_huge = faulted as f64 * (whole * huge) as f64 / pages as f64;
        Faults { small: faulted as f64 - on_huge, huge: on_huge / huge as f64, ..Faults::default() }
    }
}

/// Returns the block size from which huge pages were used, according to the settings of the recorded run.
fn huge_from(metadata: &Metadata) -> u64 {
    let setting = |name| metadata.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value);
    let huge = os::huge_page_size().map_or(u64::MAX, |huge| huge as u64);
    match (setting("thp"), setting("allocator")) {
        ("madvise", "numpy_default()") => ADVISED_BY_NUMPY,
        ("madvise" | "always", _) => huge,
        _ => u64::MAX,
    }
}
