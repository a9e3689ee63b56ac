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

/// Returns the folders under which the cgroup that a line of /proc/self/cgroup names may be mounted, and its path, if the
/// memory controller can be there.
pub fn group(line: &str) -> Option<(&'static [&'static str], &str)> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, group) = (fields.next()?, fields.next()?);
    if controllers.is_empty() {
        Some((&["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], group))
    } else if controllers.split(',').any(|name| name == "memory") {
        Some((&["/sys/fs/cgroup/memory"], group))
    } else {
        None
    }
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
