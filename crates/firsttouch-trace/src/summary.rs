//! Attributes large blocks to source lines: what they cost in page faults, and what they cost on a pool.

use crate::event::{BlockDetail, EventKind};
use crate::format::TraceError;
use crate::pool_replay::{PoolReplay, ReplayedBlock, pages};
use crate::reader::Reader;
use crate::survey::{ResidentAtEnd, Survey};
use firsttouch::os;
use std::io::Read;

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
    /// Fresh memory that is advised huge.
    pub huge: f64,
    /// The number of times that idle memory was given back for it.
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

#[derive(Clone, Copy, Debug, Default)]
struct SummarizedBlock {
    size: u64,
    zeroed: bool,
    allocated_at: u64,
    replayed: ReplayedBlock,
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
    pool: PoolReplay,
    /// Live blocks by block number.
    blocks: Vec<SummarizedBlock>,
}

impl Summary {
    /// Reads a trace that `survey` has read before, and repeats its requests on a pool. Blocks of at least `huge_from`
    /// bytes are assumed to have been on huge pages wherever they cover whole ones.
    ///
    /// # Errors
    /// If `source` cannot be read.
    pub fn new(source: impl Read, survey: &Survey, huge_from: u64) -> Result<Self, TraceError> {
        let mut summary = Self {
            lines: vec![LineSummary::default()],
            small_blocks: 0,
            small_bytes: 0,
            huge_from,
            pool: PoolReplay::new(),
            blocks: Vec::new(),
        };
        let mut now = 0;
        let read = summary.read(source, survey, &mut now);
        for block in 0..summary.blocks.len() as u32 {
            summary.on_free(block, None, now); // live at the end without a `Live` event
        }
        read.map(|()| summary)
    }

    fn read(&mut self, source: impl Read, survey: &Survey, now: &mut u64) -> Result<(), TraceError> {
        let (mut reader, mut resident_at_end) = (Reader::new(source)?, ResidentAtEnd::new(survey));
        while let Some(event) = reader.next_event(!survey.complete)? {
            *now = event.micros;
            match event.kind {
                EventKind::Site { file, line } => {
                    self.lines.push(LineSummary { file, line, ..LineSummary::default() });
                }
                EventKind::Allocate { block, size, zeroed, detail } => {
                    let touched = resident_at_end.of_next(detail).unwrap_or(u64::MAX);
                    let replayed = self.pool.allocate(size, zeroed, touched, *now);
                    self.on_alloc(block, SummarizedBlock { size, zeroed, allocated_at: *now, replayed, detail });
                }
                EventKind::Free { block, resident } => self.on_free(block, resident, *now),
                EventKind::Live { block, resident } => self.on_free(block, Some(resident), *now),
                EventKind::Resize { block, size } => {
                    let block = &mut self.blocks[block as usize];
                    self.pool.resize(&mut block.replayed, block.size, size, *now);
                    block.size = size;
                }
            }
        }
        Ok(())
    }

    fn on_alloc(&mut self, number: u32, block: SummarizedBlock) {
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

    /// Accounts for a block that is freed; it counts as fully written if its resident pages are not known.
    fn on_free(&mut self, number: u32, resident: Option<u64>, now: u64) {
        let block = std::mem::take(&mut self.blocks[number as usize]);
        let pages = pages(block.size);
        let touched = resident.unwrap_or(pages).min(pages);
        self.pool.free(block.replayed, block.size, touched, now);
        let Some(detail) = block.detail else { return };
        let faults = self.faults(block.size, pages, detail.huge_offset, touched.saturating_sub(detail.present));
        let (fresh, share) = (block.replayed.fresh, touched as f64 / pages.max(1) as f64);
        let line = self.line_of(detail);
        line.lifetimes.get_or_insert_default().add(now - block.allocated_at);
        line.faults.small += faults.small;
        line.faults.huge += faults.huge;
        line.faults.mapped += f64::from(u8::from(detail.present == 0));
        line.pooled.small += fresh.small as f64 * share;
        line.pooled.huge += fresh.huge as f64 * share;
        line.pooled.purges += fresh.purges as f64;
        if block.zeroed {
            line.faults.cleared += detail.present.saturating_mul(os::page_size() as u64).min(block.size) as f64;
            line.pooled.cleared += block.size.saturating_sub(fresh.small + fresh.huge) as f64 * share;
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
