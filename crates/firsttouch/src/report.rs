//! The report on a process at its end: what it used, what came from a pool, and whether that gained anything. The preloaded
//! library and the start-up hook of Python programs fill in the figures; all words are here.

use crate::gain::{Fresh, Price, Range, Taken, Verdict};
use crate::heap::c_library::WORTH;
use crate::os::Usage;
use crate::size::Bytes;
use crate::stats::Stats;
use std::fmt::Write;

/// Above this share of the allocated bytes, the report says how much was given back too early.
const WORTH_KEEPING: f64 = 0.05;

/// A request that was refused.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What was requested, what there was, and which limit spoke.
    pub reason: String,
    /// Bytes requested.
    pub asked: usize,
    /// The limit's name.
    pub limit: String,
}

/// Whose memory came from a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Served {
    /// NumPy's arrays.
    #[default]
    Arrays,
    /// All large blocks of the process.
    Blocks,
}

impl Served {
    fn noun(self) -> &'static str {
        if self == Self::Arrays { "array" } else { "block" }
    }
}

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
    /// What was served.
    pub served: Served,
    /// The size of requests from which on they are.
    pub from: usize,
    /// What the pool did; `None` where nothing came from one.
    pub pool: Option<Stats>,
    /// What the process would have taken fresh without the pool, for the same requests: see [`crate::glibc`].
    pub plainly: Fresh,
    /// The last request that was refused.
    pub last_failure: Option<Failure>,
    /// Python's packages that used memory of their own, which was not served: "torch", "jax", "pyarrow".
    pub elsewhere: Vec<String>,
}

/// What the pool saved: page faults, and seconds and shares of the processor time that there would have been.
#[derive(Clone, Copy, Debug, Default)]
struct Gain {
    faults: u64,
    seconds: Range,
    share: Range,
    verdict: Verdict,
}

impl Report {
    /// The report for people, with a line on what was gained and then one for each subject; and for programs, as JSON.
    pub fn text_and_json(&self) -> (String, String) {
        let gain = self.gain();
        (self.text(gain), self.json(gain))
    }

    fn json(&self, gain: Gain) -> String {
        let used = &self.used;
        let mut json = Object::default();
        json.put("process", self.process);
        json.put("main_process", self.main);
        json.put("rank", optional(self.rank));
        json.put("command", list(&self.command));
        json.put("python", quoted_or_null(self.python.as_deref()));
        json.put("numpy", quoted_or_null(self.numpy.as_deref()));
        json.put("pooled", self.pool.is_some());
        json.put("not_pooled_because", quoted_or_null(self.refused.as_deref()));
        let mut seconds = Object::default();
        for (name, value) in [("wall", used.wall), ("user", used.user), ("kernel", used.kernel)] {
            seconds.put(name, format!("{value:.6}"));
        }
        json.put("seconds", seconds.text());
        json.put("children_seconds", format!("{:.6}", used.children));
        let mut faults = Object::default();
        faults.put("minor", used.minor_faults);
        faults.put("major", used.major_faults);
        json.put("faults", faults.text());
        let mut resident = Object::default();
        resident.put("now", optional(self.resident.map(|(now, _)| now)));
        resident.put("peak", optional(self.resident.map(|(_, peak)| peak)));
        json.put("resident_bytes", resident.text());
        let mut c_library = Object::default();
        c_library.put("returned", self.c_library.0);
        c_library.put("free", self.c_library.1);
        json.put("c_library_bytes", c_library.text());
        json.put("allocator", quoted_or_null(self.allocator.as_deref()));
        let pool = self.pool.map(|pool| {
            let mut counts = Object::default();
            pool.figures().into_iter().for_each(|(name, count)| counts.put(name, count));
            counts.put("small_limit", self.from);
            counts.text()
        });
        json.put("pool", optional(pool));
        let failure = self.last_failure.as_ref().map(|failure| {
            let mut found = Object::default();
            found.put("reason", quoted(&failure.reason));
            found.put("asked", failure.asked);
            found.put("limit", quoted(&failure.limit));
            found.text()
        });
        json.put("last_failure", optional(failure));
        let mut gained = Object::default();
        gained.put("faults", gain.faults);
        gained.put("seconds", format!("[{:.6}, {:.6}]", gain.seconds.low, gain.seconds.high));
        gained.put("share", format!("[{:.6}, {:.6}]", gain.share.low, gain.share.high));
        json.put("gain", gained.text());
        json.put("conclusion", quoted(&self.conclusion(gain)));
        let mut rows = Object::default();
        self.rows(gain).iter().for_each(|(name, value)| rows.put(name, quoted(value)));
        json.put("rows", rows.text());
        json.put("remarks", list(&self.remarks()));
        json.lines()
    }

    fn text(&self, gain: Gain) -> String {
        let mut text = format!("firsttouch, process {}: {}\n", self.process, self.conclusion(gain));
        for (name, value) in self.rows(gain) {
            fold(&mut text, &format!("  {name:13}  "), &value);
        }
        for remark in self.remarks() {
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
        if returned.max(free) >= WORTH {
            rows.push((
                "C library",
                format!("{} returned; {} free in its heaps, between its blocks", Bytes(returned), Bytes(free)),
            ));
        }
        let avoided = if gain.faults == 0 { String::new() } else { format!("; about {} avoided", count(gain.faults)) };
        rows.push(("page faults", count(self.used.minor_faults) + &avoided));
        if let Some(failure) = &self.last_failure {
            rows.push(("last failure", failure.reason.lines().next().unwrap_or_default().to_owned()));
        }
        rows
    }

    /// Whether anything was gained.
    fn conclusion(&self, gain: Gain) -> String {
        let noun = self.served.noun();
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
            "what was gained is not known: glibc is simulated, which Windows does not have".to_owned()
        } else if gain.verdict == Verdict::Certain {
            format!("{} gained ({})", range(gain.seconds), shares(gain.share))
        } else if gain.verdict == Verdict::Perhaps {
            format!("perhaps gained, at most {} ({})", seconds(gain.seconds.high), percent(gain.share.high))
        } else if pool.recycled_bytes > pool.allocated_bytes / 2 {
            "nothing gained, the C library reuses this memory, too".to_owned()
        } else {
            format!("nothing gained, most {noun}s need fresh memory")
        }
    }

    fn describe_pool(&self, pool: &Stats, rows: &mut Vec<(&'static str, String)>) {
        let is_array = self.served == Served::Arrays;
        let (noun, name) = if is_array { ("large arrays", "array memory") } else { ("large blocks", "block memory") };
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
        let (fresh, reused) = (bytes(small + huge), bytes(pool.recycled_bytes));
        rows.push(("first touched", format!("at most {fresh}{on_huge}; {reused} reused")));
        rows.push((name, format!("at most {} used, {} held", Bytes(pool.peak_in_use), Bytes(pool.peak_held))));
        if pool.refaulted_bytes as f64 > WORTH_KEEPING * pool.allocated_bytes as f64 {
            let keeps = if self.allocator.is_none() { "; decay=10 keeps it" } else { "" };
            rows.push(("given back", format!("{} too early (needed again){keeps}", bytes(pool.refaulted_bytes))));
        }
    }

    /// What the figures alone would leave to be guessed.
    fn remarks(&self) -> Vec<String> {
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
        let pooled = Fresh { small: pool.first_touched_small_bytes, huge: pool.first_touched_huge_bytes };
        let faults = self.plainly.faults().saturating_sub(pooled.faults());
        if faults == 0 {
            return Gain::default();
        }
        let Some(price) = Price::measure() else { return Gain { faults, ..Gain::default() } };
        let saved = price.range(&Taken { plainly: self.plainly, pooled, cleared: 0.0 }, None);
        let plainly = self.used.user + self.used.kernel + saved.middle().max(0.0);
        let seconds = saved.gain(plainly);
        if plainly <= 0.0 {
            return Gain { faults, ..Gain::default() }; // a process that the kernel has counted no time of
        }
        Gain { faults, seconds, share: seconds.times(1.0 / plainly), verdict: seconds.verdict(plainly) }
    }
}

/// Whether an allocator tells fresh memory from recycled: custom ones do not.
fn knows_fresh(pool: &Stats) -> bool {
    pool.first_touched_small_bytes + pool.first_touched_huge_bytes + pool.recycled_bytes > 0
}

fn bytes(number: u64) -> Bytes {
    Bytes(number as usize)
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

/// Adds lines of at most so many columns as terminals have, broken between words and indented to the end of `head`.
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

/// The entries of a JSON object.
#[derive(Default)]
struct Object(Vec<String>);

impl Object {
    fn put(&mut self, name: &str, value: impl std::fmt::Display) {
        self.0.push(format!("\"{name}\": {value}"));
    }

    fn text(self) -> String {
        format!("{{{}}}", self.0.join(", "))
    }

    fn lines(self) -> String {
        format!("{{\n  {}\n}}\n", self.0.join(",\n  "))
    }
}

fn optional(value: Option<impl std::fmt::Display>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

fn quoted_or_null(text: Option<&str>) -> String {
    optional(text.map(quoted))
}

fn list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", control as u32);
            }
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(plainly: Fresh, recycled: u64) -> Report {
        let pool = Stats {
            allocations: 10,
            recycled: 9,
            allocated_bytes: 10 << 20,
            recycled_bytes: recycled,
            first_touched_small_bytes: 1 << 20,
            ..Stats::default()
        };
        let used = Usage { wall: 1.0, user: 0.8, kernel: 0.1, minor_faults: 12_345, ..Usage::default() };
        Report { process: 7, used, pool: Some(pool), plainly, numpy: Some("2".into()), ..Report::default() }
    }

    #[cfg(not(windows))]
    #[test]
    fn recycled_memory_is_no_gain_where_it_would_have_been_reused() {
        let none = report(Fresh { small: 1 << 20, huge: 0 }, 9 << 20);
        assert_eq!(none.gain().faults, 0);
        assert!(
            none.text(none.gain())
                .starts_with("firsttouch, process 7: nothing gained, the C library reuses this memory, too\n")
        );
        let much = report(Fresh { small: 1 << 40, huge: 0 }, 9 << 20);
        assert_eq!(much.gain().faults, ((1 << 40) - (1 << 20)) / crate::os::page_size() as u64);
        let text = much.text(much.gain());
        assert!(text.lines().next().is_some_and(|line| line.ends_with(" %)") && line.contains(" s gained (")));
        assert!(text.contains("  page faults    12,345; about "), "{text}");
    }

    #[cfg(not(windows))]
    #[test]
    fn what_lies_on_huge_pages_is_a_gain_though_none_of_it_was_reused() {
        let mut kept = report(Fresh { small: 1 << 40, huge: 0 }, 0);
        let pool = kept.pool.as_mut().expect("made with one");
        (pool.first_touched_small_bytes, pool.first_touched_huge_bytes) = (0, (1 << 40) + (1 << 30));
        if crate::os::huge_page_size().is_some() {
            assert_eq!(kept.gain().verdict, Verdict::Certain);
        }
    }

    #[test]
    fn a_process_of_no_time_has_figures() {
        let plainly = Fresh { small: 0, huge: (1 << 20) + 4096 }; // huge pages cost less than the pool's base pages
        let report = Report { used: Usage::default(), ..report(plainly, 9 << 20) };
        let json = report.json(report.gain());
        assert!(!json.contains("NaN") && !json.contains("inf"), "{json}");
    }

    #[test]
    fn requests_that_all_failed_are_no_arrays_that_were_not_counted() {
        let pool = Some(Stats { failures: 3, ..Stats::default() });
        let none = Report { pool, allocator: Some("limited(pool(), 1)".into()), ..report(Fresh::default(), 0) };
        assert!(none.text(none.gain()).starts_with("firsttouch, process 7: nothing served, 3 requests failed\n"));
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
