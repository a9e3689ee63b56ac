//! Page sizes, prefaulting and NUMA policies. The C library has no wrappers for the NUMA calls.

use super::usage::start_of;
use crate::os::types::{Errno, Mode, Nodes, Processors};
use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::ptr::{null, null_mut};

/// The flags that the kernel returns together with the mode.
const MODE_FLAGS: c_int = libc::MPOL_F_NUMA_BALANCING | libc::MPOL_F_RELATIVE_NODES | libc::MPOL_F_STATIC_NODES;
// From linux/mempolicy.h; the libc crate has only the modes.
const MPOL_F_MEMS_ALLOWED: c_ulong = 4;
const MPOL_MF_MOVE: c_ulong = 2;
const MAX_NODE: c_ulong = Nodes::ROOM as c_ulong + 1; // the kernel ignores the last bit

fn number(mode: Mode) -> c_int {
    match mode {
        Mode::Bind => libc::MPOL_BIND,
        Mode::Preferred => libc::MPOL_PREFERRED,
        Mode::Interleave => libc::MPOL_INTERLEAVE,
        Mode::Local => libc::MPOL_LOCAL,
    }
}

/// The memory policy of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadPolicy {
    mode: c_int,
    nodes: Nodes,
}

impl ThreadPolicy {
    /// Returns the nodes that the policy is restricted to, if it is; a preference is no restriction.
    pub fn bounds(&self) -> Option<Nodes> {
        let mode = self.mode & !MODE_FLAGS;
        let free = [libc::MPOL_DEFAULT, libc::MPOL_PREFERRED, libc::MPOL_LOCAL, 5]; // 5: MPOL_PREFERRED_MANY
        (!free.contains(&mode)).then(|| self.nodes())
    }

    /// Returns the nodes that the policy names. Relative ones are counted among those that the cpuset allows, again and again.
    fn nodes(&self) -> Nodes {
        match allowed_nodes() {
            Ok(may) if self.mode & libc::MPOL_F_RELATIVE_NODES != 0 => {
                self.nodes.iter().filter_map(|node| may.iter().nth(node % may.len().max(1))).collect()
            }
            _ => self.nodes,
        }
    }
}

fn check(result: c_long) -> Result<(), Errno> {
    if result == 0 { Ok(()) } else { Err(Errno::last()) }
}

pub fn map_huge(size: usize, page: usize, _node: Option<usize>) -> Result<usize, Errno> {
    let which = (page.trailing_zeros() as c_int) << libc::MAP_HUGE_SHIFT;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | which;
    // SAFETY: without MAP_FIXED, a new mapping replaces no other.
    let at = unsafe { libc::mmap(null_mut(), size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(at as usize) }
}

/// madvise(2) with `MADV_POPULATE_WRITE` or `MADV_POPULATE_READ`, from Linux 5.14 on.
pub fn populate(address: usize, size: usize, write: bool) -> Result<(), Errno> {
    let advice = if write { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
    // SAFETY: the advice faults pages in and changes no content.
    check(unsafe { libc::madvise(address as *mut c_void, size, advice) }.into())
}

/// mlock(2).
pub fn lock(address: usize, size: usize) -> Result<(), Errno> {
    // SAFETY: locking changes no content.
    check(unsafe { libc::mlock(address as *const c_void, size) }.into())
}

/// mbind(2).
pub fn bind(address: usize, size: usize, mode: Mode, nodes: &Nodes) -> Result<(), Errno> {
    let (flags, mask) = match mode {
        Mode::Local => (0, null()),
        // Node numbers stay absolute when the cpuset changes.
        _ => (libc::MPOL_F_STATIC_NODES, nodes.0.as_ptr()),
    };
    let max = if mask.is_null() { 0 } else { MAX_NODE };
    // SAFETY: the kernel reads the set; a policy changes no content.
    check(unsafe { libc::syscall(libc::SYS_mbind, address, size, number(mode) | flags, mask, max, 0) })
}

/// get_mempolicy(2).
pub fn thread_policy() -> Result<ThreadPolicy, Errno> {
    let (mut mode, mut nodes) = (0 as c_int, Nodes::EMPTY);
    // SAFETY: the kernel writes one number and as many bits as it is told there are.
    check(unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, nodes.0.as_mut_ptr(), MAX_NODE - 1, 0, 0 as c_ulong)
    })?;
    Ok(ThreadPolicy { mode, nodes })
}

/// get_mempolicy(2).
pub fn allowed_nodes() -> Result<Nodes, Errno> {
    let mut nodes = Nodes::EMPTY;
    // SAFETY: as in `thread_policy`.
    check(unsafe {
        let mask = nodes.0.as_mut_ptr();
        libc::syscall(libc::SYS_get_mempolicy, null_mut::<c_int>(), mask, MAX_NODE - 1, 0, MPOL_F_MEMS_ALLOWED)
    })?;
    Ok(nodes)
}

/// move_pages(2).
pub fn move_pages(pages: &[usize], nodes: Option<&[c_int]>, status: &mut [c_int]) -> Result<(), Errno> {
    let targets = nodes.map_or(null(), <[c_int]>::as_ptr);
    if pages.len() > status.len() || nodes.is_some_and(|nodes| nodes.len() < pages.len()) {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: the lists are as long as the kernel is told; pages move with their content.
    let result = unsafe {
        let (count, moving) = (pages.len(), if nodes.is_some() { MPOL_MF_MOVE } else { 0 });
        libc::syscall(libc::SYS_move_pages, 0, count, pages.as_ptr(), targets, status.as_mut_ptr(), moving)
    };
    if result < 0 { Err(Errno::last()) } else { Ok(()) } // positive: the number of pages not moved; their status tells why
}

/// getcpu(2).
pub fn current_node() -> usize {
    let mut node = 0u32;
    // SAFETY: the kernel writes one number.
    unsafe { libc::syscall(libc::SYS_getcpu, null_mut::<u32>(), &raw mut node, null_mut::<c_void>()) };
    node as usize
}

/// sched_getaffinity(2).
pub fn thread_processors() -> Result<Processors, Errno> {
    let mut set = Processors::EMPTY;
    // SAFETY: the kernel writes at most the size of the set.
    let wrote = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&set.0), set.0.as_mut_ptr()) };
    if wrote < 0 { Err(Errno::last()) } else { Ok(set) }
}

/// Names of processes in it need not be UTF-8.
pub fn system_file(path: &str) -> Option<String> {
    std::fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Fails where they cannot be read now, as there is no memory or no file descriptor left.
pub fn explicit_huge_pages() -> Result<Vec<usize>, Errno> {
    let folders = match std::fs::read_dir("/sys/kernel/mm/hugepages") {
        Ok(folders) => folders,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Errno(error.raw_os_error().unwrap_or_default())),
    };
    let size = |name: &str| name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse::<usize>().ok();
    let mut sizes: Vec<usize> =
        folders.flatten().filter_map(|folder| size(folder.file_name().to_str()?)).map(|kib| kib << 10).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    Ok(sizes)
}

pub fn free_huge_pages(page: usize, node: Option<usize>) -> Option<usize> {
    let folder = node.map_or("/sys/kernel/mm".to_owned(), |node| format!("/sys/devices/system/node/node{node}"));
    system_file(&format!("{folder}/hugepages/hugepages-{}kB/free_hugepages", page >> 10))?.trim().parse().ok()
}

pub fn transparent_huge_pages() -> bool {
    let mut room = [0; 64]; // memory of the heap may be out
    start_of("/sys/kernel/mm/transparent_hugepage/enabled", &mut room).is_some_and(|text| !text.contains("[never]"))
}
