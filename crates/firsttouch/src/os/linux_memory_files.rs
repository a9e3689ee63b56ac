//! Linux: memory that has a file's number (memfd), so that other processes can map it too.

use super::Errno;
use super::linux::errno;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;

const MFD_NOEXEC_SEAL: c_uint = 8; // Linux 6.3

fn system(error: &std::io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(libc::EIO))
}

/// memfd_create(2): `size` bytes that read zero, of explicit huge pages where `huge` says how large. Its size is sealed:
/// nobody who maps it can take pages away from the others.
pub fn memory_file(name: &str, size: usize, huge: Option<usize>) -> Result<File, Errno> {
    let name = CString::new(name).map_err(|_| Errno::INVALID)?;
    let pages = huge.map_or(0, |page| libc::MFD_HUGETLB | page.trailing_zeros() << libc::MFD_HUGE_SHIFT);
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | pages;
    // SAFETY: the name is a C string; the number that comes back is nobody else's.
    let file = unsafe {
        let mut number = libc::memfd_create(name.as_ptr(), flags | MFD_NOEXEC_SEAL);
        if number < 0 && errno() == Errno::INVALID {
            number = libc::memfd_create(name.as_ptr(), flags);
        }
        if number < 0 {
            return Err(errno());
        }
        File::from_raw_fd(number)
    };
    file.set_len(size as u64).map_err(|error| system(&error))?;
    // SAFETY: the number is the file's. Where seals can't be had the size is merely not guarded.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW) };
    Ok(file)
}

/// A second number for the memory file that a process knows by `number`: by its /proc, which the same user may open.
pub fn open_memory_file(process: u32, number: i32, write: bool) -> Result<File, Errno> {
    let mut options = OpenOptions::new();
    options.read(true).write(write).custom_flags(libc::O_NONBLOCK); // whatever it is, opening it does not wait
    options.open(format!("/proc/{process}/fd/{number}")).map_err(|error| system(&error))
}

/// What a process's file with this number is called: `/memfd:NAME (deleted)` where it is a memory file.
pub fn file_name(process: u32, number: i32) -> Result<String, Errno> {
    let name = std::fs::read_link(format!("/proc/{process}/fd/{number}")).map_err(|error| system(&error))?;
    Ok(name.to_string_lossy().into_owned())
}

/// The number by which other processes find a file of this one.
pub fn file_number(file: &File) -> i32 {
    file.as_raw_fd()
}

/// Whether there is such a process, as far as this one may see.
pub fn process_exists(process: u32) -> bool {
    std::fs::exists(format!("/proc/{process}")).unwrap_or(false)
}

/// mmap(2) of a file, shared, at a multiple of `align`.
pub fn map_file(file: &File, size: usize, align: usize, write: bool) -> Result<usize, Errno> {
    let access = libc::PROT_READ | if write { libc::PROT_WRITE } else { 0 };
    let map = |at: usize, size: usize, access: c_int, flags: c_int, file: c_int| {
        // SAFETY: a new mapping, or one in place of a part of what was reserved below and nobody knows.
        let at = unsafe { libc::mmap(at as *mut c_void, size, access, flags, file, 0) };
        if at == libc::MAP_FAILED { Err(errno()) } else { Ok(at as usize) }
    };
    if align <= super::page_size() {
        return map(0, size, access, libc::MAP_SHARED, file.as_raw_fd());
    }
    let room = size.checked_add(align).ok_or(Errno::NO_MEMORY)?;
    let whole = map(0, room, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1)?;
    let start = whole.next_multiple_of(align);
    let mapped = map(start, size, access, libc::MAP_SHARED | libc::MAP_FIXED, file.as_raw_fd());
    let (from, to) = if mapped.is_ok() { (start, start + size) } else { (whole, whole) };
    for (edge, len) in [(whole, from - whole), (to, whole + room - to)] {
        if len > 0 {
            // SAFETY: the edges were just reserved, and nobody knows them.
            unsafe { libc::munmap(edge as *mut c_void, len) };
        }
    }
    mapped
}

/// pwrite(2).
pub fn write_file_at(file: &File, bytes: &[u8], offset: usize) -> Result<(), Errno> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset as u64).map_err(|error| system(&error))
}

/// pread(2).
pub fn read_file_at(file: &File, bytes: &mut [u8], offset: usize) -> Result<(), Errno> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset as u64).map_err(|error| system(&error))
}

/// Bytes of a file: what may be mapped of it without a fault.
pub fn file_size(file: &File) -> Result<usize, Errno> {
    let size = file.metadata().map_err(|error| system(&error))?.len();
    usize::try_from(size).map_err(|_| Errno::INVALID)
}

/// Whether shared memory that asks for transparent huge pages may get them.
pub fn transparent_huge_pages_shared() -> bool {
    let says = super::system_file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    says.is_some_and(|text| !text.contains("[never]") && !text.contains("[deny]"))
}

/// Bytes that nobody can guess, for names.
pub fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    // SAFETY: the kernel writes at most the buffer's length.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast::<c_void>(), bytes.len(), 0) };
    bytes
}
