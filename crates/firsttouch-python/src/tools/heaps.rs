//! For `firsttouch why`: publishing the live blocks of this process, and telling what lies in the anonymous memory of another
//! one, by the headers that the C library's and Python's allocators keep in it.
//!
//! The other process runs meanwhile. So nothing that is read there is trusted: a walk that does not come out at the end of its
//! heap says nothing. Only resident pages are read, so that none becomes so.

#![allow(clippy::disallowed_macros)] // what is derived has `intern!`; the command that asks forks nothing

use crate::handlers::front;
use crate::python::call_sites;
use crate::tools::machine::os_error;
use firsttouch::adaptors::CallSites;
use firsttouch::os::Errno;
use firsttouch::residency::{self, PageRun, PageState};
use firsttouch_trace::live;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// What is read at a time, and what mappings of both allocators are multiples of. Pages may be larger.
const PAGE: usize = 4 << 10;

/// Publishes the live blocks of this process from now on, with the lines that made them; `is_late` if it may have others.
#[pyfunction]
#[pyo3(signature = (is_late=false))]
pub fn live_begin(py: Python<'_>, is_late: bool) -> PyResult<()> {
    static WATCHES: AtomicBool = AtomicBool::new(false);
    if !WATCHES.swap(true, Relaxed) {
        front::watch(py)?;
    }
    open(py, is_late)
}

fn open(py: Python<'_>, is_late: bool) -> PyResult<()> {
    let call_sites = CallSites { site: call_sites::site, place: call_sites::as_text };
    py.detach(|| live::open(call_sites, is_late)).map_err(os_error)
}

/// Waits for a reader to look at this process a last time, for at most so many seconds. Without NumPy, nothing was published
/// before.
#[pyfunction]
pub fn live_end(py: Python<'_>, limit: f64) -> PyResult<()> {
    if !live::is_open() {
        open(py, false)?;
    }
    py.detach(|| live::wait_for_reader(Duration::from_secs_f64(limit)));
    Ok(())
}

/// The ranges of resident pages between two addresses of a process, in order, and those of the zero page, which is not
/// resident; before Linux 6.7 it cannot be told from others.
fn resident(process: u32, start: usize, end: usize) -> Result<[Vec<Range<usize>>; 2], Errno> {
    let mut found = [Vec::new(), Vec::new()];
    for PageRun { range, state } in residency::of_process(process, &(start..end))?.iter() {
        let ranges: &mut Vec<Range<usize>> = match state {
            PageState::Absent | PageState::Swapped | PageState::Unknown => continue,
            PageState::Zero => &mut found[1],
            _ => &mut found[0],
        };
        match ranges.last_mut().filter(|last| last.end == range.start) {
            Some(last) => last.end = range.end, // on pages of another size
            None => ranges.push(range.clone()),
        }
    }
    Ok(found)
}

/// The memory of another process between two addresses, as far as it is resident.
struct Resident {
    memory: File,
    bytes: Range<usize>,
    ranges: Vec<Range<usize>>,
    /// The page that was read last, and its address.
    page: (usize, [u8; PAGE]),
    /// Whether a resident page could not be read: it is gone.
    is_stale: bool,
}

impl Resident {
    /// The resident range with `address`, or the next one.
    fn next(&self, address: usize) -> Option<&Range<usize>> {
        self.ranges.get(self.ranges.partition_point(|range| range.end <= address))
    }

    /// The word at an address, a multiple of eight.
    fn word(&mut self, address: usize) -> Option<usize> {
        let page = address / PAGE * PAGE;
        if self.page.0 != page {
            self.next(address).filter(|range| range.contains(&address))?;
            self.page.0 = 0;
            let read = self.memory.read_exact_at(&mut self.page.1, page as u64);
            self.is_stale |= read.is_err();
            read.ok()?;
            self.page.0 = page;
        }
        let at = address - page;
        self.page.1.get(at..at + 8)?.try_into().ok().map(usize::from_ne_bytes)
    }

    /// How much is resident of a range.
    fn resident_bytes(&self, bytes: &Range<usize>) -> usize {
        let first = self.ranges.partition_point(|range| range.end <= bytes.start);
        let inside = |range: &Range<usize>| bytes.end.min(range.end).saturating_sub(bytes.start.max(range.start));
        self.ranges[first..].iter().take_while(|range| range.start < bytes.end).map(inside).sum()
    }
}

/// A part of anonymous memory, told by a header that lies in it.
#[derive(Clone, Copy, Default, IntoPyObject)]
pub struct Part {
    start: usize,
    size: usize,
    kind: &'static str,
    /// Resident bytes that are free between what is in use, and free at the end.
    free: usize,
    top: usize,
}

/// A heap of a thread's arena of glibc's malloc begins at a multiple of this.
const ARENA: usize = 64 << 20;
/// The record of an arena lies in its first heap before the first block, and has another size in each version.
const RECORD: usize = 4 << 10;
/// A pool of Python's allocator for objects up to 512 bytes, and the largest of them.
const POOL: usize = 16 << 10;
const LARGEST_OBJECT: usize = 512;
/// After so many pages of which nothing is known, only every fourth one is looked at.
const MANY_UNKNOWN: usize = 1024;

/// The free chunks of a heap of glibc's malloc from its first chunk on; the last one is the heap's top. `None` if the chunks do
/// not lead to the end of the heap.
fn walk(heap: Range<usize>, mut word: impl FnMut(usize) -> Option<usize>) -> Option<Vec<Range<usize>>> {
    const IN_USE_BEFORE: usize = 1;
    const LEAST: usize = 32;
    let (mut chunk, mut free) = (heap.start..heap.start, Vec::new());
    while chunk.end + LEAST <= heap.end {
        let header = word(chunk.end + 8)?;
        if header & IN_USE_BEFORE == 0 && !chunk.is_empty() {
            free.push(chunk.clone());
        }
        let size = header & !15;
        if size < LEAST || size > heap.end - chunk.end {
            return None;
        }
        chunk = chunk.end..chunk.end + size;
        if chunk.end == heap.end {
            free.push(chunk);
            return Some(free);
        }
    }
    None
}

/// The same of a heap whose first chunk lies somewhere in its first bytes. A walk that leads beyond them was one of chunks, though
/// it may end where the process changes the heap meanwhile.
fn chunks(heap: Range<usize>, mut word: impl FnMut(usize) -> Option<usize>) -> Option<Vec<Range<usize>>> {
    let (record, mut reached) = (heap.start + RECORD, heap.start);
    (heap.start..heap.end.min(record)).step_by(16).find_map(|first| {
        let is_known = reached > record;
        walk(first..heap.end, |address| {
            reached = reached.max(address);
            if is_known { None } else { word(address) }
        })
    })
}

/// A heap of glibc's malloc, of which `used` bytes are its own so far.
fn heap(memory: &mut Resident, start: usize, size: usize, used: usize) -> Part {
    let part = Part { start, size, kind: "heap", ..Part::default() };
    let mut free = chunks(start..start + used, |address| memory.word(address)).unwrap_or_default();
    let top = free.pop().map_or(0, |top| memory.resident_bytes(&top));
    Part { free: free.iter().map(|chunk| memory.resident_bytes(chunk)).sum(), top, ..part }
}

/// What begins at an address that is a multiple of a page; `None` if nothing that is known.
fn part_at(memory: &mut Resident, start: usize) -> Option<Part> {
    const IS_MAPPED: usize = 2;
    let left = memory.bytes.end - start;
    let [first, second] = [memory.word(start)?, memory.word(start + 8)?];
    if start.is_multiple_of(ARENA) {
        // The address of the arena's record, that of another heap, the size, and how much of it may be accessed.
        let [used, size] = [memory.word(start + 16)?, memory.word(start + 24)?];
        let are_sizes = (PAGE..=size).contains(&used) && size <= left.min(ARENA) && (used | size).is_multiple_of(PAGE);
        if are_sizes && second.is_multiple_of(ARENA) && (1..RECORD).contains(&(first % ARENA)) {
            return Some(heap(memory, start, size, used));
        }
    }
    if start.is_multiple_of(POOL) {
        // The number of live objects, then pointers; the class of size; and where the last object begins.
        let [class, last] = [memory.word(start + 32)? >> 32, memory.word(start + 40)? >> 32];
        let (objects, size) = (first & 0xffff_ffff, (class + 1) * 16);
        if size <= LARGEST_OBJECT && last == POOL - size && objects * size <= POOL {
            let size = POOL.min(left);
            return Some(Part {
                start,
                size,
                kind: "objects",
                free: size.saturating_sub(objects * (class + 1) * 16),
                top: 0,
            });
        }
    }
    let size = second & !7;
    let is_mapped = first == 0 && second & 7 == IS_MAPPED && (PAGE..=left).contains(&size) && size.is_multiple_of(PAGE);
    is_mapped.then_some(Part { start, size, kind: "mapped", ..Part::default() })
}

/// The parts of an anonymous mapping of which is known what they are, in order. With `is_heap` it is the heap of glibc's main
/// arena.
fn parts(memory: &mut Resident, is_heap: bool) -> Vec<Part> {
    let Range { start, end } = memory.bytes;
    let mut parts: Vec<Part> = Vec::new();
    if is_heap {
        parts.push(heap(memory, start, end - start, end - start));
    }
    let (mut address, mut unknown) = (if is_heap { end } else { start }, 0);
    while let Some(range) = memory.next(address) {
        address = address.max(range.start);
        let Some(part) = part_at(memory, address) else {
            unknown += 1;
            address += if unknown > MANY_UNKNOWN { POOL - address % POOL } else { PAGE };
            continue;
        };
        unknown = 0;
        address += part.size;
        match parts.last_mut().filter(|last| last.kind == part.kind && last.start + last.size == part.start) {
            Some(last) => {
                last.size += part.size;
                last.free += part.free;
                last.top += part.top;
            }
            None => parts.push(part),
        }
    }
    parts
}

/// Two lists of ranges, each as pairs of numbers of 64 bits.
type Ranges<'py> = [Bound<'py, PyBytes>; 2];

/// What a mapping of a process has: the resident ranges and those of the zero page, and its parts. Those are looked for where
/// `is_heap` is given, and `None` where its memory may not be read. Last, whether pages went meanwhile.
#[pyfunction]
#[pyo3(signature = (process, start, end, is_heap))]
pub fn contents_of_mapping(
    py: Python<'_>,
    process: u32,
    start: usize,
    end: usize,
    is_heap: Option<bool>,
) -> PyResult<(Ranges<'_>, Option<Vec<Part>>, bool)> {
    let (ranges, zeros, parts, is_stale) = py.detach(|| {
        let [ranges, zeros] = resident(process, start, end).map_err(os_error)?;
        let Some(is_heap) = is_heap else { return Ok((ranges, zeros, Some(Vec::new()), false)) };
        let Ok(memory) = File::open(format!("/proc/{process}/mem")) else { return Ok((ranges, zeros, None, false)) };
        let mut memory = Resident { memory, bytes: start..end, ranges, page: (0, [0; PAGE]), is_stale: false };
        let found = parts(&mut memory, is_heap);
        Ok::<_, PyErr>((memory.ranges, zeros, Some(found), memory.is_stale))
    })?;
    let both = [ranges, zeros].map(|ranges| {
        let words = ranges.iter().flat_map(|range| [range.start, range.end]);
        PyBytes::new(py, &words.flat_map(usize::to_ne_bytes).collect::<Vec<u8>>())
    });
    Ok((both, parts, is_stale))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A heap with these chunks: size, and whether the one before is in use.
    fn heap(chunks: &[(usize, bool)]) -> Vec<usize> {
        let chunk = |&(size, in_use)| [0, size | usize::from(in_use)].into_iter().chain(vec![0; size / 8 - 2]);
        chunks.iter().flat_map(chunk).collect()
    }

    /// The free chunks, and at last the top.
    fn found(words: &[usize]) -> Option<Vec<[usize; 2]>> {
        let free = walk(0..words.len() * 8, |address| words.get(address / 8).copied())?;
        Some(free.iter().map(|chunk| [chunk.start, chunk.end]).collect())
    }

    #[test]
    fn free_chunks_of_a_heap() {
        let chunks = [(32, true), (64, true), (48, false), (4096, true)];
        assert_eq!(found(&heap(&chunks)), Some(vec![[32, 96], [144, 4240]]));
    }

    #[test]
    fn a_heap_that_changes_is_walked_once() {
        let words = heap(&[(32, true); 1000]); // without an end
        let mut asked = 0;
        let word = |address: usize| words.get(address / 8).copied().inspect(|_| asked += 1);
        assert_eq!(chunks(0..1 << 20, word), None);
        assert!(asked < 1100, "{asked}");
    }

    #[test]
    fn what_is_no_heap_says_nothing() {
        assert_eq!(found(&[0; 64]), None);
        assert_eq!(found(&heap(&[(32, true), (64, true)])[..11]), None);
        assert_eq!(found(&[]), None);
    }
}
