//! Attributes large blocks to source lines, with what they took fresh from the system, plainly and on a pool: see
//! [`firsttouch::gain`]. That assumes that all memory is used; the page faults that the run was seen to take bound it.

use crate::format::{EventKind, LARGE_SIZE, Metadata, TraceError};
use crate::reader::Reader;
use firsttouch::gain::{Seen, Simulation, Taken};
use std::io::Read;
use std::str::FromStr;

/// Under this name the header tells what the C library's thresholds were raised for: see [`firsttouch::glibc::raised_for`].
pub const RAISED_FOR: &str = "raised_for";
/// And under these the end mark what the process used while it was recorded: seconds in the kernel, and page faults.
pub const RECORDED_KERNEL: &str = "recorded_kernel";
/// See [`RECORDED_KERNEL`].
pub const RECORDED_FAULTS: &str = "recorded_faults";

/// The large blocks allocated by one source line.
#[derive(Clone, Debug, Default)]
pub struct LineSummary {
    /// The file; empty for blocks that no Python code requested.
    pub file: String,
    /// The line number.
    pub line: u32,
    /// The line of a library through which it made its first request; empty where it made it itself.
    pub library: String,
    /// Number of large blocks.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What they took.
    pub taken: Taken,
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
    simulation: Simulation,
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
        summary.simulation = Simulation::new(summary.fact(RAISED_FOR).unwrap_or_default());
        loop {
            let event = match reader.next() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(TraceError::Truncated(_)) if allow_truncated => break,
                Err(error) => return Err(error),
            };
            summary.micros = event.micros;
            match event.kind {
                EventKind::Site { file, line, library } => {
                    summary.lines.push(LineSummary { file, line, library, ..LineSummary::default() });
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
        let taken = self.simulation.allocate(number as usize + 1, size, zeroed, self.micros);
        let site = if (site as usize) < self.lines.len() { site as usize } else { 0 };
        let line = (size >= LARGE_SIZE).then_some(site);
        if let Some(line) = line {
            let line = &mut self.lines[line];
            line.count += 1;
            line.bytes = line.bytes.saturating_add(size);
            line.taken += taken;
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
        let taken = self.simulation.resize(number as usize + 1, old, size, self.micros);
        if let Some(line) = line {
            self.lines[line].taken += taken;
        }
    }

    fn on_free(&mut self, number: u32) {
        let block = std::mem::take(&mut self.blocks[number as usize]);
        self.changed(block.size, 0);
        self.simulation.free(number as usize + 1, block.size, self.micros);
        if let Some(line) = block.line {
            let lived = self.micros - block.allocated_at;
            self.lines[line].lifetimes[lived.max(1).ilog2().min(31) as usize] += 1;
        }
    }

    /// Returns what all lines took.
    pub fn taken(&self) -> Taken {
        let mut all = Taken::default();
        self.lines.iter().for_each(|line| all += line.taken);
        all
    }

    /// Returns the part of the page faults of all lines that the process was seen to take, at most 1: not all memory is
    /// used.
    pub fn touched(&self) -> f64 {
        let seen: f64 = self.fact(RECORDED_FAULTS).unwrap_or(f64::INFINITY);
        (seen / (self.taken().plainly.faults() as f64).max(1.0)).min(1.0)
    }

    /// Returns what the process used while it was recorded, if that came to its end.
    pub fn seen(&self) -> Option<Seen> {
        Some(Seen { kernel: self.fact(RECORDED_KERNEL)?, faults: self.fact(RECORDED_FAULTS)? })
    }

    /// Returns the seconds of processor time that the program took; if it was killed, those that the trace lasted.
    pub fn processor(&self) -> f64 {
        let seen = |name| self.fact(name).unwrap_or(0.0);
        match seen("user") + seen("kernel") {
            used if used > 0.0 => used,
            _ => self.micros as f64 / 1e6,
        }
    }

    fn fact<T: FromStr>(&self, name: &str) -> Option<T> {
        self.metadata.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.parse().ok())
    }
}
