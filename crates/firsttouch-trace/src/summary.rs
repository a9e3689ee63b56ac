//! Attributes large blocks to source lines, with an estimate of what they cost in first touches, plainly and on a pool.
//!
//! What glibc would have taken fresh from the system is told by the simulation that reports use, too
//! ([`firsttouch::glibc`]); what a pool would have taken, by the memory that the program had freed less than [`DECAY`]
//! before. Both assume that all memory is used. The page faults and the kernel time that the run was seen to take bound
//! them.

use crate::format::{EventKind, LARGE_SIZE, Metadata, TraceError};
use crate::reader::Reader;
use firsttouch::adaptors::{DECAY, SMALL_LIMIT};
use firsttouch::glibc::{self, Simulation};
use firsttouch::os;
use firsttouch::report::{Fresh, Price};
use std::collections::VecDeque;
use std::io::Read;

/// Zeroed blocks of at least this many bytes come fresh from a pool, because the kernel clears faster.
const CLEARED_MAX: u64 = 32 << 20;
/// The kernel counts its time in ticks; from this many seconds on it is reliable.
const TICKS: f64 = 0.25;

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
    /// What glibc would have taken fresh for them.
    pub plainly: Fresh,
    /// What a pool would have taken fresh.
    pub pooled: Fresh,
    /// Bytes that a pool would have had to clear, less those that glibc would have.
    pub cleared: f64,
    /// Number of lifetimes in microseconds, by their logarithm to the base 2; the last is half an hour or more.
    lifetimes: [u64; 32],
}

impl LineSummary {
    /// Returns about the median lifetime of the blocks in microseconds. Blocks that are never freed live to the end.
    pub fn median_lifetime(&self) -> u64 {
        let half = self.lifetimes.iter().sum::<u64>().div_ceil(2);
        let mut count = 0;
        let exponent = self.lifetimes.iter().position(|&more| {
            count += more;
            count >= half
        });
        (3 << exponent.unwrap_or(0)) >> 1
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

    /// Takes up to `wanted` bytes, after giving back what has been idle for long; returns how many there were.
    fn take(&mut self, wanted: u64, now: u64) -> u64 {
        while self
            .freed
            .front()
            .is_some_and(|&(freed_at, _)| u128::from(now.saturating_sub(freed_at)) > DECAY.as_micros())
        {
            self.freed.pop_front();
        }
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
}

#[derive(Clone, Copy, Debug, Default)]
struct LiveBlock {
    size: u64,
    allocated_at: u64,
    /// The index of its line, if it is a large block.
    line: Option<usize>,
}

/// The summary of a whole trace.
#[derive(Default)]
pub struct Summary {
    /// The metadata of the header and of the end mark.
    pub metadata: Metadata,
    /// Whether the trace has its end mark.
    pub complete: bool,
    /// Number of events.
    pub events: u64,
    /// Number of blocks allocated.
    pub allocations: u64,
    /// Bytes allocated, growth by resizing included.
    pub allocated_bytes: u64,
    /// Largest number of bytes that were live at once.
    pub peak_in_use: u64,
    /// Bytes live at the end.
    pub in_use: u64,
    /// Number of events that were lost.
    pub lost: u64,
    /// Time of the last event in microseconds.
    pub micros: u64,
    /// Indexed by site number; index 0 is for blocks that no Python code requested.
    pub lines: Vec<LineSummary>,
    /// Number of blocks smaller than [`LARGE_SIZE`].
    pub small_blocks: u64,
    /// Their bytes.
    pub small_bytes: u64,
    plainly: Simulation,
    pooled: IdleMemory,
    /// Live blocks by block number.
    blocks: Vec<LiveBlock>,
}

impl Summary {
    /// Reads a whole trace; with `allow_truncated`, as much of it as there is.
    ///
    /// # Errors
    /// If the trace cannot be read, or is truncated and that is not allowed.
    pub fn new(source: impl Read, allow_truncated: bool) -> Result<Self, TraceError> {
        let mut reader = Reader::new(source)?;
        let mut summary =
            Self { metadata: reader.metadata().clone(), lines: vec![LineSummary::default()], ..Self::default() };
        loop {
            let event = match reader.next() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(TraceError::Truncated(_)) if allow_truncated => break,
                Err(error) => return Err(error),
            };
            summary.micros = event.micros;
            match event.kind {
                EventKind::Site { file, line } => {
                    summary.lines.push(LineSummary { file, line, ..LineSummary::default() });
                }
                EventKind::Allocate { block, size, zeroed, site } => summary.on_alloc(block, size, zeroed, site),
                EventKind::Free { block } => summary.on_free(block),
                EventKind::Resize { block, size } => summary.on_resize(block, size),
            }
        }
        let in_use = summary.in_use;
        for block in 0..summary.blocks.len() as u32 {
            summary.on_free(block); // live at the end
        }
        (summary.events, summary.in_use) = (reader.events(), in_use);
        if let Some((lost, metadata)) = reader.end() {
            summary.complete = true;
            summary.lost = *lost;
            summary.metadata.extend(metadata.iter().cloned());
        }
        Ok(summary)
    }

    /// Counts a change of a block's size.
    fn changed(&mut self, old: u64, new: u64) {
        self.allocated_bytes = self.allocated_bytes.saturating_add(new.saturating_sub(old)); // of a damaged trace, any number
        self.in_use = self.in_use.saturating_add(new).saturating_sub(old);
        self.peak_in_use = self.peak_in_use.max(self.in_use);
    }

    fn on_alloc(&mut self, number: u32, size: u64, zeroed: bool, site: u32) {
        self.allocations += 1;
        self.changed(0, size);
        let plainly = self.plainly.allocated(number as usize + 1, size as usize);
        let had = if zeroed && size >= CLEARED_MAX || size < SMALL_LIMIT as u64 {
            0
        } else {
            self.pooled.take(size, self.micros)
        };
        let site = if (site as usize) < self.lines.len() { site as usize } else { 0 };
        let line = (size >= LARGE_SIZE).then_some(site);
        if let Some(line) = line {
            let line = &mut self.lines[line];
            line.count += 1;
            line.bytes = line.bytes.saturating_add(size);
            line.plainly += glibc::pages(plainly, size as usize, true);
            let whole_pages = os::huge_page_size().is_some_and(|huge| size >= huge as u64);
            line.pooled.add(size - had, whole_pages || !zeroed); // zeroed blocks that fill no huge page may be sparse
            if zeroed {
                line.cleared += plainly as f64 - (size - had) as f64;
            }
        } else {
            self.small_blocks += 1;
            self.small_bytes = self.small_bytes.saturating_add(size);
        }
        let index = number as usize;
        self.blocks.resize(self.blocks.len().max(index + 1), LiveBlock::default());
        self.blocks[index] = LiveBlock { size, allocated_at: self.micros, line };
    }

    fn on_resize(&mut self, number: u32, size: u64) {
        let block = &mut self.blocks[number as usize];
        let old = std::mem::replace(&mut block.size, size);
        let line = block.line;
        self.changed(old, size);
        self.plainly.freed(number as usize + 1, old as usize);
        let plainly = self.plainly.allocated(number as usize + 1, size as usize);
        let grown = size.saturating_sub(old);
        self.pooled.give(old.saturating_sub(size), self.micros);
        let had = self.pooled.take(grown, self.micros);
        if let Some(line) = line {
            let line = &mut self.lines[line];
            line.plainly += glibc::pages(plainly.min(grown as usize), size as usize, true);
            line.pooled.add(grown - had, true);
        }
    }

    fn on_free(&mut self, number: u32) {
        let block = std::mem::take(&mut self.blocks[number as usize]);
        self.changed(block.size, 0);
        self.plainly.freed(number as usize + 1, block.size as usize);
        if block.size >= SMALL_LIMIT as u64 {
            self.pooled.give(block.size, self.micros);
        }
        if let Some(line) = block.line {
            let lived = self.micros - block.allocated_at;
            self.lines[line].lifetimes[lived.max(1).ilog2().min(31) as usize] += 1;
        }
    }

    /// Returns a line's seconds for first touches, plainly, and the part of them that a pool would save; a loss is less
    /// than zero.
    pub fn seconds(&self, line: &LineSummary, price: &Price, scale: f64) -> (f64, f64) {
        let plainly = price.of(line.plainly);
        let saved = plainly - price.of(line.pooled) - line.cleared * price.clear;
        (plainly * scale, saved * scale)
    }

    /// Returns by what the estimates have to be multiplied so that they are not more than what was seen: the page faults
    /// of the process, and all its time in the kernel. That is counted in ticks, which says nothing of a short run; then
    /// it is all its processor time or, if it was killed, the duration of the trace.
    pub fn scale(&self, price: &Price) -> f64 {
        let mut all = Fresh::default();
        self.lines.iter().for_each(|line| all += line.plainly);
        let seen = |name| self.metadata.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.parse().ok());
        let (user, kernel) = (seen("user").unwrap_or(0.0), seen("kernel").unwrap_or(0.0));
        let seconds = match (kernel >= TICKS, user + kernel) {
            (true, _) => kernel,
            (false, used) if used > 0.0 => used,
            _ => self.micros as f64 / 1e6,
        };
        let faults = seen("minor_faults").unwrap_or(f64::INFINITY);
        let at_most = |seen: f64, estimated: f64| if estimated > seen { seen / estimated } else { 1.0 };
        at_most(seconds, price.of(all)).min(at_most(faults, all.faults() as f64))
    }
}
