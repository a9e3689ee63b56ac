//! The report on a process at its end: what it used, what came from a pool, and whether that gained anything. The preloaded
//! library and the start-up hook of Python programs fill in the figures; all words are here.

use crate::gain::{FreshBytes, Gain, Price, Range, Taken, Verdict};
use crate::glibc::Plainly;
use crate::json;
use firsttouch::heap::malloc_trim::WORTH_A_TRIM;
use firsttouch::os::Usage;
use firsttouch::size::Bytes;
use firsttouch::{AllocError, Stats};
use std::fmt::Write;

/// Above this share of the allocated bytes, the report says how much was given back too early.
const WORTH_KEEPING: f64 = 0.05;

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

impl Report {
    /// The report for people, with a line on what was gained and then one for each subject; and for programs, as JSON.
    pub fn text_and_json(&self) -> (String, String) {
        let gain = self.gain();
        (self.text(gain), self.json(gain))
    }

    fn json(&self, gain: Gain) -> String {
        let used = &self.used;
        let seconds = |amount: f64| format!("{amount:.6}");
        let both = |range: Range| json::list([range.low, range.high].map(seconds));
        let text = |text: Option<&str>| json::optional(text.map(json::text));
        let texts = |texts: &[String]| json::list(texts.iter().map(json::text));
        let pool = self.pool.map(|pool| {
            let figures = pool.figures().into_iter().chain([("small_limit", self.from as u64)]);
            json::object(figures.map(|(name, figure)| (name, figure.to_string())))
        });
        let failure = self.last_failure.as_ref().map(|(error, reason)| {
            let (asked, limit) = (error.asked.to_string(), json::text(error.limit_name()));
            json::object([("reason", json::text(reason)), ("asked", asked), ("limit", limit)])
        });
        let (now, peak) = self.resident.unzip();
        let (returned, free) = self.c_library;
        json::lines([
            ("process", self.process.to_string()),
            ("main_process", self.main.to_string()),
            ("rank", json::optional(self.rank)),
            ("command", texts(&self.command)),
            ("python", text(self.python.as_deref())),
            ("numpy", text(self.numpy.as_deref())),
            ("pooled", self.pool.is_some().to_string()),
            ("not_pooled_because", text(self.refused.as_deref())),
            (
                "seconds",
                json::object([
                    ("wall", seconds(used.wall)),
                    ("user", seconds(used.user)),
                    ("kernel", seconds(used.kernel)),
                ]),
            ),
            ("children_seconds", seconds(used.children)),
            (
                "faults",
                json::object([("minor", used.minor_faults.to_string()), ("major", used.major_faults.to_string())]),
            ),
            ("resident_bytes", json::object([("now", json::optional(now)), ("peak", json::optional(peak))])),
            ("c_library_bytes", json::object([("returned", returned.to_string()), ("free", free.to_string())])),
            ("allocator", text(self.allocator.as_deref())),
            ("pool", json::optional(pool)),
            ("last_failure", json::optional(failure)),
            (
                "gain",
                json::object([
                    ("faults", gain.faults.to_string()),
                    ("seconds", both(gain.seconds)),
                    ("share", both(gain.share)),
                ]),
            ),
            ("conclusion", json::text(self.conclusion(gain))),
            ("rows", json::object(self.rows(gain).iter().map(|(name, value)| (*name, json::text(value))))),
            ("remarks", texts(&self.remarks(gain))),
        ])
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

    /// What is said of each subject.
    fn rows(&self, gain: Gain) -> Vec<(&'static str, String)> {
        let mut rows = vec![("time", self.time())];
        if let Some(allocator) = &self.allocator {
            rows.push(("allocator", allocator.clone()));
        }
        if let Some(pool) = &self.pool {
            self.describe_pool(pool, &mut rows);
        }
        if let Some((now, peak)) = self.resident {
            rows.push(("resident", format!("at most {}, {} at the end", Bytes(peak), Bytes(now))));
        }
        let (returned, free) = self.c_library;
        if returned.max(free) >= WORTH_A_TRIM {
            rows.push((
                "C library",
                format!("{} returned; {} free in its heaps, between its blocks", Bytes(returned), Bytes(free)),
            ));
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

    /// Whether anything was gained.
    fn conclusion(&self, gain: Gain) -> String {
        let noun = if self.arrays_only { "array" } else { "block" };
        let Some(pool) = self.pool else {
            let never = self.refused.is_none() && self.numpy.is_none();
            return if never { "nothing gained, NumPy was never imported" } else { "not pooled" }.to_owned();
        };
        if self.is_elsewhere() {
            "most of the work was done by child processes".to_owned()
        } else if pool.allocations == 0 && pool.failures > 0 {
            format!("nothing served, {} requests failed", count(pool.failures))
        } else if pool.allocations == 0 && self.allocator.is_some() {
            "no arrays counted by this allocator".to_owned()
        } else if pool.allocations == 0 {
            format!("nothing gained, no {noun}s of {} or more", Bytes(self.from))
        } else if !knows_fresh(&pool) {
            "nothing known of a gain by this allocator".to_owned()
        } else if cfg!(windows) {
            "what was gained is not known: it is estimated for glibc, which Windows does not have".to_owned()
        } else if gain.verdict == Verdict::Certain {
            format!("{} gained ({})", range(gain.seconds), shares(gain.share))
        } else if gain.verdict == Verdict::Perhaps && gain.share.high > 0.5 {
            "perhaps gained".to_owned() // a bound beyond all that the program took says nothing
        } else if gain.verdict == Verdict::Perhaps {
            format!("perhaps gained, at most {} ({})", seconds(gain.seconds.high), percent(gain.share.high))
        } else if pool.recycled_bytes > pool.allocated_bytes / 2 {
            "nothing gained, the C library reuses this memory, too".to_owned()
        } else {
            format!("nothing gained, most {noun}s need fresh memory")
        }
    }

    fn describe_pool(&self, pool: &Stats, rows: &mut Vec<(&'static str, String)>) {
        let (noun, name) = match self.arrays_only {
            true => ("large arrays", "array memory"),
            false => ("large blocks", "block memory"),
        };
        if pool.allocations == 0 {
            let none = format!("none of {} or more", Bytes(self.from));
            rows.push(match self.allocator.is_some() && pool.failures == 0 {
                true => (noun, "none, or not counted by this allocator".to_owned()),
                false => (noun, none),
            });
            return;
        }
        if !knows_fresh(pool) {
            let what = "this allocator does not tell which memory was fresh";
            rows.push((noun, format!("{}; {what}", count(pool.allocations))));
            return;
        }
        let recycled = percent(pool.recycled as f64 / pool.allocations as f64);
        rows.push((noun, format!("{}, {recycled} on recycled memory", count(pool.allocations))));
        let (small, huge) = (pool.first_touched_small_bytes, pool.first_touched_huge_bytes);
        let on_huge = match huge {
            0 => String::new(),
            huge => format!(" ({} on huge pages)", percent(huge as f64 / (small + huge) as f64)),
        };
        let (fresh, reused) = (Bytes((small + huge) as usize), Bytes(pool.recycled_bytes as usize));
        rows.push(("fresh memory", format!("at most {fresh}{on_huge}; {reused} reused")));
        rows.push((name, format!("at most {} used, {} held", Bytes(pool.peak_in_use), Bytes(pool.peak_held))));
        if pool.refaulted_bytes as f64 > WORTH_KEEPING * pool.allocated_bytes as f64 {
            let keeps = if self.allocator.is_none() { "; decay=10 keeps it" } else { "" };
            rows.push((
                "given back",
                format!("{} too early (needed again){keeps}", Bytes(pool.refaulted_bytes as usize)),
            ));
        }
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
        self.used.children > self.used.user + self.used.kernel
    }

    fn time(&self) -> String {
        let used = self.used.user + self.used.kernel;
        let share = if used > 0.0 { self.used.kernel / used } else { 0.0 };
        let (wall, all, kernel) = (seconds(self.used.wall), seconds(used), seconds(self.used.kernel));
        format!("{wall}; processor time {all}, {kernel} ({}) in the kernel", percent(share))
    }

    fn gain(&self) -> Gain {
        let Some(pool) = self.pool.filter(|pool| knows_fresh(pool) && cfg!(not(windows))) else {
            return Gain::default();
        };
        let Plainly { mapped_again, mapped_first, cleared, .. } = self.plainly;
        let pooled = FreshBytes { small: pool.first_touched_small_bytes, huge: pool.first_touched_huge_bytes };
        let part = |part: u64, of: u64| (part as f64 / (of as f64).max(1.0)).min(1.0);
        let mapped_first = mapped_first.times(part(pooled.bytes(), mapped_first.bytes()));
        let plainly = Plainly { mapped_first, ..self.plainly }.all();
        // All memory is taken to be used, as far as the page faults that the process took allow it.
        let touched = part(self.used.minor_faults, pooled.faults());
        let most = Taken { plainly, pooled, cleared: 0.0 }.times(touched);
        let cleared = cleared.min(pooled.bytes());
        if most.saved_faults() == 0 && cleared == 0 {
            return Gain::default();
        }
        let Some(price) = Price::measure() else { return Gain::default() };
        // What glibc clears, a pool takes fresh, of which only that costs which is used: no more than the time in the kernel.
        let used = self.used.kernel / price.of(pooled).max(f64::MIN_POSITIVE);
        let unused = part(cleared, pooled.bytes()) * (1.0 - used).max(0.0);
        let most = Taken { pooled: most.pooled.times(1.0 - unused), cleared: -(cleared as f64), ..most };
        // Only what is used again is certain: huge pages, on which a pool serves more, may cost as much where memory is scattered.
        let least = Taken { plainly: mapped_again, ..Taken::default() };
        let saved = Range { low: price.saved(&least).low, high: price.saved(&most).high };
        let used = self.used.user + self.used.kernel;
        Gain::of(most.saved_faults(), saved, |seconds| used + seconds.max(0.0))
    }
}

/// Whether an allocator tells fresh memory from recycled: custom ones do not.
fn knows_fresh(pool: &Stats) -> bool {
    pool.first_touched_small_bytes + pool.first_touched_huge_bytes + pool.recycled_bytes > 0
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
        let [mapped_again, heap] = [again, heap].map(|small| FreshBytes { small, huge: 0 });
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
    #[cfg_attr(miri, ignore = "pages have no price there")]
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
    #[cfg_attr(miri, ignore = "pages have no price there")]
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
        let huge = FreshBytes { small: 0, huge: (1 << 20) + 4096 }; // huge pages cost less than the pool's base pages
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
