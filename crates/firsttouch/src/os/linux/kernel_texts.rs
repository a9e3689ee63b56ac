//! Parses lines of files in /proc. Nothing here allocates beyond what it returns, and any text is taken: a container or an
//! emulator may write what it likes.

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

/// Returns the folder under which the cgroup that a line of /proc/self/cgroup names is mounted, and its path, if the memory
/// controller can be there.
pub fn group(line: &str) -> Option<(&'static str, &str)> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, group) = (fields.next()?, fields.next()?);
    if controllers.is_empty() {
        Some(("/sys/fs/cgroup", group))
    } else if controllers.split(',').any(|name| name == "memory") {
        Some(("/sys/fs/cgroup/memory", group))
    } else {
        None
    }
}

/// Parses a line like `7f0000000000-7f0000001000 rw-p 00000000 00:00 0    /a file`: the addresses of a mapping, and whether it
/// is shared.
pub fn mapping(line: &str) -> Option<(Range<usize>, bool)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some((address(start)?..address(end)?, fields.next()?.as_bytes().get(3) == Some(&b's')))
}
