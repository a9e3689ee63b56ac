//! Attributes large blocks to source lines, with what they took fresh from the system, plainly and on a pool: see
//! [`firsttouch::gain`]. That assumes that all memory is used; the page faults that the run was seen to take bound it.

use crate::format::{EventKind, LARGE_SIZE, Metadata, TraceError};
use crate::reader::Reader;
use firsttouch::gain::{Seen, Simulation, Taken};
use std::io::Read;
use std::str::FromStr;

/// Under this name the header tells what the C library's thresholds were raised for: see [`firsttouch::glibc::raised_for`].
pub const RAISED_FOR: &str = "raised_for";
/// Under this one the header tells why arrays alone were recorded, if they were.
pub const ARRAYS_ONLY: &str = "arrays_only";
/// And under these the end mark what the process used while it was recorded: seconds in the kernel, and page faults.
pub const RECORDED_KERNEL: &str = "recorded_kernel";
/// See [`RECORDED_KERNEL`].
pub const RECORDED_FAULTS: &str = "recorded_faults";

/// The large blocks allocated by one source line, or that it made large.
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
    is_array: bool,
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
    /// Number of arrays allocated.
    pub allocations: u64,
    /// Their bytes, growth by resizing included.
    pub allocated_bytes: u64,
    /// Largest number of bytes of arrays that were live at once.
    pub peak_in_use: u64,
    /// Bytes of arrays that are live at the end.
    pub in_use: u64,
    /// Number of blocks that are for no array.
    pub buffers: u64,
    /// Their bytes, growth by resizing included.
    pub buffer_bytes: u64,
    /// Number of events that were lost.
    pub lost: u64,
    /// Time of the last event in microseconds.
    pub micros: u64,
    /// Indexed by site number; index 0 is for blocks that no Python code requested.
    pub lines: Vec<LineSummary>,
    /// Number of arrays smaller than [`LARGE_SIZE`].
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
                EventKind::Allocate { block, size, zeroed, is_array, site } => {
                    summary.on_alloc(block, size, zeroed, is_array, site);
                }
                EventKind::Free { block } => summary.on_free(block),
                EventKind::Resize { block, size, site } => summary.on_resize(block, size, site),
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
    fn changed(&mut self, is_array: bool, old: u64, new: u64) {
        let grown = new.saturating_sub(old);
        if !is_array {
            self.buffer_bytes = self.buffer_bytes.saturating_add(grown);
            return;
        }
        self.allocated_bytes = self.allocated_bytes.saturating_add(grown); // of a damaged trace, any number
        self.in_use = self.in_use.saturating_add(new).saturating_sub(old);
        self.peak_in_use = self.peak_in_use.max(self.in_use);
    }

    /// The index of the line of a large block.
    fn line(&self, size: u64, site: u32) -> Option<usize> {
        (size >= LARGE_SIZE).then_some(if (site as usize) < self.lines.len() { site as usize } else { 0 })
    }

    /// Counts a large block for its line.
    fn count(&mut self, line: usize, size: u64) {
        self.lines[line].count += 1;
        self.lines[line].bytes = self.lines[line].bytes.saturating_add(size);
    }

    fn on_alloc(&mut self, number: u32, size: u64, zeroed: bool, is_array: bool, site: u32) {
        *(if is_array { &mut self.allocations } else { &mut self.buffers }) += 1;
        self.changed(is_array, 0, size);
        let taken = self.simulation.allocate(number as usize + 1, size, zeroed, is_array, self.micros);
        let line = self.line(size, site);
        if let Some(line) = line {
            self.count(line, size);
            self.lines[line].taken += taken;
        } else if is_array {
            self.small_blocks += 1;
            self.small_bytes = self.small_bytes.saturating_add(size);
        }
        let index = number as usize;
        self.blocks.resize(self.blocks.len().max(index + 1), LiveBlock::default());
        self.blocks[index] = LiveBlock { size, allocated_at: self.micros, is_array, line };
    }

    fn on_resize(&mut self, number: u32, size: u64, site: u32) {
        let LiveBlock { size: old, is_array, line: known, .. } = self.blocks[number as usize];
        let line = known.or_else(|| self.line(size, site));
        if let (None, Some(line)) = (known, line) {
            self.count(line, size);
        }
        self.blocks[number as usize].size = size;
        self.blocks[number as usize].line = line;
        self.changed(is_array, old, size);
        let taken = self.simulation.resize(number as usize + 1, old, size, self.micros);
        if let Some(line) = line {
            self.lines[line].taken += taken;
        }
    }

    fn on_free(&mut self, number: u32) {
        let block = std::mem::take(&mut self.blocks[number as usize]);
        self.changed(block.is_array, block.size, 0);
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
