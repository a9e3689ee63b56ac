//! The pages that contain an array's elements, which may have gaps and negative strides; and the mappings that the kernel lists
//! for a range: files, locks, huge pages.

use crate::os::{Errno, MappingText, mapping_lines, page_size};
use std::ops::{ControlFlow, Range};

/// With more pieces than this, the gaps between them are included.
const MAX_PIECES: usize = 1 << 24;

/// Returns the addresses of the pages that the elements of an array lie on, as sorted and disjoint ranges of whole pages.
///
/// `address` is that of the first element, and `item` the size of an element; `shape` and `strides` (in bytes) are as in
/// NumPy. An empty array lies on no page.
///
/// # Errors
/// [`Errno::NO_MEMORY`] if there is no memory for the result.
pub fn footprint(address: usize, item: usize, shape: &[usize], strides: &[isize]) -> Result<Vec<Range<usize>>, Errno> {
    if item == 0 || shape.contains(&0) {
        return Ok(Vec::new());
    }
    let page = page_size();
    // Reverse negative strides: every axis runs upwards from the lowest element.
    let mut lowest = address;
    let mut axes = room_for(shape.len())?;
    for (&count, &stride) in shape.iter().zip(strides) {
        let reach = stride.unsigned_abs().saturating_mul(count - 1);
        if stride < 0 {
            lowest = lowest.saturating_sub(reach);
        }
        if reach > 0 {
            axes.push((stride.unsigned_abs(), count));
        }
    }
    axes.sort_unstable();
    // The axes of short strides form one piece, whose gaps are too small to skip a page.
    let mut run = item;
    let near = axes.iter().take_while(|(stride, count)| {
        let near = stride.saturating_sub(run) < page;
        run = if near { run.saturating_add(stride.saturating_mul(count - 1)) } else { run };
        near
    });
    let near = near.count();
    let (mut starts, mut whole) = (room_for(1)?, run);
    starts.push(lowest);
    for &(stride, count) in &axes[near..] {
        whole = whole.saturating_add(stride.saturating_mul(count - 1));
        if starts.len().saturating_mul(count) <= MAX_PIECES {
            let at = |n: usize| n.saturating_mul(stride);
            let mut all = room_for(starts.len() * count)?;
            all.extend((0..count).flat_map(|n| starts.iter().map(move |start| start.saturating_add(at(n)))));
            starts = all;
        } else {
            starts.clear();
            starts.push(lowest);
            run = whole;
        }
    }
    starts.sort_unstable();
    let last = usize::MAX / page * page; // strides may lead anywhere
    let end = |start: usize| start.saturating_add(run).min(last).next_multiple_of(page);
    merged(starts.into_iter().map(|start| start / page * page..end(start)))
}

/// Returns an empty vector with room for `count` values.
fn room_for<T>(count: usize) -> Result<Vec<T>, Errno> {
    let mut room_for = Vec::new();
    room_for.try_reserve_exact(count).map_err(|_| Errno::NO_MEMORY)?;
    Ok(room_for)
}

/// Merges ranges, sorted by their starts, that overlap or touch.
fn merged(ranges: impl Iterator<Item = Range<usize>>) -> Result<Vec<Range<usize>>, Errno> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match found.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => {
                found.try_reserve(1).map_err(|_| Errno::NO_MEMORY)?;
                found.push(range);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod footprint_tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const AT: usize = 1 << 40;

    /// Returns the pages of every element, one by one.
    fn brute_force(address: usize, item: usize, shape: &[usize], strides: &[isize]) -> BTreeSet<usize> {
        let mut at = vec![address as isize];
        for (&count, &stride) in shape.iter().zip(strides) {
            at = (0..count as isize).flat_map(|n| at.iter().map(move |at| at + n * stride)).collect();
        }
        let pages = |at: &isize| *at as usize / page_size()..=(*at as usize + item - 1) / page_size();
        at.iter().flat_map(pages).collect()
    }

    fn pages(found: &[Range<usize>]) -> BTreeSet<usize> {
        found.iter().flat_map(|range| range.start / page_size()..range.end / page_size()).collect()
    }

    fn only(found: &[Range<usize>]) -> Range<usize> {
        assert_eq!(found.len(), 1);
        found[0].clone()
    }

    proptest! {
        #[test]
        fn agrees_with_brute_force(
            offset in 0usize..9000,
            item in 1usize..40,
            axes in proptest::collection::vec((1usize..9, -20_000isize..20_000), 0..4),
        ) {
            let (shape, strides): (Vec<_>, Vec<_>) = axes.into_iter().unzip();
            let found = footprint(AT + offset, item, &shape, &strides).unwrap();
            prop_assert_eq!(pages(&found), brute_force(AT + offset, item, &shape, &strides));
            prop_assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }

    #[test]
    fn strides_out_of_the_address_space() {
        footprint(AT, 8, &[1 << 40, 1 << 30], &[1 << 50, -1 << 60]).unwrap();
    }

    #[test]
    fn empty_arrays_lie_on_no_page() {
        assert!(footprint(AT, 8, &[3, 0], &[0, 8]).unwrap().is_empty());
        assert!(footprint(AT, 0, &[3], &[0]).unwrap().is_empty());
    }

    #[test]
    fn a_scalar_is_one_element() {
        assert_eq!(only(&footprint(AT + 8, 8, &[], &[]).unwrap()), AT..AT + page_size());
    }

    #[test]
    fn a_gibibyte_is_one_range() {
        assert_eq!(only(&footprint(AT + 16, 8, &[1 << 27], &[8]).unwrap()), AT..AT + (1 << 30) + page_size());
    }

    /// Gaps may be included, but no element may be missing.
    #[test]
    fn too_many_pieces() {
        let (count, stride) = (MAX_PIECES, 9 * page_size());
        let found = footprint(AT, 8, &[count, 2], &[stride as isize, stride as isize / 3]).unwrap();
        assert_eq!(only(&found), AT..AT + (count - 1) * stride + stride / 3 + page_size());
    }
}

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
mod mappings_tests {
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
