//! Linux: what else is known of pages and mappings. Nothing here needs privileges, and nothing touches a page it asks
//! about.

use super::{Call, Errno, MappingText, injected, page_size};
use std::ffi::{CString, c_void};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;

pub(super) fn refused(error: std::io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(libc::EIO))
}

/// move_pages(2) without targets: the node of each address's page, or minus the error: [`Errno::NOTHING_THERE`] where none is
/// in memory, [`Errno::BAD_ADDRESS`] for the zero page. EPERM in some containers.
pub fn nodes_of(addresses: &[usize], nodes: &mut [i32]) -> Result<(), Errno> {
    if injected(Call::NodesOfPages) {
        return Err(Errno(libc::EPERM));
    }
    super::linux_placement::move_pages(addresses, None, nodes)
}

/// mincore(2), a page for each byte of `there`: whether it is mapped to memory or, for files, in the page cache. For
/// files that the caller may not write the kernel always says yes.
pub fn in_memory(start: usize, there: &mut [u8]) -> Result<(), Errno> {
    if injected(Call::Resident) {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: the kernel writes one byte for each page.
    let result = unsafe { libc::mincore(start as *mut c_void, there.len() * page_size(), there.as_mut_ptr()) };
    if result == 0 { Ok(()) } else { Err(super::linux::errno()) }
}

/// Lines of /proc/self/maps or smaps, in the order of addresses, until `visit` has enough.
pub fn mapping_lines(text: MappingText, visit: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<(), Errno> {
    if injected(Call::ReadMappings) {
        return Err(Errno(libc::EACCES));
    }
    let path = if text == MappingText::Short { "/proc/self/maps" } else { "/proc/self/smaps" };
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(refused)?);
    let mut line = Vec::new(); // a file's name need not be UTF-8
    loop {
        line.clear();
        if file.read_until(b'\n', &mut line).map_err(refused)? == 0 {
            return Ok(());
        }
        if visit(String::from_utf8_lossy(line.trim_ascii_end()).as_ref()).is_break() {
            return Ok(());
        }
    }
}

/// Whether any memory of this process is locked (VmLck in /proc/self/status), where that is told.
pub fn locks_memory() -> Option<bool> {
    if injected(Call::ReadMappings) {
        return None;
    }
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"))?;
    Some(line.split_ascii_whitespace().next()? != "0")
}

/// The node that all memory lies on, where there is only one.
pub fn only_node() -> Option<usize> {
    if injected(Call::OnlyNode) {
        return None;
    }
    std::fs::read_to_string("/sys/devices/system/node/has_memory").ok()?.trim().parse().ok()
}

/// sysinfo(2): whether there is swap space.
pub fn has_swap() -> Option<bool> {
    let mut found = MaybeUninit::<libc::sysinfo>::uninit();
    // SAFETY: the kernel fills the structure where it returns 0.
    unsafe { (libc::sysinfo(found.as_mut_ptr()) == 0).then(|| found.assume_init().totalswap > 0) }
}

/// Whether the kernel tells this caller of the page cache of the file at `path`, if that file still has this number:
/// its owner is told, and who may write it.
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
