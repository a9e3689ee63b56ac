//! Which lines of a program ask for large blocks, what the kernel did for them, and what a pool would have spared.

use super::event::{Detail, Kind};
use super::format::TraceError;
use super::pool_model::PoolModel;
use super::reader::Reader;
use firsttouch::adaptors::SMALL_LIMIT;
use firsttouch::os;
use std::io::Read;

/// Zeroed blocks of this size or more are faulted in anew by a pool, too.
const ZEROED_ANEW: u64 = 32 << 20;

/// What the kernel had to do: pages to make real, of the base size and huge ones, and memory to map.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Base pages.
    pub small: f64,
    /// Huge pages.
    pub huge: f64,
    /// Blocks of which nothing was there: they were mapped, and unmapped when they went.
    pub mapped: f64,
}

impl Faults {
    fn add(&mut self, other: Self, part: f64) {
        self.small += other.small * part;
        self.huge += other.huge * part;
        self.mapped += other.mapped * part;
    }
}

/// What one line asked for.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Its file; empty where no Python code asked.
    pub file: String,
    /// Its number.
    pub line: u32,
    /// Large blocks.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What their memory took.
    pub faults: Faults,
    /// The part of it that a pool would have spared.
    pub avoidable: Faults,
    /// Bytes that a pool would have to clear, as they are to read zero.
    pub cleared: f64,
    lifetimes: Lifetimes,
}

impl Line {
    /// Microseconds that half of its blocks lived at most; those that live to the end live to the end.
    pub fn median_lifetime(&self) -> u64 {
        self.lifetimes.median()
    }
}

/// Lifetimes counted in steps of an eighth of their size.
#[derive(Clone, Debug)]
struct Lifetimes([u64; 512]);

impl Default for Lifetimes {
    fn default() -> Self {
        Self([0; 512])
    }
}

impl Lifetimes {
    fn note(&mut self, micros: u64) {
        let step = if micros < 8 {
            micros
        } else {
            let exponent = u64::from(micros.ilog2());
            (exponent - 2) * 8 + (micros >> (exponent - 3)) - 8
        };
        self.0[step as usize] += 1;
    }

    fn median(&self) -> u64 {
        let half = self.0.iter().sum::<u64>().div_ceil(2);
        let mut count = 0;
        let step = self.0.iter().position(|&more| {
            count += more;
            count >= half
        });
        match step.unwrap_or(0) as u64 {
            small @ 0..8 => small,
            large => ((large % 8 + 8) * 2 + 1) << (large / 8 - 1) >> 1, // the middle of its step
        }
    }
}

/// A living block, with what is noted of a large one.
#[derive(Clone, Copy, Debug, Default)]
struct Living {
    size: u64,
    zeroed: bool,
    since: u64,
    /// The part of it that a pool would have had ready.
    recycled: f64,
    large: Option<Detail>,
}

/// What a whole trace comes to.
pub struct Summary {
    /// By the numbers of the trace's lines; the first is of blocks that no line asked for.
    pub lines: Vec<Line>,
    /// Blocks below [`LARGE`](super::LARGE).
    pub small_blocks: u64,
    /// Their bytes.
    pub small_bytes: u64,
    huge_from: u64,
    pool: PoolModel,
    living: Vec<Living>,
}

impl Summary {
    /// Reads a whole trace, or with `incomplete` as much as there is. Blocks of `huge_from` bytes or more are on huge
    /// pages, where they hold whole ones.
    ///
    /// # Errors
    /// Where it can't be read.
    pub fn new(source: impl Read, incomplete: bool, huge_from: u64) -> Result<Self, TraceError> {
        let mut reader = Reader::new(source)?;
        let mut summary = Self {
            lines: vec![Line::default()],
            small_blocks: 0,
            small_bytes: 0,
            huge_from,
            pool: PoolModel::default(),
            living: Vec::new(),
        };
        let mut now = 0;
        while let Some(event) = reader.next_of(incomplete)? {
            now = event.micros;
            match event.kind {
                Kind::Site { file, line } => summary.lines.push(Line { file, line, ..Line::default() }),
                Kind::Allocate { block, size, zeroed, detail } => {
                    let living = Living { size, zeroed, since: now, recycled: 0.0, large: detail };
                    summary.gave(block, living);
                }
                Kind::Free { block, resident } => summary.went(block, resident, now),
                Kind::Seen { block, resident } => summary.went(block, Some(resident), now),
                Kind::Resize { block, size } => summary.resized(block, size, now),
            }
        }
        for block in 0..summary.living.len() as u32 {
            summary.went(block, None, now); // what lives to the end and was not looked at
        }
        Ok(summary)
    }

    fn gave(&mut self, block: u32, mut living: Living) {
        if living.size >= SMALL_LIMIT as u64 {
            living.recycled = self.pool.take(living.size, living.since);
        }
        if let Some(detail) = living.large {
            let line = self.line(detail);
            line.count += 1;
            line.bytes += living.size;
        } else {
            self.small_blocks += 1;
            self.small_bytes += living.size;
        }
        let at = block as usize;
        self.living.resize(self.living.len().max(at + 1), Living::default());
        self.living[at] = living;
    }

    fn line(&mut self, detail: Detail) -> &mut Line {
        let at = if (detail.site as usize) < self.lines.len() { detail.site as usize } else { 0 };
        &mut self.lines[at]
    }

    fn resized(&mut self, block: u32, size: u64, now: u64) {
        let living = &mut self.living[block as usize];
        if living.size >= SMALL_LIMIT as u64 && size >= SMALL_LIMIT as u64 {
            self.pool.resize(living.size, size, now);
        }
        living.size = size;
    }

    /// A block has gone, with so many pages of it there. What is not known was all written.
    fn went(&mut self, block: u32, resident: Option<u64>, now: u64) {
        let living = std::mem::take(&mut self.living[block as usize]);
        if living.size >= SMALL_LIMIT as u64 {
            self.pool.give(living.size, now);
        }
        let Some(detail) = living.large else { return };
        let pages = living.size.div_ceil(os::page_size() as u64);
        let faulted = resident.unwrap_or(pages).min(pages).saturating_sub(detail.present);
        let mut faults = self.faults(living.size, pages, detail.place, faulted);
        faults.mapped = f64::from(u8::from(detail.present == 0));
        let anew = living.zeroed && living.size >= ZEROED_ANEW;
        let part = if anew { 0.0 } else { living.recycled };
        let line = self.line(detail);
        line.lifetimes.note(now - living.since);
        line.faults.add(faults, 1.0);
        line.avoidable.add(Faults { mapped: 0.0, ..faults }, part);
        line.avoidable.mapped += if anew { 0.0 } else { faults.mapped }; // a pool maps memory for many blocks at once
        if living.zeroed {
            line.cleared += part * (faulted * os::page_size() as u64) as f64;
        }
    }

    /// Pages as the kernel hands them out: whole huge pages inside a block that is large enough for them.
    fn faults(&self, size: u64, pages: u64, place: u64, faulted: u64) -> Faults {
        let huge = os::huge_page_size().map_or(0, |huge| (huge / os::page_size()) as u64);
        if size < self.huge_from || huge < 2 || pages == 0 {
            return Faults { small: faulted as f64, ..Faults::default() };
        }
        let edge = (huge - place % huge) % huge;
        let whole = pages.saturating_sub(edge) / huge;
        let on_huge = faulted as f64 * (whole * huge) as f64 / pages as f64;
        Faults { small: faulted as f64 - on_huge, huge: on_huge / huge as f64, ..Faults::default() }
    }
}
