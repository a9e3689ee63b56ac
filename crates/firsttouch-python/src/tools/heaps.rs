//! For `firsttouch why`: publishing the live blocks of this process, and telling what lies in the anonymous memory of another
//! one, by the headers that the C library's and Python's allocators keep in it.
//!
//! The other process runs meanwhile. So nothing that is read there is trusted: a walk that does not come out at the end of its
//! heap says nothing. Only resident pages are read, so that none becomes so.

use crate::handlers::front;
use crate::python::call_sites;
use firsttouch::adaptors::CallSites;
use firsttouch::os::{Errno, PageRegion, PageTable, seen};
use firsttouch_trace::live;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const PAGE: usize = 4 << 10;

/// Publishes the live blocks of this process from now on, with the lines that made those of at least `lines_from` bytes.
#[pyfunction]
fn live_begin(py: Python<'_>, lines_from: usize) -> PyResult<()> {
    static WATCHES: AtomicBool = AtomicBool::new(false);
    if !WATCHES.swap(true, Relaxed) {
        front::watch(py)?;
    }
    open(py, lines_from)
}

fn open(py: Python<'_>, lines_from: usize) -> PyResult<()> {
    let call_sites = CallSites { site: call_sites::site, place: call_sites::as_text };
    py.detach(|| live::open(call_sites, lines_from)).map_err(os_error)
}

/// Waits for a reader to look at this process a last time, for at most so many seconds. Without NumPy, nothing was published
/// before.
#[pyfunction]
fn live_end(py: Python<'_>, limit: f64) -> PyResult<()> {
    if !live::is_open() {
        open(py, usize::MAX)?;
    }
    py.detach(|| live::wait_for_reader(Duration::from_secs_f64(limit)));
    Ok(())
}

/// The ranges of resident pages between two addresses of a process, in order. The zero page is not resident; before Linux 6.7
/// it cannot be told from others.
fn resident(process: u32, start: usize, end: usize) -> Result<Vec<Range<usize>>, Errno> {
    let table = PageTable::of(process)?;
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut push = |start: usize, end: usize| match found.last_mut().filter(|last| last.end == start) {
        Some(last) => last.end = end,
        None => found.push(start..end),
    };
    let (mut regions, mut at) = ([PageRegion::default(); 512], start);
    while at < end {
        let Ok((count, next)) = table.scan(at, end, &mut regions) else { break };
        let real = |region: &&PageRegion| region.seen & (seen::PRESENT | seen::ZERO) == seen::PRESENT;
        regions[..count].iter().filter(real).for_each(|region| push(region.start, region.end));
        at = next.max(at + PAGE);
    }
    let mut entries = vec![0; 4096];
    while at < end {
        let pages = entries.len().min((end - at) / PAGE);
        table.entries(at, &mut entries[..pages])?;
        for (page, _) in entries[..pages].iter().enumerate().filter(|(_, entry)| **entry & seen::PRESENT != 0) {
            push(at + page * PAGE, at + (page + 1) * PAGE);
        }
        at += pages * PAGE;
    }
    Ok(found)
}

/// The same for Python: pairs of numbers of 64 bits.
#[pyfunction]
fn resident_ranges(py: Python<'_>, process: u32, start: usize, end: usize) -> PyResult<Bound<'_, PyBytes>> {
    let found = py.detach(|| resident(process, start, end)).map_err(os_error)?;
    let words: Vec<u8> = found.iter().flat_map(|range| [range.start, range.end]).flat_map(usize::to_ne_bytes).collect();
    Ok(PyBytes::new(py, &words))
}

fn os_error(error: Errno) -> PyErr {
    io::Error::from_raw_os_error(error.0).into()
}

/// The memory of another process between two addresses, as far as it is resident.
struct Resident {
    memory: File,
    bytes: Range<usize>,
    ranges: Vec<Range<usize>>,
}

impl Resident {
    fn open(process: u32, bytes: Range<usize>) -> PyResult<Self> {
        let ranges = resident(process, bytes.start, bytes.end).map_err(os_error)?;
        Ok(Self { memory: File::open(format!("/proc/{process}/mem"))?, bytes, ranges })
    }

    /// The resident range with `address`, or the next one.
    fn next(&self, address: usize) -> Option<&Range<usize>> {
        self.ranges.get(self.ranges.partition_point(|range| range.end <= address))
    }

    /// The words at an address, which lie in one page.
    fn words<const N: usize>(&self, address: usize) -> Option<[u64; N]> {
        let mut bytes = [[0; 8]; N];
        self.next(address).filter(|range| range.contains(&address))?;
        self.memory.read_exact_at(bytes.as_flattened_mut(), address as u64).ok()?;
        Some(bytes.map(u64::from_ne_bytes))
    }

    /// How much is resident of a range.
    fn resident_bytes(&self, bytes: &Range<usize>) -> usize {
        let first = self.ranges.partition_point(|range| range.end <= bytes.start);
        let inside = |range: &Range<usize>| bytes.end.min(range.end).saturating_sub(bytes.start.max(range.start));
        self.ranges[first..].iter().take_while(|range| range.start < bytes.end).map(inside).sum()
    }
}

/// Words of memory that is read from its beginning to its end, in large pieces.
struct Forward<'a> {
    memory: &'a Resident,
    piece: Vec<u8>,
    start: usize,
}

impl Forward<'_> {
    fn word(&mut self, address: usize) -> Option<u64> {
        const PIECE: usize = 64 << 10;
        if !(self.start..self.start + self.piece.len()).contains(&address) {
            let range = self.memory.next(address).filter(|range| range.contains(&address))?;
            self.start = address;
            self.piece.resize(PIECE.min(range.end - address), 0);
            self.memory.memory.read_exact_at(&mut self.piece, address as u64).ok()?;
        }
        let at = address - self.start;
        self.piece.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
    }
}

/// Walks a heap of glibc's malloc from its `first` chunk on, and calls `free` with each free one; the last one is the heap's
/// top, which is returned. `None` if the chunks do not lead to the end of the heap.
fn walk(
    heap: Range<usize>,
    mut word: impl FnMut(usize) -> Option<u64>,
    mut free: impl FnMut(&Range<usize>),
) -> Option<Range<usize>> {
    const IN_USE_BEFORE: u64 = 1;
    const LEAST: usize = 32;
    let mut chunk = heap.start..heap.start;
    while chunk.end + LEAST <= heap.end {
        let header = word(chunk.end + 8)?;
        if header & IN_USE_BEFORE == 0 && !chunk.is_empty() {
            free(&chunk);
        }
        let size = (header & !15) as usize;
        if size < LEAST || size > heap.end - chunk.end {
            return None;
        }
        chunk = chunk.end..chunk.end + size;
        if chunk.end == heap.end {
            return Some(chunk);
        }
    }
    None
}

/// A heap of a thread's arena begins at a multiple of this, with the address of the arena's record, that of another heap, its
/// size, and how much of it may be accessed.
const ARENA: usize = 64 << 20;
/// The record of an arena lies in its first heap, before the first block, and has another size in each version.
const RECORD: usize = 4 << 10;

/// Of a heap of glibc's malloc, the resident bytes in free chunks between blocks, and in the one at its top; `None` if it is
/// not one that can be read.
#[pyfunction]
fn heap_free_bytes(py: Python<'_>, process: u32, start: usize, end: usize) -> PyResult<Option<(usize, usize)>> {
    py.detach(|| {
        let memory = Resident::open(process, start..end)?;
        let size = memory.words(start).filter(|_| start.is_multiple_of(ARENA)).map(|[_, _, size]| size as usize);
        let end = start + size.unwrap_or(end - start).min(end - start);
        let mut forward = Forward { memory: &memory, piece: Vec::new(), start: 0 };
        Ok((start..end.min(start + RECORD)).step_by(16).find_map(|first| {
            let mut between = 0;
            let free = |chunk: &Range<usize>| between += memory.resident_bytes(chunk);
            let top = walk(first..end, |address| forward.word(address), free)?;
            Some((between, memory.resident_bytes(&top)))
        }))
    })
}

/// What begins at an address.
#[derive(Clone, Copy, PartialEq)]
enum Found {
    /// A block that glibc's malloc has mapped by itself.
    Mapped,
    /// A heap of an arena of glibc's malloc.
    Heap,
    /// A pool of Python's allocator for objects up to 512 bytes.
    Objects,
    Unknown,
}

/// A pool's size, to which it is aligned.
const POOL: usize = 16 << 10;

/// What begins at a resident address, how many bytes it has, and those of its live objects.
fn what_begins(memory: &Resident, address: usize) -> (Found, usize, usize) {
    const IS_MAPPED: usize = 2;
    if address.is_multiple_of(ARENA)
        && let Some([record, before, size, opened]) = memory.words(address).map(|words| words.map(|word| word as usize))
    {
        let are_sizes = (PAGE..=opened).contains(&size) && opened <= ARENA && (size | opened).is_multiple_of(PAGE);
        if are_sizes && before.is_multiple_of(ARENA) && (1..RECORD).contains(&(record % ARENA)) {
            return (Found::Heap, opened, 0);
        }
    }
    if address.is_multiple_of(POOL)
        && let Some([count, _, _, _, index, offsets]) = memory.words(address)
    {
        let size = ((index >> 32) as usize + 1) * 16;
        let (count, last) = ((count & 0xffff_ffff) as usize, (offsets >> 32) as usize);
        if size <= 512 && last == POOL - size && count * size <= POOL {
            return (Found::Objects, POOL, count * size);
        }
    }
    if let Some([0, header]) = memory.words(address) {
        let size = header as usize & !7;
        let fits = size >= PAGE && size.is_multiple_of(PAGE) && size <= memory.bytes.end - address;
        if fits && header as usize & 7 == IS_MAPPED {
            return (Found::Mapped, size, 0);
        }
    }
    (Found::Unknown, PAGE, 0)
}

/// After so many pages of which nothing is known, only every fourth one is looked at.
const PATIENCE: usize = 1024;

/// The parts of an anonymous mapping, in order: address, size, what it is, and the bytes of live objects in Python's pools.
#[pyfunction]
fn parts_of_mapping(
    py: Python<'_>,
    process: u32,
    start: usize,
    end: usize,
) -> PyResult<Vec<(usize, usize, &'static str, usize)>> {
    py.detach(|| {
        let memory = Resident::open(process, start..end)?;
        let mut parts: Vec<(usize, usize, Found, usize)> = Vec::new();
        let (mut address, mut unknown) = (start, 0);
        while let Some(range) = memory.next(address) {
            address = address.max(range.start);
            let (found, mut size, live) = what_begins(&memory, address);
            unknown = if found == Found::Unknown { unknown + 1 } else { 0 };
            if unknown > PATIENCE {
                size = POOL - address % POOL;
            }
            let is_more = |last: &&mut (usize, usize, Found, usize)| last.2 == found && last.0 + last.1 == address;
            match parts.last_mut().filter(|last| found != Found::Heap && is_more(last)) {
                Some(last) => (last.1, last.3) = (last.1 + size, last.3 + live),
                None => parts.push((address, size, found, live)),
            }
            address += size;
        }
        let name = |found| match found {
            Found::Mapped => "mapped",
            Found::Heap => "heap",
            Found::Objects => "objects",
            Found::Unknown => "unknown",
        };
        Ok(parts.into_iter().map(|(address, size, found, live)| (address, size, name(found), live)).collect())
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(live_begin, module)?)?;
    module.add_function(wrap_pyfunction!(live_end, module)?)?;
    module.add_function(wrap_pyfunction!(resident_ranges, module)?)?;
    module.add_function(wrap_pyfunction!(heap_free_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(parts_of_mapping, module)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A heap with these chunks: size, and whether the one before is in use.
    fn heap(chunks: &[(u64, bool)]) -> Vec<u64> {
        let chunk = |&(size, in_use)| [0, size | u64::from(in_use)].into_iter().chain(vec![0; size as usize / 8 - 2]);
        chunks.iter().flat_map(chunk).collect()
    }

    /// The free chunks, and at last the top.
    fn found(words: &[u64]) -> Option<Vec<[usize; 2]>> {
        let mut free = Vec::new();
        let word = |address: usize| words.get(address / 8).copied();
        let top = walk(0..words.len() * 8, word, |chunk| free.push([chunk.start, chunk.end]))?;
        free.push([top.start, top.end]);
        Some(free)
    }

    #[test]
    fn free_chunks_of_a_heap() {
        let chunks = [(32, true), (64, true), (48, false), (4096, true)];
        assert_eq!(found(&heap(&chunks)), Some(vec![[32, 96], [144, 4240]]));
    }

    #[test]
    fn what_is_no_heap_says_nothing() {
        assert_eq!(found(&[0; 64]), None);
        assert_eq!(found(&heap(&[(32, true), (64, true)])[..11]), None);
        assert_eq!(found(&[]), None);
    }
}
