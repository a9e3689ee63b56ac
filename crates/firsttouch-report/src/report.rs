//! The report on a process at its end: what it used, what came from a pool, and whether that gained anything. The preloaded
//! library and the start-up hook of Python programs fill in what was counted; all words are here.
//!
//! The first line says what was gained, which is estimated from the counts of the pool and from those of the model of glibc. A
//! row for each subject follows, and remarks. The JSON has the counts, too.

use crate::gain::{FreshBytes, Gain, Price, Range, Taken, Verdict};
use crate::glibc::Plainly;
use crate::json;
use firsttouch::heap::malloc_trim::WORTH_A_TRIM;
use firsttouch::os::Usage;
use firsttouch::size::Bytes;
use firsttouch::{AllocError, Stats};
use std::fmt::Write;

/// All that a report says.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of the process.
    pub process: u32,
    /// Whether it is the process that was started, and not one that it started.
    pub main: bool,
    /// The number among the processes that MPI started.
    pub rank: Option<u32>,
    /// Its command line.
    pub command: Vec<String>,
    /// Python's version, in a program of Python's.
    pub python: Option<String>,
    /// NumPy's, if it was imported.
    pub numpy: Option<String>,
    /// Why nothing came from a pool.
    pub refused: Option<String>,
    /// What it used.
    pub used: Usage,
    /// Resident bytes now, and at the peak.
    pub resident: Option<(usize, usize)>,
    /// What the C library's heaps returned, and what is free there, in bytes.
    pub c_library: (usize, usize),
    /// The expression of the allocator; `None` for the process's own pool.
    pub allocator: Option<String>,
    /// Whether NumPy's arrays alone were served, and not all large blocks of the process.
    pub arrays_only: bool,
    /// The size of requests from which on they are.
    pub from: usize,
    /// What the pool did; `None` where nothing came from one.
    pub pool: Option<Stats>,
    /// What the process would have taken fresh without the pool, for the same requests: see [`crate::glibc`].
    pub plainly: Plainly,
    /// The last request that was refused, and the full reason.
    pub last_failure: Option<(AllocError, String)>,
    /// Python's packages that used memory of their own, which was not served: "torch", "jax", "pyarrow".
    pub elsewhere: Vec<String>,
}

/// Above this share of the allocated bytes, the report says how much was given back too early.
const WORTH_KEEPING: f64 = 0.05;

impl Report {
    /// The report for people, with a line on what was gained and then one for each subject; and for programs, as JSON.
    pub fn text_and_json(&self) -> (String, String) {
        let gain = self.gain();
        (self.text(gain), self.json(gain))
    }

    /// What was saved: at least, if glibc takes fresh what it takes in any case; at most, if it takes all that it may.
    fn gain(&self) -> Gain {
        let Some(pool) = self.pool.filter(|pool| knows_fresh(pool) && cfg!(not(windows))) else {
            return Gain::default();
        };
        let pooled = fresh(&pool);
        let most = self.taken_at_most(pooled);
        let cleared = self.plainly.cleared.min(pooled.bytes());
        if most.saved_faults() == 0 && cleared == 0 {
            return Gain::default();
        }
        let Some(price) = Price::measure() else { return Gain::default() };
        // Where glibc clears memory it has, a pool takes fresh pages. These cost nothing until they are touched, and the kernel's
        // time bounds how many were.
        let used = self.used.kernel / price.of(pooled).max(f64::MIN_POSITIVE);
        let unused = part(cleared, pooled.bytes()) * (1.0 - used).max(0.0);
        let most = Taken { pooled: most.pooled.times(1.0 - unused), cleared: -(cleared as f64), ..most };
        // Only what is used again is certain: huge pages, on which a pool serves more, may cost as much where memory is scattered.
        let least = Taken { plainly: self.plainly.mapped_again, ..Taken::default() };
        let saved = Range { low: price.saved(&least).low, high: price.saved(&most).high };
        Gain::of(most.saved_faults(), saved, |seconds| self.used.processor() + seconds.max(0.0))
    }

    /// What was taken, if all of it was used, as far as the page faults that the process took allow it.
    fn taken_at_most(&self, pooled: FreshBytes) -> Taken {
        let Plainly { mapped_first, .. } = self.plainly;
        let mapped_first = mapped_first.times(part(pooled.bytes(), mapped_first.bytes()));
        let plainly = Plainly { mapped_first, ..self.plainly }.all();
        Taken { plainly, pooled, cleared: 0.0 }.times(part(self.used.minor_faults, pooled.faults()))
    }

    fn text(&self, gain: Gain) -> String {
        let mut text = format!("firsttouch, process {}: {}\n", self.process, self.conclusion(gain));
        for (name, value) in self.rows(gain) {
            fold(&mut text, &format!("  {name:13}  "), &value);
        }
        for remark in self.remarks(gain) {
            fold(&mut text, "  ", &remark);
        }
        text
    }

    /// Whether anything was gained.
    fn conclusion(&self, gain: Gain) -> String {
        let Some(pool) = self.pool else {
            let never = self.refused.is_none() && self.numpy.is_none();
            return if never { "nothing gained, NumPy was never imported" } else { "not pooled" }.to_owned();
        };
        let (noun, none) = (if self.arrays_only { "array" } else { "block" }, pool.allocations == 0);
        match gain.verdict {
            _ if self.is_elsewhere() => "most of the work was done by child processes".to_owned(),
            _ if none && pool.failures > 0 => format!("nothing served, {} requests failed", count(pool.failures)),
            _ if none && self.allocator.is_some() => "no arrays counted by this allocator".to_owned(),
            _ if none => format!("nothing gained, no {noun}s of {} or more", Bytes(self.from)),
            _ if !knows_fresh(&pool) => "nothing known of a gain by this allocator".to_owned(),
            _ if cfg!(windows) => {
                "what was gained is not known: it is estimated for glibc, which Windows does not have".to_owned()
            }
            Verdict::Certain => format!("{} gained ({})", range(gain.seconds), shares(gain.share)),
            // A bound beyond all that the program took says nothing.
            Verdict::Perhaps if gain.share.high > 0.5 => "perhaps gained".to_owned(),
            Verdict::Perhaps => {
                format!("perhaps gained, at most {} ({})", seconds(gain.seconds.high), percent(gain.share.high))
            }
            Verdict::Nothing if pool.recycled_bytes > pool.allocated_bytes / 2 => {
                "nothing gained, the C library reuses this memory, too".to_owned()
            }
            Verdict::Nothing => format!("nothing gained, most {noun}s need fresh memory"),
        }
    }

    /// What is said of each subject.
    fn rows(&self, gain: Gain) -> Vec<(&'static str, String)> {
        let mut rows = vec![("time", self.time())];
        if let Some(allocator) = &self.allocator {
            rows.push(("allocator", allocator.clone()));
        }
        if let Some(pool) = &self.pool {
            rows.extend(self.rows_of_pool(pool));
        }
        if let Some((now, peak)) = self.resident {
            rows.push(("resident", format!("at most {}, {} at the end", Bytes(peak), Bytes(now))));
        }
        let (returned, free) = self.c_library;
        if returned.max(free) >= WORTH_A_TRIM {
            let (returned, free) = (Bytes(returned), Bytes(free));
            rows.push(("C library", format!("{returned} returned; {free} free in its heaps, between its blocks")));
        }
        let avoided = match (gain.verdict, gain.faults) {
            (Verdict::Nothing, _) | (_, 0) => String::new(),
            (_, faults) => format!("; at most {} avoided", count(faults)),
        };
        rows.push(("page faults", count(self.used.minor_faults) + &avoided));
        if let Some((_, reason)) = &self.last_failure {
            rows.push(("last failure", reason.lines().next().unwrap_or_default().to_owned()));
        }
        rows
    }

    fn time(&self) -> String {
        let (used, kernel) = (self.used.processor(), self.used.kernel);
        let share = if used > 0.0 { kernel / used } else { 0.0 };
        let (wall, used, kernel) = (seconds(self.used.wall), seconds(used), seconds(kernel));
        format!("{wall}; processor time {used}, {kernel} ({}) in the kernel", percent(share))
    }

    fn rows_of_pool(&self, pool: &Stats) -> Vec<(&'static str, String)> {
        let (blocks, memory) = match self.arrays_only {
            true => ("large arrays", "array memory"),
            false => ("large blocks", "block memory"),
        };
        if pool.allocations == 0 {
            let none = match self.allocator.is_some() && pool.failures == 0 {
                true => "none, or not counted by this allocator".to_owned(),
                false => format!("none of {} or more", Bytes(self.from)),
            };
            return vec![(blocks, none)];
        }
        let number = count(pool.allocations);
        if !knows_fresh(pool) {
            return vec![(blocks, format!("{number}; this allocator does not tell which memory was fresh"))];
        }
        let recycled = percent(pool.recycled as f64 / pool.allocations as f64);
        let fresh = fresh(pool);
        let on_huge = match fresh.huge {
            0 => String::new(),
            huge => format!(" ({} on huge pages)", percent(huge as f64 / fresh.bytes() as f64)),
        };
        let (fresh, reused) = (Bytes(fresh.bytes() as usize), Bytes(pool.recycled_bytes as usize));
        let mut rows = vec![
            (blocks, format!("{number}, {recycled} on recycled memory")),
            ("fresh memory", format!("at most {fresh}{on_huge}; {reused} reused")),
            (memory, format!("at most {} used, {} held", Bytes(pool.peak_in_use), Bytes(pool.peak_held))),
        ];
        if pool.refaulted_bytes as f64 > WORTH_KEEPING * pool.allocated_bytes as f64 {
            let keeps = if self.allocator.is_none() { "; decay=10 keeps it" } else { "" };
            let early = Bytes(pool.refaulted_bytes as usize);
            rows.push(("given back", format!("{early} too early (needed again){keeps}")));
        }
        rows
    }

    /// What the figures alone would leave to be guessed.
    fn remarks(&self, gain: Gain) -> Vec<String> {
        let mut said = Vec::new();
        if let Some(why) = &self.refused {
            said.push(format!("not pooled: {why}"));
        }
        for package in self.elsewhere.iter().filter(|_| self.pool.is_some()) {
            let (whose, condition) = match package.as_str() {
                "torch" => ("PyTorch's tensors", ", those in main memory"),
                "jax" => ("JAX's arrays", ", those in main memory"),
                _ => ("Arrow's buffers", " where ARROW_DEFAULT_MEMORY_POOL is system"),
            };
            said.push(format!("{whose} have memory of their own and were not served; --all serves them{condition}"));
        }
        if gain.verdict == Verdict::Perhaps && !self.is_elsewhere() {
            let python =
                if self.python.is_some() { "firsttouch advise estimates it from a plain run, and " } else { "" };
            said.push(format!("{python}firsttouch compare measures whether anything was gained"));
        }
        if self.is_elsewhere() {
            let used = seconds(self.used.children);
            said.push(format!(
                "child processes used {used} and are not in this report; --json with %p in the file name reports on each"
            ));
        }
        said
    }

    /// Whether child processes did most of the work, so that what this process gained says little.
    fn is_elsewhere(&self) -> bool {
        self.used.children > self.used.processor()
    }

    fn json(&self, gain: Gain) -> String {
        let used = &self.used;
        let seconds = |amount: f64| format!("{amount:.6}");
        let both = |range: Range| json::list([range.low, range.high].map(seconds));
        let text = |text: Option<&str>| json::optional(text.map(json::text));
        let texts = |texts: &[String]| json::list(texts.iter().map(json::text));
        let times = [("wall", used.wall), ("user", used.user), ("kernel", used.kernel)];
        let faults = [("minor", used.minor_faults), ("major", used.major_faults)];
        let resident = self.resident.unzip();
        let resident = [("now", resident.0), ("peak", resident.1)];
        let c_library = [("returned", self.c_library.0), ("free", self.c_library.1)];
        let pool = self.pool.map(|pool| {
            let figures = pool.figures().into_iter().chain([("small_limit", self.from as u64)]);
            json::object(figures.map(|(name, figure)| (name, figure.to_string())))
        });
        let failure = self.last_failure.as_ref().map(|(error, reason)| {
            let (asked, limit) = (error.asked.to_string(), json::text(error.limit_name()));
            json::object([("reason", json::text(reason)), ("asked", asked), ("limit", limit)])
        });
        let (faults_saved, seconds_saved, share) = (gain.faults.to_string(), both(gain.seconds), both(gain.share));
        let gained = [("faults", faults_saved), ("seconds", seconds_saved), ("share", share)];
        json::lines([
            ("process", self.process.to_string()),
            ("main_process", self.main.to_string()),
            ("rank", json::optional(self.rank)),
            ("command", texts(&self.command)),
            ("python", text(self.python.as_deref())),
            ("numpy", text(self.numpy.as_deref())),
            ("pooled", self.pool.is_some().to_string()),
            ("not_pooled_because", text(self.refused.as_deref())),
            ("seconds", json::object(times.map(|(name, amount)| (name, seconds(amount))))),
            ("children_seconds", seconds(used.children)),
            ("faults", json::object(faults.map(|(name, number)| (name, number.to_string())))),
            ("resident_bytes", json::object(resident.map(|(name, bytes)| (name, json::optional(bytes))))),
            ("c_library_bytes", json::object(c_library.map(|(name, bytes)| (name, bytes.to_string())))),
            ("allocator", text(self.allocator.as_deref())),
            ("pool", json::optional(pool)),
            ("last_failure", json::optional(failure)),
            ("gain", json::object(gained)),
            ("conclusion", json::text(self.conclusion(gain))),
            ("rows", json::object(self.rows(gain).iter().map(|(name, value)| (*name, json::text(value))))),
            ("remarks", texts(&self.remarks(gain))),
        ])
    }
}

/// What a pool took fresh.
fn fresh(pool: &Stats) -> FreshBytes {
    FreshBytes { base: pool.first_touched_small_bytes, huge: pool.first_touched_huge_bytes }
}

/// Whether an allocator tells fresh memory from recycled: custom ones do not.
fn knows_fresh(pool: &Stats) -> bool {
    fresh(pool).bytes() + pool.recycled_bytes > 0
}

/// Which part of `of` an amount is, at most all of it.
fn part(amount: u64, of: u64) -> f64 {
    (amount as f64 / (of as f64).max(1.0)).min(1.0)
}

/// A duration with three significant digits: `1.25 s`, `12.3 ms`.
fn seconds(amount: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];
    if amount <= 0.0 {
        return "0 s".to_owned();
    }
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| amount >= *unit).unwrap_or(UNITS[3]);
    let value = amount / unit;
    let decimals = if value >= 100.0 { 0 } else { 1 + usize::from(value < 10.0) };
    format!("{value:.decimals$} {name}")
}

/// From where to where: `12.0 to 30.0 ms`, or `900 ms to 1.20 s`.
fn range(amount: Range) -> String {
    let (least, most) = (seconds(amount.low), seconds(amount.high));
    match (least.split_once(' '), most.split_once(' ')) {
        (Some((figure, unit)), Some((_, same))) if unit == same => format!("{figure} to {most}"),
        _ => format!("{least} to {most}"),
    }
}

/// A range of shares, both ends with as many decimals.
fn shares(range: Range) -> String {
    let (low, high) = (100.0 * range.low, 100.0 * range.high);
    let decimals = usize::from(low < 10.0);
    format!("{low:.decimals$} to {high:.decimals$} %")
}

/// A share as a percentage, with one decimal below 10 % and above 90 %.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let is_whole = (10.0..=90.0).contains(&percent) || percent == 0.0 || percent > 99.95;
    format!("{percent:.*} %", usize::from(!is_whole))
}

/// Adds lines of at most the width of a terminal, broken between words and indented to the end of `head`.
fn fold(text: &mut String, head: &str, value: &str) {
    const WIDTH: usize = 80;
    let mut column = head.len();
    text.push_str(head);
    for (at, word) in value.split(' ').enumerate() {
        let length = word.chars().count();
        if at > 0 && column + 1 + length > WIDTH {
            let _ = write!(text, "\n{:indent$}", "", indent = head.len()); // a String takes everything
            column = head.len();
        } else if at > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}

/// A number with commas.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(again: u64, heap: u64, recycled: u64) -> Report {
        let [mapped_again, heap] = [again, heap].map(|base| FreshBytes { base, huge: 0 });
        let pool = Stats {
            allocations: 10,
            recycled: 9,
            allocated_bytes: 10 << 20,
            recycled_bytes: recycled,
            first_touched_small_bytes: 1 << 20,
            ..Stats::default()
        };
        let used = Usage { wall: 1.0, user: 0.8, kernel: 0.1, minor_faults: 12_345, ..Usage::default() };
        let plainly = Plainly { mapped_again, heap, ..Plainly::default() };
        Report { process: 7, used, pool: Some(pool), plainly, numpy: Some("2".into()), ..Report::default() }
    }

    fn first_line(report: &Report) -> String {
        report.text(report.gain()).lines().next().map(str::to_owned).unwrap_or_default()
    }

    #[cfg(not(windows))]
    #[test]
    fn the_first_line_says_no_more_than_is_known() {
        let none = report(0, 1 << 20, 9 << 20);
        assert_eq!(none.gain().faults, 0);
        assert_eq!(first_line(&none), "firsttouch, process 7: nothing gained, the C library reuses this memory, too");
        let perhaps = report(0, 1 << 28, 9 << 20);
        assert!(first_line(&perhaps).contains(": perhaps gained, at most "), "{perhaps:?}");
        assert!(first_line(&report(0, 1 << 40, 9 << 20)).ends_with(": perhaps gained"));
        let much = report(1 << 40, 0, 9 << 20);
        assert_eq!(much.gain().faults, ((1 << 40) - (1 << 20)) / firsttouch::os::page_size() as u64);
        let line = first_line(&much);
        assert!(line.ends_with(" %)") && line.contains(" s gained ("), "{line}");
        let text = much.text(much.gain());
        assert!(text.contains("  page faults    12,345; at most "), "{text}");
    }

    #[cfg(not(windows))]
    #[test]
    fn what_lies_on_huge_pages_is_perhaps_a_gain_though_none_of_it_was_reused() {
        let mut kept = report(0, 1 << 40, 0);
        kept.used.minor_faults = 1 << 20;
        let pool = kept.pool.as_mut().expect("made with one");
        (pool.first_touched_small_bytes, pool.first_touched_huge_bytes) = (0, 1 << 40);
        if firsttouch::os::huge_page_size().is_some() {
            assert_eq!(kept.gain().verdict, Verdict::Perhaps);
        }
        kept.used.minor_faults = 1; // as little was used of it
        assert_eq!(kept.gain().verdict, Verdict::Nothing);
    }

    #[cfg(not(windows))]
    #[test]
    fn zeros_that_nobody_uses_are_perhaps_a_gain() {
        let mut zeros = report(0, 0, 9 << 20);
        zeros.plainly.cleared = 1 << 40;
        assert_eq!(zeros.gain().verdict, Verdict::Nothing); // the pool cleared as much
        zeros.pool.as_mut().expect("made with one").first_touched_small_bytes = 1 << 40;
        assert_eq!(zeros.gain().verdict, Verdict::Perhaps);
        assert!(!zeros.text(zeros.gain()).contains("avoided"));
    }

    #[test]
    fn a_process_of_no_time_has_figures() {
        let huge = FreshBytes { base: 0, huge: (1 << 20) + 4096 }; // huge pages cost less than the pool's base pages
        let plainly = Plainly { mapped_again: huge, ..Plainly::default() };
        let report = Report { used: Usage::default(), plainly, ..report(0, 0, 9 << 20) };
        let json = report.json(report.gain());
        assert!(!json.contains("NaN") && !json.contains("inf"), "{json}");
    }

    #[test]
    fn requests_that_all_failed_are_no_arrays_that_were_not_counted() {
        let pool = Some(Stats { failures: 3, ..Stats::default() });
        let none = Report { pool, allocator: Some("limited(pool(), 1)".into()), ..report(0, 0, 0) };
        assert_eq!(first_line(&none), "firsttouch, process 7: nothing served, 3 requests failed");
    }

    #[test]
    fn lines_fit_a_terminal() {
        let used = Usage { children: 2.0, ..Usage::default() };
        let why = "a reason ".repeat(20) + &"x".repeat(90); // a word is not broken
        let refused = Some(why.clone());
        let report = Report { used, refused, allocator: Some("pool(decay=30) ".repeat(9)), ..Report::default() };
        let text = report.text(report.gain());
        assert_eq!(text.lines().filter(|line| line.len() > 80).count(), 1, "{text}");
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&why), "{text}");
        assert!(text.contains("\n                 pool(decay=30)"), "{text}");
    }
}
