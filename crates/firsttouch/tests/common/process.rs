//! What the kernel reports about this process.

use firsttouch::{Allocator, Stats};
use std::fs;
use std::time::{Duration, Instant};

fn statm(field: usize) -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    text.split_ascii_whitespace().nth(field).unwrap().parse::<usize>().unwrap() * firsttouch::os::page_size()
}

/// Bytes of address space.
pub fn address_space() -> usize {
    statm(0)
}

/// Bytes that are resident.
#[cfg(windows)]
pub fn resident() -> usize {
    firsttouch::os::resident()
}

/// Bytes that are resident.
#[cfg(not(windows))]
pub fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() << 10
}

/// Number of threads called `name`.
#[cfg(not(windows))]
pub fn threads_called(name: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|other| other.trim_end() == name).count()
}

/// How long is waited for what must happen: longer than it takes on any machine, however busy.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `happened`; how long that took.
pub fn within(what: &str, mut happened: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !happened() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
    began.elapsed()
}

/// Checks that the statistics of `allocator` are as they should be. What the background purger moves at that moment may
/// be counted twice or not at all, so it is given some time.
pub fn settles(allocator: &dyn Allocator, right: impl Fn(&Stats) -> bool) {
    let began = Instant::now();
    loop {
        let stats = allocator.stats();
        if right(&stats) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{stats:?}");
        std::thread::yield_now();
    }
}
