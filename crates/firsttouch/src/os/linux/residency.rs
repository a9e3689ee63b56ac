//! Queries pages and mappings. No query needs privileges or touches a page.

use super::kernel_texts::{kib, take_mapping};
use super::limits::{asks_nothing, read_always, stopped};
use super::memory::{move_pages, page_size};
use crate::os::inject::{Call, injected};
use crate::os::types::{Errno, Mapping, PageRegion, seen};
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

pub fn mappings(range: &Range<usize>, with_details: bool) -> Result<Vec<Mapping>, Errno> {
    let path = if with_details { "/proc/self/smaps" } else { "/proc/self/maps" };
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let (mut found, mut line) = (Vec::new(), Vec::new()); // file names need not be UTF-8
    while file.read_until(b'\n', &mut line)? > 0 {
        if take_mapping(&mut found, range, &String::from_utf8_lossy(line.trim_ascii_end()))?.is_break() {
            break;
        }
        line.clear();
    }
    Ok(found)
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

/// VmLck in /proc/self/status.
pub fn locks_memory() -> Option<bool> {
    if stopped() {
        return None;
    }
    let mut room = [0; 4096];
    Some(kib(read_always(c"/proc/self/status", &mut room)?, "VmLck")? > 0)
}

pub fn only_node() -> Option<usize> {
    if injected(Call::OnlyNode) {
        return None;
    }
    std::fs::read_to_string("/sys/devices/system/node/has_memory").ok()?.trim().parse().ok()
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

    /// Finds pages in memory or swap from `start` on, in order, as many regions as fit (ioctl `PAGEMAP_SCAN`). Returns the
    /// number of regions, and the address up to which was scanned; pages outside of the regions are absent. Before Linux
    /// 6.16, the huge zero page may lack [`seen::ZERO`].
    ///
    /// # Errors
    /// `ENOTTY` before Linux 6.7, or if the kernel refuses.
    pub fn scan(&self, start: usize, end: usize, found: &mut [PageRegion]) -> Result<(usize, usize), Errno> {
        if injected(Call::ScanPages) {
            return Err(Errno(libc::ENOTTY));
        }
        let mut argument = ScanArgument {
            size: size_of::<ScanArgument>() as u64,
            start: start as u64,
            end: end as u64,
            vec: found.as_mut_ptr() as u64,
            vec_len: found.len() as u64,
            category_anyof_mask: seen::PRESENT | seen::SWAPPED,
            return_mask: seen::PRESENT | seen::SWAPPED | seen::ZERO | seen::HUGE,
            ..ScanArgument::default()
        };
        // SAFETY: the kernel fills at most `vec_len` regions and `walk_end`; without flags it changes nothing.
        let count = unsafe { libc::ioctl(self.0.as_raw_fd(), PAGEMAP_SCAN, &raw mut argument) };
        if count < 0 {
            return Err(Errno::last());
        }
        Ok(((count as usize).min(found.len()), argument.walk_end as usize))
    }

    /// Reads the entries of the pages from `start` on, as bits of [`seen`].
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn entries(&self, start: usize, seen: &mut [u64]) -> Result<(), Errno> {
        if injected(Call::ReadPages) {
            return Err(Errno(libc::EPERM));
        }
        // SAFETY: any eight bytes are a valid number.
        let bytes = unsafe { std::slice::from_raw_parts_mut(seen.as_mut_ptr().cast(), size_of_val(seen)) };
        self.0.read_exact_at(bytes, (start / page_size() * 8) as u64).map_err(Errno::from)?;
        const BITS: [(u64, u64); 3] = [(1 << 63, seen::PRESENT), (1 << 62, seen::SWAPPED), (1 << 56, seen::EXCLUSIVE)];
        for entry in seen {
            *entry = BITS.iter().filter(|(bit, _)| *entry & bit != 0).map(|(_, ours)| ours).sum();
        }
        Ok(())
    }
}
