//! What the kernel reports about this process.

use super::patience;
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

/// Waits until `happened`, at most for `patience`; how long that took.
pub fn within(patience: Duration, what: &str, mut happened: impl FnMut() -> bool) -> Duration {
    let patience = patience::at_least(patience);
    let began = Instant::now();
    while !happened() {
        assert!(began.elapsed() < patience, "not within {patience:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
    began.elapsed()
}

/// Checks that the statistics of `allocator` are as they should be. What the background purger moves at that moment may
/// be counted twice or not at all, so it is given some time.
pub fn settles(allocator: &dyn Allocator, right: impl Fn(&Stats) -> bool) {
    let patience = patience::at_least(Duration::from_secs(1));
    let began = Instant::now();
    loop {
        let stats = allocator.stats();
        if right(&stats) {
            return;
        }
        assert!(began.elapsed() < patience, "{stats:?}");
        std::thread::yield_now();
    }
}
