//! Attributes large blocks to source lines: what they cost in page faults, and how much of that a pool would have saved.

use crate::event::{BlockDetail, EventKind};
use crate::format::TraceError;
use crate::pool_model::PoolModel;
use crate::reader::Reader;
use firsttouch::adaptors::SMALL_LIMIT;
use firsttouch::os;
use std::io::Read;

/// A pool gives zeroed blocks of at least this size fresh pages, so that it saves none of their faults.
const FRESH_ZEROED_SIZE: u64 = 32 << 20;

/// The work of the kernel: pages faulted in, and mappings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Base pages.
    pub small: f64,
    /// Huge pages.
    pub huge: f64,
    /// Blocks with no resident page at first: each was mapped, and unmapped when it was freed.
    pub mapped: f64,
}

impl Faults {
    fn add(&mut self, other: Self, factor: f64) {
        self.small += other.small * factor;
        self.huge += other.huge * factor;
        self.mapped += other.mapped * factor;
    }
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
    /// The part of the faults that a pool would have saved.
    pub avoidable: Faults,
    /// Bytes that a pool would have had to clear for zeroed requests instead.
    pub cleared: f64,
    lifetimes: LifetimeHistogram,
}

impl LineSummary {
    /// Returns the median lifetime of the blocks in microseconds. Blocks that are never freed live to the end.
    pub fn median_lifetime(&self) -> u64 {
        self.lifetimes.median()
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

#[derive(Clone, Copy, Debug, Default)]
struct SummarizedBlock {
    size: u64,
    zeroed: bool,
    allocated_at: u64,
    /// The fraction that a pool would have served from recycled memory.
    recycled: f64,
    /// Recorded for large blocks only.
    detail: Option<BlockDetail>,
}

/// The summary of a whole trace.
pub struct Summary {
    /// Indexed by site number; index 0 is for blocks that no Python code requested.
    pub lines: Vec<LineSummary>,
    /// Number of blocks smaller than [`LARGE_SIZE`](crate::recorder::LARGE_SIZE).
    pub small_blocks: u64,
    /// Their bytes.
    pub small_bytes: u64,
    huge_from: u64,
    pool: PoolModel,
    /// Live blocks by block number.
    blocks: Vec<SummarizedBlock>,
}

impl Summary {
    /// Reads a whole trace; with `allow_truncated`, as much of it as there is. Blocks of at least `huge_from` bytes are
    /// assumed to be on huge pages wherever they cover whole ones.
    ///
    /// # Errors
    /// If the trace cannot be read, or is truncated and that is not allowed.
    pub fn new(source: impl Read, allow_truncated: bool, huge_from: u64) -> Result<Self, TraceError> {
        let mut reader = Reader::new(source)?;
        let mut summary = Self {
            lines: vec![LineSummary::default()],
            small_blocks: 0,
            small_bytes: 0,
            huge_from,
            pool: PoolModel::default(),
            blocks: Vec::new(),
        };
        let mut now = 0;
        while let Some(event) = reader.next_event(allow_truncated)? {
            now = event.micros;
            match event.kind {
                EventKind::Site { file, line } => {
                    summary.lines.push(LineSummary { file, line, ..LineSummary::default() });
                }
                EventKind::Allocate { block, size, zeroed, detail } => {
                    let new = SummarizedBlock { size, zeroed, allocated_at: now, recycled: 0.0, detail };
                    summary.on_alloc(block, new);
                }
                EventKind::Free { block, resident } => summary.on_free(block, resident, now),
                EventKind::Live { block, resident } => summary.on_free(block, Some(resident), now),
                EventKind::Resize { block, size } => summary.on_resize(block, size, now),
            }
        }
        for block in 0..summary.blocks.len() as u32 {
            summary.on_free(block, None, now); // live at the end without a `Live` event
        }
        Ok(summary)
    }

    fn on_alloc(&mut self, number: u32, mut block: SummarizedBlock) {
        if block.size >= SMALL_LIMIT as u64 {
            block.recycled = self.pool.allocate(block.size, block.zeroed, block.allocated_at);
        }
        if let Some(detail) = block.detail {
            let line = self.line_of(detail);
            line.count += 1;
            line.bytes += block.size;
        } else {
            self.small_blocks += 1;
            self.small_bytes += block.size;
        }
        let index = number as usize;
        self.blocks.resize(self.blocks.len().max(index + 1), SummarizedBlock::default());
        self.blocks[index] = block;
    }

    fn line_of(&mut self, detail: BlockDetail) -> &mut LineSummary {
        let index = if (detail.site as usize) < self.lines.len() { detail.site as usize } else { 0 };
        &mut self.lines[index]
    }

    fn on_resize(&mut self, number: u32, size: u64, now: u64) {
        let block = &mut self.blocks[number as usize];
        if block.size >= SMALL_LIMIT as u64 && size >= SMALL_LIMIT as u64 {
            self.pool.resize(block.size, size, now);
        }
        block.size = size;
    }

    /// Accounts for a block that is freed; it counts as fully written if its resident pages are not known.
    fn on_free(&mut self, number: u32, resident: Option<u64>, now: u64) {
        let block = std::mem::take(&mut self.blocks[number as usize]);
        if block.size >= SMALL_LIMIT as u64 {
            self.pool.free(block.size, block.zeroed, now);
        }
        let Some(detail) = block.detail else { return };
        let pages = block.size.div_ceil(os::page_size() as u64);
        let faulted = resident.unwrap_or(pages).min(pages).saturating_sub(detail.present);
        let mut faults = self.faults(block.size, pages, detail.huge_offset, faulted);
        faults.mapped = f64::from(u8::from(detail.present == 0));
        let fresh = block.zeroed && block.size >= FRESH_ZEROED_SIZE;
        let recycled = if fresh { 0.0 } else { block.recycled };
        let line = self.line_of(detail);
        line.lifetimes.add(now - block.allocated_at);
        line.faults.add(faults, 1.0);
        line.avoidable.add(Faults { mapped: 0.0, ..faults }, recycled);
        line.avoidable.mapped += if fresh { 0.0 } else { faults.mapped }; // a pool maps memory for many blocks at once
        if block.zeroed {
            line.cleared += recycled * (faulted * os::page_size() as u64) as f64;
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
