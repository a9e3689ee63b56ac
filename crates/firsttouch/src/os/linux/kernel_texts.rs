//! Parses lines of files in /proc. Nothing here allocates beyond what it returns, and any text is taken: a container or an
//! emulator may write what it likes.

use crate::os::types::{Errno, Mapping};
use std::ops::{ControlFlow, Range};

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

/// Takes a line of /proc/self/maps or smaps, in their order: a mapping that overlaps `range`, or a detail of the last one. Breaks
/// after the last line that matters.
///
/// # Errors
/// [`Errno::NO_MEMORY`] if there is no memory for it.
pub fn take_mapping(found: &mut Vec<Mapping>, range: &Range<usize>, line: &str) -> Result<ControlFlow<()>, Errno> {
    match (mapping(line), found.last_mut()) {
        (Some(mapping), _) if mapping.range.start >= range.end => return Ok(ControlFlow::Break(())),
        (Some(mapping), _) if mapping.range.end > range.start => {
            found.try_reserve(1).map_err(|_| Errno::NO_MEMORY)?;
            found.push(mapping);
        }
        (None, Some(last)) => detail(last, line),
        _ => {}
    }
    Ok(ControlFlow::Continue(()))
}

/// Parses a line like `7f0000000000-7f0000001000 rw-p 00000000 00:00 0    /a file`.
fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let range = address(start)?..address(end)?;
    let shared = fields.next()?.as_bytes().get(3) == Some(&b's');
    (range.start <= range.end).then_some(Mapping { range, shared, ..Mapping::default() })
}

/// Parses a line like `AnonHugePages:    4096 kB`.
fn detail(mapping: &mut Mapping, line: &str) {
    let Some((name, value)) = line.split_once(':') else { return };
    let bytes = || number(value).unwrap_or(0).saturating_mul(1 << 10);
    match name {
        "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => mapping.huge = mapping.huge.saturating_add(bytes()),
        "KernelPageSize" => mapping.page = bytes(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_details_of_the_mappings_of_a_range() {
        let text = "1000-2000 rw-p 0 00:00 0\nVmFlags: lo\n2000-3000 rw-p 0 00:00 0\nAnonHugePages:  4096 kB\n\
                    ShmemPmdMapped: 0 kB\nKernelPageSize: 4 kB\nVmFlags: rd lo mr\n3000-4000 rw-p 0 00:00 0";
        let mut found = Vec::new();
        assert!(text.lines().any(|line| take_mapping(&mut found, &(0x2000..0x3000), line).unwrap().is_break()));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].huge, found[0].page), (4 << 20, 4096));
    }
}
