//! What a pool gains, in three steps: which bytes a program takes fresh from the system, plainly and on a pool ([`Taken`]); what
//! they cost on this machine ([`Price`]); and what the difference is worth to the program ([`Gain`]).
//!
//! Of a process that a pool serves the bytes on the pool are counted, and the plain ones lie between two bounds (`glibc.rs`). Of
//! one that is traced the plain ones are seen, and those on a pool simulated (the crate `firsttouch-trace`).

#![allow(unsafe_code)] // Safety: memory that is mapped, touched and unmapped in one function.

use firsttouch::adaptors::NUMPYS_HUGE;
use firsttouch::os;
use std::hint::black_box;
use std::ops::{Add, AddAssign};
use std::ptr::with_exposed_provenance_mut;
use std::time::{Duration, Instant};

/// Bytes that were taken fresh from the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct FreshBytes {
    /// On base pages.
    pub base: u64,
    /// On huge pages.
    pub huge: u64,
}

impl FreshBytes {
    /// `fresh` bytes of a block of `size`. For a large array NumPy asks for huge pages; as the block begins anywhere, its two
    /// ends, which do not cover a huge page, have the size of one in the mean and come on base pages.
    pub fn of(fresh: usize, size: usize, is_array: bool) -> Self {
        let page = os::available_huge_page_size().filter(|_| is_array && size >= NUMPYS_HUGE);
        let ends = page.map_or(size, |page| page.min(size));
        let base = (fresh as u128 * ends as u128 / size.max(1) as u128) as u64;
        Self { base, huge: fresh as u64 - base }
    }

    /// What was counted since.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self { base: self.base.saturating_sub(before.base), huge: self.huge.saturating_sub(before.huge) }
    }

    /// A part of it.
    #[must_use]
    pub fn times(self, part: f64) -> Self {
        Self { base: (part * self.base as f64) as u64, huge: (part * self.huge as f64) as u64 }
    }

    /// All of it.
    pub fn bytes(self) -> u64 {
        self.base + self.huge
    }

    /// The page faults that they take.
    pub fn faults(self) -> u64 {
        self.base / os::page_size() as u64 + self.huge / os::huge_page_size().unwrap_or(2 << 20) as u64
    }
}

impl Add for FreshBytes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { base: self.base + other.base, huge: self.huge + other.huge }
    }
}

/// What the same blocks take both ways.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    /// What glibc takes fresh for them.
    pub plainly: FreshBytes,
    /// What a pool takes fresh.
    pub pooled: FreshBytes,
    /// Bytes that a pool has to clear, less those that glibc has to.
    pub cleared: f64,
}

impl Taken {
    /// The page faults that a pool saves.
    pub fn saved_faults(&self) -> u64 {
        self.plainly.faults().saturating_sub(self.pooled.faults())
    }

    /// A part of it.
    #[must_use]
    pub fn times(self, part: f64) -> Self {
        Self { plainly: self.plainly.times(part), pooled: self.pooled.times(part), cleared: part * self.cleared }
    }
}

impl AddAssign for Taken {
    fn add_assign(&mut self, other: Self) {
        self.plainly = self.plainly + other.plainly;
        self.pooled = self.pooled + other.pooled;
        self.cleared += other.cleared;
    }
}

/// What base pages cost a program, as a multiple of what [`Price::measure`] finds. Both ranges were tuned on 41 programs: see
/// docs/notes/076.
const BASE: Range = Range { low: 0.75, high: 1.5 };
/// What huge pages, and clearing, cost a program as a multiple of what [`Price::measure`] finds, which has them in the processor's
/// caches; but no more than base pages.
const COLD: Range = Range { low: 3.0, high: 7.0 };
/// A program saves hardly more than this part of its time in the kernel, and, as some systems count that in ticks, of all its time.
const OF_KERNEL: f64 = 1.25;
const OF_ALL: f64 = 0.05;
/// Larger huge pages are not filled to see what they cost: they are taken to cost what base pages do.
const LARGEST: usize = 32 << 20;

/// Between two bounds: seconds of processor time that are saved, shares of it, or a factor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    /// At least; less than zero for a loss.
    pub low: f64,
    /// At most.
    pub high: f64,
}

impl Range {
    /// The middle.
    pub fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    /// The range of both bounds times `amount`, which may be less than zero.
    fn times(self, amount: f64) -> Self {
        let (one, other) = (self.low * amount, self.high * amount);
        Self { low: one.min(other), high: one.max(other) }
    }
}

/// What a byte costs on this machine, in seconds. All estimates of what memory costs use it.
#[derive(Clone, Copy, Debug)]
pub struct Price {
    /// Mapping, first writing and unmapping it, on base pages.
    pub base: f64,
    /// Mapping, first writing and unmapping it, on huge pages.
    pub huge: f64,
    /// Writing it again.
    pub clear: f64,
}

impl Price {
    /// Fills a little fresh memory a few times, in some milliseconds; `None` if there is none. The fastest round counts, as
    /// others waited for other programs, or for a hypervisor that backs memory for the first time.
    pub fn measure() -> Option<Self> {
        const ROUNDS: usize = 3;
        const PAGES: usize = 256;
        let size = PAGES * os::page_size();
        let huge_page = os::huge_page_size().filter(|&page| page <= LARGEST);
        let rounds = |size, huge_page| (0..ROUNDS).map(|_| fill(size, huge_page)).collect::<Option<Vec<_>>>();
        let (base, clear) = fastest(&rounds(size, None)?);
        let base = base / size as f64;
        let huge = match huge_page {
            Some(page) => base.min(fastest(&rounds(page, Some(page))?).0 / page as f64),
            None => base,
        };
        Some(Self { base, huge, clear: clear / size as f64 })
    }

    /// Lower prices, if by these a program would save more than it can: it used `kernel` seconds in the kernel and `all` seconds
    /// of processor time. (Other programs may have run while the prices were measured.)
    #[must_use]
    pub fn within(self, kernel: f64, all: f64, taken: &Taken) -> Self {
        let most = OF_KERNEL * kernel + OF_ALL * all;
        let part = (most / self.saved(taken).high.max(f64::MIN_POSITIVE)).min(1.0);
        Self { base: part * self.base, huge: part * self.huge, clear: part * self.clear }
    }

    /// The seconds that the system takes for fresh memory, in a program whose memory the processor's caches hold.
    pub fn of(&self, fresh: FreshBytes) -> f64 {
        fresh.base as f64 * self.base + fresh.huge as f64 * self.huge
    }

    /// The seconds by which a program takes more plainly than on a pool; less than zero where it takes less.
    pub fn saved(&self, taken: &Taken) -> Range {
        let Taken { plainly, pooled, cleared } = *taken;
        let cold = |hot: f64| Range { low: self.base.min(COLD.low * hot), high: self.base.min(COLD.high * hot) };
        let base = |fresh: FreshBytes| self.base * fresh.base as f64;
        let huge = |fresh: FreshBytes| cold(self.huge).times(fresh.huge as f64);
        let cleared = cold(self.clear).times(cleared);
        let saved_beside = |pooled: FreshBytes| {
            let (base, more, less) = (BASE.times(base(plainly) - base(pooled)), huge(plainly), huge(pooled));
            let low = base.low + more.low - less.high - cleared.high;
            Range { low, high: base.high + more.high - less.low - cleared.low }
        };
        // Where memory is scattered, huge pages cost as much as base pages.
        let unsure = pooled.huge.saturating_sub(plainly.huge);
        let scattered = FreshBytes { base: pooled.base + unsure, huge: pooled.huge - unsure };
        Range { low: saved_beside(scattered).low, high: saved_beside(pooled).high }
    }
}

/// The seconds by which fresh memory is slower than memory that is there, and those of the latter, from rounds of [`fill`]: of
/// each the fastest, as a round that was interrupted on memory that is there would make fresh memory cost nothing.
fn fastest(rounds: &[(Duration, Duration)]) -> (f64, f64) {
    let least = |of: fn(&(Duration, Duration)) -> Duration| rounds.iter().map(of).min().unwrap_or_default();
    let (fresh, warm) = (least(|round| round.0), least(|round| round.1));
    (fresh.saturating_sub(warm).as_secs_f64(), warm.as_secs_f64())
}

/// How long it takes to write to fresh memory, on a huge page of that size if one is given, and how long to write again.
fn fill(size: usize, huge_page: Option<usize>) -> Option<(Duration, Duration)> {
    let begin = Instant::now();
    let start = os::map_aligned(size, huge_page.unwrap_or(os::page_size()), None).ok()?;
    match huge_page {
        Some(_) => drop(os::advise_huge(start, size)), // where there are none, they cost what base pages cost
        None => os::unadvise_huge(start, size),
    }
    // SAFETY: within the mapping, which nobody else knows.
    let write =
        |value| unsafe { with_exposed_provenance_mut::<u8>(black_box(start)).write_bytes(black_box(value), size) };
    write(1);
    let filled = Instant::now();
    write(2);
    let again = Instant::now();
    // SAFETY: mapped above.
    let _ = unsafe { os::unmap(start, size) };
    Some(((filled - begin) + again.elapsed(), again - filled))
}

/// Below this share of the processor time there is nothing to gain.
const NOTHING: f64 = 0.02;
/// The seconds that a pool takes itself at most: it has to be loaded, and to see NumPy's import.
const START: f64 = 0.012;
/// The share of their processor time by which two equal runs differ.
const NOISE: f64 = 0.015;

/// What a pool saves a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gain {
    /// Page faults.
    pub faults: u64,
    /// Seconds of processor time.
    pub seconds: Range,
    /// Which part of the processor time they are that the program takes plainly.
    pub share: Range,
    /// What they are worth.
    pub verdict: Verdict,
}

/// What a gain is worth to a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Too little to be measured.
    #[default]
    Nothing,
    /// Perhaps nothing.
    Perhaps,
    /// Something.
    Certain,
}

impl Verdict {
    /// In a word, for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Perhaps => "perhaps",
            Self::Certain => "certain",
        }
    }
}

impl Gain {
    /// The gain of a program in which a pool saves `faults` page faults, and between two bounds of seconds. `plainly(seconds)` is
    /// the processor time that the program takes without a pool if that saves `seconds`. What a pool takes itself is subtracted,
    /// and each bound is widened by what equal runs differ by.
    pub fn of(faults: u64, saved: Range, plainly: impl Fn(f64) -> f64) -> Self {
        let all = plainly(saved.middle());
        if plainly(saved.low) <= 0.0 {
            return Self { faults, ..Self::default() }; // a process that the kernel has counted no time of
        }
        let bound = |seconds: f64| seconds.min(plainly(seconds));
        let (low, high) = (bound(saved.low - START - NOISE * all), bound(saved.high + NOISE * all));
        let seconds = Range { low, high };
        let verdict = match saved.middle() {
            little if little < NOTHING * all => Verdict::Nothing,
            _ if low > 0.0 => Verdict::Certain,
            _ => Verdict::Perhaps,
        };
        Self { faults, seconds, share: Range { low: low / plainly(low), high: high / plainly(high) }, verdict }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_round_makes_fresh_memory_neither_free_nor_dear() {
        let rounds = [(300, 100), (310, 4000), (9000, 110)]
            .map(|(fresh, warm)| (Duration::from_micros(fresh), Duration::from_micros(warm)));
        assert_eq!(fastest(&rounds), (0.0002, 0.0001));
    }

    #[test]
    fn what_is_certain_is_saved_and_no_more_than_the_time_in_the_kernel() {
        let price = Price { base: 4e-10, huge: 2e-11, clear: 1e-11 };
        let (base, huge) = (FreshBytes { base: 1 << 30, huge: 0 }, FreshBytes { base: 0, huge: 1 << 30 });
        let taken = |plainly, pooled| Taken { plainly, pooled, cleared: 0.0 };
        let reused = taken(base, FreshBytes::default());
        assert!(price.saved(&reused).low > 0.3 && price.saved(&reused).high < 0.7);
        let kept = price.saved(&taken(base, huge)); // which may cost as much on huge pages
        assert!(kept.low == 0.0 && kept.high > 0.3, "{kept:?}");
        let within = price.within(0.2, 1.0, &reused).saved(&reused);
        assert!((within.high - 0.3).abs() < 1e-9, "{within:?}");
        assert_eq!(price.within(0.9, 1.0, &reused).saved(&reused), price.saved(&reused));
    }

    #[test]
    fn no_byte_is_lost_or_added_by_rounding() {
        let bytes = (1 << 53) + 3; // rounded up as a float
        assert_eq!(FreshBytes::of(bytes, bytes, false).bytes(), bytes as u64);
        assert_eq!(FreshBytes::of(bytes, bytes, true).bytes(), bytes as u64);
    }
}
