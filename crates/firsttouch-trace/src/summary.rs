//! Attributes large blocks to source lines, with what they took fresh from the system, plainly and on a pool: see
//! [`firsttouch::gain`]. That assumes that all memory is used; the page faults that the run was seen to take bound it.

use crate::format::{Kind, LARGE_SIZE, MAGIC, MAX_TEXT, Metadata, Record, TraceError, VERSION};
use firsttouch::gain::{Seen, Simulation, Taken};
use firsttouch::ledger::Part;
use std::io::{BufReader, ErrorKind, Read};
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

#[derive(Clone, Copy, Debug)]
struct LiveBlock {
    /// Its number in the simulation.
    number: usize,
    size: u64,
    allocated_at: u64,
    is_array: bool,
    /// The index of its line, if it is a large block.
    line: Option<usize>,
}

/// The summary of a whole trace.
#[derive(Default)]
pub struct Summary {
    /// What describes the run.
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
    simulation: Simulation,
    numbers: usize,
    /// Live blocks by address, and those that are being resized by the address that they had.
    blocks: Part<LiveBlock>,
    resizes: Part<LiveBlock>,
}

impl Summary {
    /// Reads a whole trace; with `allow_truncated`, as much of it as there is. Any byte of it may be wrong.
    ///
    /// # Errors
    /// If the trace cannot be read, or is truncated and that is not allowed.
    pub fn new(source: impl Read, allow_truncated: bool) -> Result<Self, TraceError> {
        // Small, since a source may look for signals whenever it is read.
        let mut source = BufReader::with_capacity(4 << 10, source);
        let mut header = [0; 16];
        source.read_exact(&mut header).map_err(|error| failed(error, TraceError::NotATrace))?;
        let (magic, version) = header.split_at(MAGIC.len());
        let version = u64::from_le_bytes(version.try_into().unwrap_or_default());
        if magic != MAGIC {
            return Err(TraceError::NotATrace);
        }
        if version != VERSION {
            return Err(TraceError::Version(version));
        }
        let lines = vec![LineSummary::default()];
        let mut summary = Self { lines, simulation: Simulation::new(0), ..Self::default() };
        while !summary.complete {
            match read(&mut source, summary.events) {
                Ok((record, text)) => summary.on_record(record, &text)?,
                Err(TraceError::Truncated(_)) if allow_truncated => break,
                Err(error) => return Err(error),
            }
        }
        let in_use = summary.in_use;
        let live: Vec<usize> = summary.blocks.keys().copied().collect();
        live.into_iter().for_each(|address| summary.on_free(address)); // they live at the end
        summary.in_use = in_use;
        Ok(summary)
    }

    fn on_record(&mut self, record: Record, text: &str) -> Result<(), TraceError> {
        self.micros = self.micros.max(record.micros);
        let (address, old) = (record.address as usize, record.old as usize);
        match record.kind {
            Kind::Fact => {
                let (name, value) = text.split_once('\0').ok_or(TraceError::Corrupt)?;
                if name == RAISED_FOR {
                    self.simulation = Simulation::new(value.parse().unwrap_or_default());
                }
                self.metadata.push((name.to_owned(), value.to_owned()));
                return Ok(());
            }
            Kind::Site => {
                let (file, library) = text.split_once('\0').ok_or(TraceError::Corrupt)?;
                let (file, library, line) = (file.to_owned(), library.to_owned(), record.address as u32);
                self.lines.push(LineSummary { file, line, library, ..LineSummary::default() });
            }
            Kind::End => {
                (self.complete, self.lost) = (true, record.size);
                return Ok(());
            }
            Kind::Allocate => self.on_alloc(address, record),
            Kind::Free => self.on_free(address),
            Kind::Resize => {
                let leaves = self.blocks.remove(&address);
                self.resizes.extend(leaves.map(|block| (address, block)));
            }
            Kind::Resized => match self.resizes.remove(&old) {
                Some(block) if address == 0 => drop(self.blocks.insert(old, block)), // it failed
                Some(block) => self.on_resize(block, address, record),
                None if address != 0 && record.size >= LARGE_SIZE => self.on_alloc(address, record), // it was small, or is older
                None => {}
            },
        }
        self.events += 1;
        Ok(())
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

    /// The index of the line of a large block, for which the block is counted.
    fn count(&mut self, size: u64, site: u32) -> Option<usize> {
        let at = if (site as usize) < self.lines.len() { site as usize } else { 0 };
        let line = &mut self.lines[at];
        (line.count, line.bytes) = (line.count + 1, line.bytes.saturating_add(size));
        Some(at)
    }

    fn on_alloc(&mut self, address: usize, record: Record) {
        let Record { zeroed, is_array, site, size, .. } = record;
        self.on_free(address); // if the event of that was lost
        *(if is_array { &mut self.allocations } else { &mut self.buffers }) += 1;
        self.changed(is_array, 0, size);
        self.numbers += 1;
        let (number, now) = (self.numbers, self.micros);
        let taken = self.simulation.allocate(number, size, zeroed, is_array, now);
        let line = if size >= LARGE_SIZE { self.count(size, site) } else { None };
        if let Some(line) = line {
            self.lines[line].taken += taken;
        }
        self.blocks.insert(address, LiveBlock { number, size, allocated_at: now, is_array, line });
    }

    fn on_resize(&mut self, block: LiveBlock, address: usize, record: Record) {
        self.on_free(address); // if the event of that was lost
        self.changed(block.is_array, block.size, record.size);
        let now = self.micros;
        let taken = self.simulation.resize(block.number, block.size, record.size, now);
        let line =
            block.line.or_else(|| if record.size >= LARGE_SIZE { self.count(record.size, record.site) } else { None });
        if let Some(line) = line {
            self.lines[line].taken += taken;
        }
        self.blocks.insert(address, LiveBlock { size: record.size, line, ..block });
        if record.size < LARGE_SIZE {
            self.on_free(address); // the event of that will not be recorded
        }
    }

    fn on_free(&mut self, address: usize) {
        let Some(block) = self.blocks.remove(&address) else { return };
        let now = self.micros;
        self.changed(block.is_array, block.size, 0);
        self.simulation.free(block.number, block.size, now);
        if let Some(line) = block.line {
            let lived = now - block.allocated_at;
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

/// The next record, and its text.
fn read(source: &mut impl Read, events: u64) -> Result<(Record, String), TraceError> {
    let mut exactly = |bytes: &mut [u8]| source.read_exact(bytes).map_err(|e| failed(e, TraceError::Truncated(events)));
    let mut bytes = [0; Record::BYTES];
    exactly(&mut bytes)?;
    let record = Record::read(&bytes).ok_or(TraceError::Corrupt)?;
    let length = if matches!(record.kind, Kind::Site | Kind::Fact) { record.size } else { 0 };
    if length > MAX_TEXT as u64 {
        return Err(TraceError::Corrupt);
    }
    let mut text = vec![0; length as usize];
    exactly(&mut text)?;
    Ok((record, String::from_utf8_lossy(&text).into_owned()))
}

/// What an error of the source means, where the end of the file means `at_end`.
fn failed(error: std::io::Error, at_end: TraceError) -> TraceError {
    if error.kind() == ErrorKind::UnexpectedEof { at_end } else { TraceError::Io(error) }
}
