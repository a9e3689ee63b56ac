//! Parses lines of files in /proc. Nothing here allocates beyond what it returns, and any text is taken: a container or an
//! emulator may write what it likes.

use crate::os::types::SharedPart;
use std::ops::Range;

/// Returns the first number of a text.
pub fn number(text: &str) -> Option<usize> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns a value of /proc/meminfo in bytes.
pub fn kib(text: &str, name: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    number(line)?.checked_mul(1 << 10)
}

/// What a cgroup bounds.
#[derive(Clone, Copy)]
pub enum Controller {
    /// Memory in use.
    Memory,
    /// Time on processors.
    Processors,
}

impl Controller {
    /// Its name in version 1, and the folders under which it may be mounted there.
    fn version_1(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Memory => ("memory", &["/sys/fs/cgroup/memory"]),
            Self::Processors => ("cpu", &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]),
        }
    }
}

/// Returns the folders under which the cgroup that a line of /proc/self/cgroup names may be mounted, and its path, if a
/// controller can be there.
pub fn group(line: &str, controller: Controller) -> Option<(&'static [&'static str], &str)> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, group) = (fields.next()?, fields.next()?);
    let (own, folders) = controller.version_1();
    if controllers.is_empty() {
        Some((&["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], group))
    } else if controllers.split(',').any(|name| name == own) {
        Some((folders, group))
    } else {
        None
    }
}

/// Returns for how many processors a quota lasts: `150000 100000` is 1.5 of them, and `max` or -1 no quota.
pub fn quota(microseconds: &str, period: &str) -> Option<f64> {
    let [microseconds, period] = [microseconds, period].map(|text| number(text).filter(|&number| number > 0));
    Some(microseconds? as f64 / period? as f64)
}

/// Returns the part of a range in the mapping that a line like `7f00-7f80 rw-s 00001000 00:05 1234 NAME` describes, if
/// that is shared.
pub fn shared_part(line: &str, range: &Range<usize>) -> Option<SharedPart> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let [from, to] = [from, to].map(|text| usize::from_str_radix(text, 16).ok());
    let (from, start, end) = (from?, from?.max(range.start), to?.min(range.end));
    if start >= end || fields.next()?.as_bytes().get(3) != Some(&b's') {
        return None;
    }
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let file = format!("{} {}", fields.next()?, fields.next()?);
    let byte = |address: usize| offset.checked_add((address - from) as u64);
    Some(SharedPart { file, bytes: byte(start)?..byte(end)? })
}
