//! Memory: mappings, page sizes, prefaulting, NUMA policies, and memory files. The C library has no wrappers for the NUMA calls.

use super::limits::once;
use crate::os::inject::{Call, injected};
use crate::os::types::{Errno, Mode, Nodes};
use std::ffi::{CString, c_int, c_long, c_ulong, c_void};
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicUsize;

fn check(result: impl Into<c_long>) -> Result<(), Errno> {
    if result.into() == 0 { Ok(()) } else { Err(Errno::last()) }
}

// ---- Mappings --------------------------------------------------------------------------------------------------------

#[inline]
pub fn page_size() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(usize::MAX);
    // SAFETY: sysconf has no preconditions.
    once(&SIZE, || Some(unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize))
}

fn map(hint: usize, size: usize, flags: i32) -> Result<usize, Errno> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: without MAP_FIXED, a new mapping replaces no other.
    let at = unsafe { libc::mmap(hint as *mut c_void, size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(at as usize) }
}

/// Linux needs no reservation: nothing else comes to lie in the slots of a claim.
pub fn reserve(_address: usize, _size: usize) -> Result<(), Errno> {
    Ok(())
}

pub unsafe fn release(_address: usize) {}

/// mmap(2) with `MAP_FIXED_NOREPLACE`. Kernels before 4.17 treat the address as a hint.
pub fn commit(address: usize, size: usize) -> Result<usize, Errno> {
    let at = map(address, size, libc::MAP_FIXED_NOREPLACE)?;
    if at == address {
        return Ok(at);
    }
    // SAFETY: the mapping was made here, and has no other user.
    unsafe { libc::munmap(at as *mut c_void, size) };
    Err(Errno::EXISTS)
}

pub fn map_aligned(size: usize, align: usize, _node: Option<usize>) -> Result<usize, Errno> {
    let spare = align - page_size();
    let at = map(0, size.checked_add(spare).ok_or(Errno::NO_MEMORY)?, 0)?;
    let start = at.next_multiple_of(align);
    // SAFETY: the edges were just mapped and are not in use. If they cannot be unmapped, they stay unused.
    unsafe {
        if start > at {
            let _ = unmap(at, start - at);
        }
        if start < at + spare {
            let _ = unmap(start + size, at + spare - start);
        }
    }
    Ok(start)
}

pub unsafe fn decommit(address: usize, size: usize) -> Result<(), Errno> {
    // SAFETY: as demanded.
    unsafe { unmap(address, size) }
}

/// munmap(2), which the kernel may refuse where a mapping would be split.
pub unsafe fn unmap(address: usize, size: usize) -> Result<(), Errno> {
    // SAFETY: as demanded.
    check(unsafe { libc::munmap(address as *mut c_void, size) })
}

/// mmap(2) with `MAP_FIXED`. Where the kernel refuses, the range is as it was.
pub unsafe fn map_anew(address: usize, size: usize) -> Result<(), Errno> {
    map(address, size, libc::MAP_FIXED).map(drop) // over what this module mapped, whose owner uses it no more
}

/// mremap(2) with `MREMAP_DONTUNMAP`, from Linux 5.7 on; of pages in several mappings from 6.17 on.
pub unsafe fn remap(from: usize, to: usize, size: usize) -> Result<(), Errno> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    // SAFETY: as demanded.
    unsafe {
        let to_address = to as *mut c_void;
        let error = match injected(Call::Map) {
            true => Errno::NO_MEMORY,
            false if libc::mremap(from as *mut c_void, size, size, flags, to_address) != libc::MAP_FAILED => {
                return Ok(());
            }
            false => Errno::last(),
        };
        // One mapping is moved after the other, and the last ones may be refused: what is mapped now was moved. Systems that do not
        // know the flag say that the call is invalid, and may say of any page that it is mapped.
        let may_be_part = error != Errno::INVALID;
        let is_mapped = |at: &usize| libc::madvise(to_address.add(*at), page_size(), libc::MADV_NORMAL) == 0;
        for at in (0..size).step_by(page_size()).take_while(|at| may_be_part && is_mapped(at)) {
            std::ptr::copy_nonoverlapping((to + at) as *const u8, (from + at) as *mut u8, page_size());
        }
        libc::munmap(to_address, size);
        Err(error)
    }
}

/// madvise(2) with `MADV_COLD`. Without it the kernel keeps them whole until memory runs short.
pub fn split_huge(address: usize, size: usize) {
    // SAFETY: the advice changes no content, whatever is mapped there.
    unsafe { libc::madvise(address as *mut c_void, size, libc::MADV_COLD) };
}

/// madvise(2) with `MADV_DONTNEED`, which locked memory refuses.
pub unsafe fn discard(address: usize, size: usize) -> Result<(), Errno> {
    // SAFETY: as demanded.
    check(unsafe { libc::madvise(address as *mut c_void, size, libc::MADV_DONTNEED) })
}

/// mprotect(2), which fails where there are too many mappings.
pub unsafe fn protect(address: usize, size: usize, accessible: bool) -> Result<(), Errno> {
    let access = if accessible { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
    // SAFETY: as demanded.
    check(unsafe { libc::mprotect(address as *mut c_void, size, access) })
}

// ---- Placement -------------------------------------------------------------------------------------------------------

/// madvise(2) with `MADV_HUGEPAGE`.
pub fn advise_huge(address: usize, size: usize) -> Result<(), Errno> {
    // SAFETY: the advice changes page sizes, never content.
    check(unsafe { libc::madvise(address as *mut c_void, size, libc::MADV_HUGEPAGE) })
}

/// madvise(2) with `MADV_NOHUGEPAGE`. The huge pages that are there stay.
pub fn unadvise_huge(address: usize, size: usize) {
    // SAFETY: the advice changes page sizes, never content, whatever is mapped there.
    unsafe { libc::madvise(address as *mut c_void, size, libc::MADV_NOHUGEPAGE) };
}

pub fn map_huge(size: usize, page: usize, _node: Option<usize>) -> Result<usize, Errno> {
    let which = (page.trailing_zeros() as c_int) << libc::MAP_HUGE_SHIFT;
    map(0, size, libc::MAP_HUGETLB | which)
}

/// madvise(2) with `MADV_POPULATE_WRITE` or `MADV_POPULATE_READ`, from Linux 5.14 on.
pub fn populate(address: usize, size: usize, write: bool) -> Result<(), Errno> {
    let advice = if write { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
    // SAFETY: the advice faults pages in and changes no content.
    check(unsafe { libc::madvise(address as *mut c_void, size, advice) })
}

/// mlock(2).
pub fn lock(address: usize, size: usize) -> Result<(), Errno> {
    // SAFETY: locking changes no content.
    check(unsafe { libc::mlock(address as *const c_void, size) })
}

/// mbind(2).
pub fn bind(address: usize, size: usize, mode: Mode, nodes: &Nodes) -> Result<(), Errno> {
    let (flags, mask, max) = match mode {
        Mode::Local => (0, null(), 0),
        // Node numbers stay absolute when the cpuset changes.
        _ => (libc::MPOL_F_STATIC_NODES, nodes.0.as_ptr(), MAX_NODE),
    };
    // SAFETY: the kernel reads the set; a policy changes no content.
    check(unsafe { libc::syscall(libc::SYS_mbind, address, size, mode as c_int | flags, mask, max, 0) })
}

/// The flags that the kernel returns together with the mode.
const MODE_FLAGS: c_int = libc::MPOL_F_NUMA_BALANCING | libc::MPOL_F_RELATIVE_NODES | libc::MPOL_F_STATIC_NODES;
// From linux/mempolicy.h; the libc crate has only the other modes.
const MPOL_PREFERRED_MANY: c_int = 5;
const MPOL_F_MEMS_ALLOWED: c_ulong = 4;
const MPOL_MF_MOVE: c_ulong = 2;
const MAX_NODE: c_ulong = Nodes::CAPACITY as c_ulong + 1; // the kernel ignores the last bit

/// get_mempolicy(2).
fn get_mempolicy(mode: *mut c_int, flags: c_ulong) -> Result<Nodes, Errno> {
    let mut nodes = Nodes::EMPTY;
    // SAFETY: the kernel writes one number, where it is given room for it, and as many bits as it is told there are.
    check(unsafe { libc::syscall(libc::SYS_get_mempolicy, mode, nodes.0.as_mut_ptr(), MAX_NODE - 1, 0, flags) })?;
    Ok(nodes)
}

pub fn allowed_nodes() -> Result<Nodes, Errno> {
    get_mempolicy(null_mut(), MPOL_F_MEMS_ALLOWED)
}

/// A preference is no restriction. Relative nodes are not the numbers of any: none is allowed then.
pub fn policy_bounds() -> Option<Nodes> {
    let mut mode = 0;
    let nodes = get_mempolicy(&raw mut mode, 0).ok()?;
    match mode & !MODE_FLAGS {
        libc::MPOL_DEFAULT | libc::MPOL_PREFERRED | libc::MPOL_LOCAL | MPOL_PREFERRED_MANY => None,
        _ if mode & libc::MPOL_F_RELATIVE_NODES == 0 => Some(nodes),
        _ => Some(Nodes::EMPTY),
    }
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

// ---- Memory files ----------------------------------------------------------------------------------------------------

/// memfd_create(2). Its size is sealed, so that no process can truncate it under the others.
pub fn memory_file(name: &str, size: usize) -> Result<File, Errno> {
    let name = CString::new(name).map_err(|_| Errno::INVALID)?;
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string; the descriptor returned is owned by the file.
    let file = unsafe {
        let mut number = libc::memfd_create(name.as_ptr(), flags | libc::MFD_NOEXEC_SEAL); // from Linux 6.3 on
        if number < 0 && Errno::last() == Errno::INVALID {
            number = libc::memfd_create(name.as_ptr(), flags);
        }
        if number < 0 {
            return Err(Errno::last());
        }
        let file = File::from_raw_fd(number);
        // If a standard stream is closed, the file got its number, and would receive the program's output.
        if number <= libc::STDERR_FILENO { file.try_clone()? } else { file }
    };
    file.set_len(size as u64).map_err(Errno::from)?;
    // SAFETY: the descriptor is open. Without seals the size is merely not protected.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW) };
    Ok(file)
}

pub fn find_memory_file(process: u32, number: i32, name: &str) -> Result<File, Errno> {
    let target = format!("/memfd:{name} (deleted)");
    let check = |path: &str| match std::fs::read_link(path)? {
        found if found.as_os_str() == target.as_str() => Ok(()),
        _ => Err(Errno::NOTHING_THERE), // the descriptor is another file's now
    };
    let path = format!("/proc/{process}/fd/{number}");
    check(&path)?; // before as well, because opening another file may have side effects
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK); // never blocks, whatever kind of file it is
    let file = options.open(&path)?;
    check(&format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    Ok(file)
}

pub fn file_number(file: &File) -> i32 {
    file.as_raw_fd()
}

pub fn map_file(file: &File, from: usize, size: usize, write: bool) -> Result<usize, Errno> {
    let end = from.checked_add(size).ok_or(Errno::INVALID)?;
    if end as u64 > file.metadata()?.len() {
        return Err(Errno::INVALID);
    }
    let access = libc::PROT_READ | if write { libc::PROT_WRITE } else { 0 };
    // SAFETY: without MAP_FIXED, a new mapping replaces no other.
    let at = unsafe { libc::mmap(null_mut(), size, access, libc::MAP_SHARED, file.as_raw_fd(), from as libc::off_t) };
    if at == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(at as usize) }
}

pub fn random() -> Result<[u8; 16], Errno> {
    let mut bytes = [0; 16];
    // SAFETY: the kernel writes at most the length of the buffer.
    let written = unsafe { libc::getrandom(bytes.as_mut_ptr().cast::<c_void>(), bytes.len(), 0) };
    if written == bytes.len() as isize { Ok(bytes) } else { Err(Errno::last()) }
}
