//! Queries pages and mappings. No query needs privileges or touches a page.

use super::kernel_texts::{mapping, number};
use super::limits::asks_nothing;
use super::memory::{move_pages, page_size};
use crate::os::inject::{Call, injected};
use crate::os::types::{Errno, PageState};
use std::ffi::c_void;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// move_pages(2), which some containers refuse.
pub fn nodes_of(addresses: &[usize], nodes: &mut [i32]) -> Result<(), Errno> {
    if asks_nothing() {
        return Err(Errno(libc::EPERM));
    }
    move_pages(addresses, None, nodes)
}

/// Reads a file until one of its lines answers. File names in them need not be UTF-8.
fn ask<T>(path: &str, mut answer: impl FnMut(&str) -> Option<T>) -> Option<T> {
    let (mut file, mut line) = (BufReader::with_capacity(1 << 16, File::open(path).ok()?), Vec::new());
    while file.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        if let Some(answer) = answer(&String::from_utf8_lossy(&line)) {
            return Some(answer);
        }
        line.clear();
    }
    None
}

pub fn is_shared(address: usize) -> bool {
    let is_there = |(range, _): &(Range<usize>, bool)| range.contains(&address);
    ask("/proc/self/maps", |line| mapping(line).filter(is_there)).is_some_and(|(_, shared)| shared)
}

pub fn sizes_of_pages(wanted: &Range<usize>) -> Option<[usize; 3]> {
    let (mut is_inside, mut last) = (false, 0);
    let (mut size, mut resident, mut huge) = (0usize, 0usize, 0);
    ask("/proc/self/smaps", |line| {
        if let Some((range, _)) = mapping(line) {
            is_inside = range.end > wanted.start;
            return (range.start >= wanted.end)
                .then(|| [huge, resident.saturating_sub(huge), size.saturating_sub(resident)]);
        }
        let (name, value) = line.split_once(':').filter(|_| is_inside)?;
        let bytes = number(value)? << 10;
        match name {
            "Size" => (size, last) = (size + bytes, bytes),
            "KernelPageSize" if bytes > page_size() => (huge, resident) = (huge + last, resident + last),
            "Rss" => resident += bytes,
            "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => huge += bytes,
            _ => {}
        }
        None
    })
}

/// mincore(2). Swapped pages may not be counted.
pub fn resident_pages(address: usize, size: usize) -> Result<usize, Errno> {
    const AT_A_TIME: usize = 256; // a thread that frees may have a small stack
    if size.div_ceil(page_size()) > 4096 || asks_nothing() {
        return Err(Errno(libc::EINVAL));
    }
    let (step, mut there) = (AT_A_TIME * page_size(), 0);
    for from in (0..size).step_by(step) {
        let mut seen = [0u8; AT_A_TIME];
        let part = step.min(size - from);
        // SAFETY: the kernel writes one byte for each page, at most as many as there is room for.
        if unsafe { libc::mincore((address + from) as *mut c_void, part, seen.as_mut_ptr()) } != 0 {
            return Err(Errno::last());
        }
        there += seen.iter().map(|&byte| usize::from(byte & 1)).sum::<usize>();
    }
    Ok(there)
}

/// `struct pm_scan_arg` (linux/fs.h, since 6.7).
#[repr(C)]
#[derive(Default)]
struct ScanArgument {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::Ioctl = libc::_IOWR::<ScanArgument>(b'f' as u32, 16);
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const ZERO: u64 = 1 << 5;
const HUGE: u64 = 1 << 6;

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

/// An open /proc/PID/pagemap. Open it for each query: after a fork, that of this process would describe the parent.
pub struct PageTable(File);

impl PageTable {
    /// Opens the page table.
    ///
    /// # Errors
    /// If /proc is hidden, or the process is not dumpable (`PR_SET_DUMPABLE`).
    pub fn open() -> Result<Self, Errno> {
        if injected(Call::OpenPages) {
            return Err(Errno(libc::EACCES));
        }
        File::open("/proc/self/pagemap").map(Self).map_err(Errno::from)
    }

    /// Opens the page table of another process.
    ///
    /// # Errors
    /// If there is no such process, or it belongs to another user or is not dumpable.
    pub fn of(process: u32) -> Result<Self, Errno> {
        File::open(format!("/proc/{process}/pagemap")).map(Self).map_err(Errno::from)
    }

    /// Visits the pages of a range that are in memory or swap, in order: by a scan, else entry by entry.
    ///
    /// # Errors
    /// If the kernel refuses both, or the scan after its beginning.
    pub fn visit(&self, range: &Range<usize>, visit: &mut dyn FnMut(Range<usize>, PageState)) -> Result<(), Errno> {
        let mut is_begun = false;
        let scanned = self.scan(range, &mut |pages, state| {
            is_begun = true;
            visit(pages, state);
        });
        if scanned.is_ok() || is_begun { scanned } else { self.read(range, visit) }
    }

    /// Scans (ioctl `PAGEMAP_SCAN`), from Linux 6.7 on. Before 6.16, the huge zero page may pass for a huge page.
    fn scan(&self, range: &Range<usize>, visit: &mut dyn FnMut(Range<usize>, PageState)) -> Result<(), Errno> {
        if injected(Call::ScanPages) {
            return Err(Errno(libc::ENOTTY));
        }
        let mut found = [PageRegion::default(); 512];
        let mut at = range.start as u64;
        while at < range.end as u64 {
            let mut argument = ScanArgument {
                size: size_of::<ScanArgument>() as u64,
                start: at,
                end: range.end as u64,
                vec: found.as_mut_ptr() as u64,
                vec_len: found.len() as u64,
                category_anyof_mask: PRESENT | SWAPPED,
                return_mask: PRESENT | SWAPPED | ZERO | HUGE,
                ..ScanArgument::default()
            };
            // SAFETY: the kernel fills at most `vec_len` regions and `walk_end`; without flags it changes nothing.
            let count = unsafe { libc::ioctl(self.0.as_raw_fd(), PAGEMAP_SCAN, &raw mut argument) };
            if count < 0 {
                return Err(Errno::last());
            }
            for region in found.iter().take(count as usize) {
                let state = match region.categories {
                    is if is & PRESENT == 0 => PageState::Swapped,
                    is if is & ZERO != 0 => PageState::Zero,
                    is if is & HUGE != 0 => PageState::Huge,
                    _ => PageState::Small,
                };
                visit(region.start.max(at) as usize..(region.end as usize).min(range.end), state);
            }
            if argument.walk_end <= at {
                return Err(Errno::UNSUPPORTED); // no progress: an unknown variant of the call
            }
            at = argument.walk_end;
        }
        Ok(())
    }

    /// Reads the entry of each page, which tells no sizes.
    fn read(&self, range: &Range<usize>, visit: &mut dyn FnMut(Range<usize>, PageState)) -> Result<(), Errno> {
        let mut buffer = [0; 1024];
        for start in range.clone().step_by(buffer.len() * page_size()) {
            let pages = (start..range.end).step_by(page_size());
            let entries = &mut buffer[..pages.len().min(1024)];
            self.entries(start, entries)?;
            for (page, &mut entry) in pages.zip(entries) {
                let state = match entry {
                    entry if entry & IS_PRESENT == 0 && entry & IS_SWAPPED == 0 => continue,
                    entry if entry & IS_PRESENT == 0 => PageState::Swapped,
                    entry if entry & IS_EXCLUSIVE != 0 => PageState::Real, // the zero page never is
                    _ => PageState::Present,
                };
                visit(page..page + page_size(), state);
            }
        }
        Ok(())
    }

    /// Whether a page is known to be mapped exclusively, so that it is not the zero page.
    pub fn is_exclusive(&self, page: usize) -> bool {
        let mut entry = [0];
        self.entries(page, &mut entry).is_ok() && entry[0] & IS_EXCLUSIVE != 0
    }

    fn entries(&self, start: usize, entries: &mut [u64]) -> Result<(), Errno> {
        if injected(Call::ReadPages) {
            return Err(Errno(libc::EPERM));
        }
        // SAFETY: any eight bytes are a valid number.
        let bytes = unsafe { std::slice::from_raw_parts_mut(entries.as_mut_ptr().cast(), size_of_val(entries)) };
        self.0.read_exact_at(bytes, (start / page_size() * 8) as u64).map_err(Errno::from)
    }
}

/// Bits of an entry.
const IS_PRESENT: u64 = 1 << 63;
const IS_SWAPPED: u64 = 1 << 62;
const IS_EXCLUSIVE: u64 = 1 << 56;
