//! Parses the kernel's list of mappings: files, locks, huge pages.

use crate::os::{Errno, MappingText, mapping_lines};
use std::ops::{ControlFlow, Range};

/// A mapping, as listed by `/proc/self/maps` and `smaps`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<usize>,
    /// Whether writes go to a file or to shared memory.
    pub writes_through: bool,
    /// The path of the file; empty if there is none.
    pub path: String,
    /// The inode of the file.
    pub inode: u64,
    /// Bytes on transparent huge pages. Only in [`MappingText::Long`].
    pub huge: usize,
    /// Page size; larger than a base page on hugetlbfs. Only in [`MappingText::Long`].
    pub page: usize,
    /// Whether it is locked. Only in [`MappingText::Long`].
    pub locked: bool,
}

/// Returns the mappings that overlap `range`, in order.
pub fn mappings(text: MappingText, range: &Range<usize>) -> Result<Vec<Mapping>, Errno> {
    let mut wanted = Wanted { range, found: Vec::new(), inside: false, no_memory: false };
    mapping_lines(text, &mut |line| wanted.take(line))?;
    if wanted.no_memory { Err(Errno::NO_MEMORY) } else { Ok(wanted.found) }
}

/// The same of a text that was read before.
pub fn mappings_in<'text>(lines: impl Iterator<Item = &'text str>, range: &Range<usize>) -> Vec<Mapping> {
    let mut wanted = Wanted { range, found: Vec::new(), inside: false, no_memory: false };
    let _ = lines.map(|line| wanted.take(line)).find(ControlFlow::is_break);
    wanted.found
}

struct Wanted<'range> {
    range: &'range Range<usize>,
    found: Vec<Mapping>,
    inside: bool,
    no_memory: bool,
}

impl Wanted<'_> {
    fn take(&mut self, line: &str) -> ControlFlow<()> {
        if let Some(header) = parse_header(line) {
            if header.range.start >= self.range.end {
                return ControlFlow::Break(());
            }
            self.inside = header.range.end > self.range.start;
            if self.inside {
                if self.found.try_reserve(1).is_err() {
                    self.no_memory = true;
                    return ControlFlow::Break(());
                }
                self.found.push(header);
            }
        } else if self.inside
            && let Some(mapping) = self.found.last_mut()
        {
            parse_field(mapping, line);
        }
        ControlFlow::Continue(())
    }
}

/// Parses a line like `7f0000000000-7f0000001000 rw-p 00000000 00:00 0    /a/file`.
fn parse_header(line: &str) -> Option<Mapping> {
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

/// Returns everything after the fifth field, as names may contain spaces.
fn path(line: &str) -> String {
    let mut rest = line;
    for _ in 0..5 {
        rest = rest.trim_start().split_once(' ').map_or("", |(_, rest)| rest);
    }
    rest.trim_start().into()
}

/// Parses a line like `AnonHugePages:    4096 kB`.
fn parse_field(mapping: &mut Mapping, line: &str) {
    let Some((name, value)) = line.split_once(':') else { return };
    let number = || value.split_ascii_whitespace().next().and_then(|number| number.parse::<usize>().ok()).unwrap_or(0);
    let bytes = || number().saturating_mul(1 << 10);
    match name {
        "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => mapping.huge = mapping.huge.saturating_add(bytes()),
        "KernelPageSize" => mapping.page = bytes(),
        "VmFlags" => mapping.locked = value.split_ascii_whitespace().any(|flag| flag == "lo"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_with_spaces() {
        let found = parse_header("7f0000000000-7f0000001000 rw-s 00010000 fe:00 123      /tmp/a b  c").unwrap();
        assert_eq!(found.range, 0x7f0000000000..0x7f0000001000);
        assert_eq!((found.path.as_str(), found.inode, found.writes_through), ("/tmp/a b  c", 123, true));
    }

    #[test]
    fn anonymous_memory_has_no_path() {
        let found = parse_header("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!((found.path.as_str(), found.writes_through), ("", false));
    }

    #[test]
    fn fields() {
        let mut found = Mapping::default();
        for line in
            ["AnonHugePages:    4096 kB", "ShmemPmdMapped: 0 kB", "KernelPageSize: 4 kB", "VmFlags: rd wr lo mr"]
        {
            assert_eq!(parse_header(line), None);
            parse_field(&mut found, line);
        }
        assert_eq!((found.huge, found.page, found.locked), (4 << 20, 4096, true));
    }
}
