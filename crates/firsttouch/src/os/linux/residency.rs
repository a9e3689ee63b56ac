//! Queries pages and mappings. No query needs privileges or touches a page.

use super::kernel_files::{asks_nothing, stopped};
use super::kernel_texts::shared_part;
use super::placement::{move_pages, system_file};
use super::process::page_size;
use crate::os::inject::{Call, injected};
use crate::os::types::{Errno, MappingText, SharedPart};
use std::ffi::{CString, c_void};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::mem::MaybeUninit;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::MetadataExt;

/// Queries the node of the page at each address (move_pages(2)). It is a negative error number if there is none:
/// [`Errno::NOTHING_THERE`] if no page is present, [`Errno::BAD_ADDRESS`] for the zero page.
///
/// # Errors
/// If the kernel refuses, as in some containers.
pub fn nodes_of(addresses: &[usize], nodes: &mut [i32]) -> Result<(), Errno> {
    if injected(Call::NodesOfPages) || asks_nothing() {
        return Err(Errno(libc::EPERM));
    }
    move_pages(addresses, None, nodes)
}

/// Queries, for each byte of `present`, whether a page is mapped to memory or, for files, in the page cache (mincore(2)).
/// Files that the caller may not write are always reported present.
///
/// # Errors
/// If the range is not mapped, or the kernel refuses.
pub fn in_memory(start: usize, present: &mut [u8]) -> Result<(), Errno> {
    if injected(Call::Resident) {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: the kernel writes one byte for each page.
    let result = unsafe { libc::mincore(start as *mut c_void, present.len() * page_size(), present.as_mut_ptr()) };
    if result == 0 { Ok(()) } else { Err(Errno::last()) }
}

/// Visits the lines of /proc/self/maps or smaps, in the order of addresses, until `visit` breaks.
///
/// # Errors
/// If the file cannot be read.
pub fn mapping_lines(text: MappingText, visit: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<(), Errno> {
    if injected(Call::ReadMappings) {
        return Err(Errno(libc::EACCES));
    }
    let path = if text == MappingText::Short { "/proc/self/maps" } else { "/proc/self/smaps" };
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(Errno::from)?);
    let mut line = Vec::new(); // file names need not be UTF-8
    loop {
        line.clear();
        if file.read_until(b'\n', &mut line).map_err(Errno::from)? == 0 {
            return Ok(());
        }
        if visit(String::from_utf8_lossy(line.trim_ascii_end()).as_ref()).is_break() {
            return Ok(());
        }
    }
}

/// Returns whether any memory of the process is locked (VmLck in /proc/self/status), if known.
pub fn locks_memory() -> Option<bool> {
    if injected(Call::ReadMappings) || stopped() {
        return None;
    }
    let status = system_file("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"))?;
    Some(line.split_ascii_whitespace().next()? != "0")
}

/// Returns the only node with memory, if there is only one.
pub fn only_node() -> Option<usize> {
    if injected(Call::OnlyNode) {
        return None;
    }
    std::fs::read_to_string("/sys/devices/system/node/has_memory").ok()?.trim().parse().ok()
}

/// Returns whether there is swap space, if known (sysinfo(2)).
pub fn has_swap() -> Option<bool> {
    let mut found = MaybeUninit::<libc::sysinfo>::uninit();
    // SAFETY: the kernel fills the structure if it returns 0.
    unsafe { (libc::sysinfo(found.as_mut_ptr()) == 0).then(|| found.assume_init().totalswap > 0) }
}

/// Returns whether the kernel truthfully reports the page cache of the file at `path` to this process: to the owner of the
/// file, and to those who may write it. The file must still have this inode.
pub fn may_ask_for_cache(path: &str, inode: u64) -> bool {
    let (Ok(name), Ok(file)) = (CString::new(path), std::fs::metadata(path)) else { return false };
    // SAFETY: geteuid has no preconditions; faccessat reads a C string.
    let may = unsafe {
        let user = libc::geteuid();
        user == 0
            || file.uid() == user
            || libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::W_OK, libc::AT_EACCESS) == 0
    };
    may && file.ino() == inode
}

/// Returns whether `address` lies in a shared mapping, which forked children write to, too; `false` if not known.
pub fn is_shared(address: usize) -> bool {
    !shared_parts(address..address + 1).is_empty()
}

/// Returns the parts of a range that lie in shared mappings, and what they map; none if not known.
pub fn shared_parts(range: Range<usize>) -> Vec<SharedPart> {
    let mut parts = Vec::new();
    let _ = mapping_lines(MappingText::Short, &mut |line| {
        parts.extend(shared_part(line, &range));
        ControlFlow::Continue(())
    });
    parts
}
