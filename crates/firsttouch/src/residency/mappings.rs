//! What the kernel tells of whole mappings: locks, huge pages, files.

use crate::os::{Errno, MappingText, mapping_lines};
use std::ops::{ControlFlow, Range};

/// One mapping, as /proc/self/maps and smaps know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Where it lies.
    pub range: Range<usize>,
    /// Writes go to the file, or to memory that others share.
    pub writes_through: bool,
    /// The file's name, if there is one.
    pub path: String,
    /// The file's number.
    pub inode: u64,
    /// Bytes mapped by huge pages of the transparent kind. Only in the long text.
    pub huge: usize,
    /// Bytes of its pages: more than a base page's in hugetlbfs. Only in the long text.
    pub page: usize,
    /// Whether it is locked. Only in the long text.
    pub locked: bool,
}

/// The mappings that overlap `range`, in order.
pub fn mappings(text: MappingText, range: &Range<usize>) -> Result<Vec<Mapping>, Errno> {
    let mut found: Vec<Mapping> = Vec::new();
    let mut inside = false;
    let mut no_memory = false;
    mapping_lines(text, &mut |line| {
        if let Some(head) = head(line) {
            if head.range.start >= range.end {
                return ControlFlow::Break(());
            }
            inside = head.range.end > range.start;
            if inside {
                if found.try_reserve(1).is_err() {
                    no_memory = true;
                    return ControlFlow::Break(());
                }
                found.push(head);
            }
        } else if inside && let Some(mapping) = found.last_mut() {
            detail(mapping, line);
        }
        ControlFlow::Continue(())
    })?;
    if no_memory { Err(Errno::NO_MEMORY) } else { Ok(found) }
}

/// `7f0000000000-7f0000001000 rw-p 00000000 00:00 0    /a/file`.
fn head(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let access = words.next()?;
    Some(Mapping {
        range: number(start)?..number(end)?,
        writes_through: access.contains('w') && access.ends_with('s'),
        inode: words.nth(2)?.parse().ok()?,
        path: path(line),
        ..Mapping::default()
    })
}

/// All behind the fifth word: names may hold blanks.
fn path(line: &str) -> String {
    let mut rest = line;
    for _ in 0..5 {
        rest = rest.trim_start().split_once(' ').map_or("", |(_, rest)| rest);
    }
    rest.trim_start().into()
}

fn detail(mapping: &mut Mapping, line: &str) {
    let Some((name, value)) = line.split_once(':') else { return };
    let kib = || value.split_ascii_whitespace().next().and_then(|number| number.parse::<usize>().ok()).unwrap_or(0);
    match name {
        "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => mapping.huge += kib() << 10,
        "KernelPageSize" => mapping.page = kib() << 10,
        "VmFlags" => mapping.locked = value.split_ascii_whitespace().any(|flag| flag == "lo"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_blanks_in_its_name() {
        let found = head("7f0000000000-7f0000001000 rw-s 00010000 fe:00 123      /tmp/a b  c").unwrap();
        assert_eq!(found.range, 0x7f0000000000..0x7f0000001000);
        assert_eq!((found.path.as_str(), found.inode, found.writes_through), ("/tmp/a b  c", 123, true));
    }

    #[test]
    fn anonymous_memory_has_no_name() {
        let found = head("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!((found.path.as_str(), found.writes_through), ("", false));
    }

    #[test]
    fn figures() {
        let mut found = Mapping::default();
        for line in
            ["AnonHugePages:    4096 kB", "ShmemPmdMapped: 0 kB", "KernelPageSize: 4 kB", "VmFlags: rd wr lo mr"]
        {
            assert_eq!(head(line), None);
            detail(&mut found, line);
        }
        assert_eq!((found.huge, found.page, found.locked), (4 << 20, 4096, true));
    }
}
