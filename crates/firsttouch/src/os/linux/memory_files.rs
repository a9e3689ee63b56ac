//! Memory files (memfd), which other processes can map.

use crate::os::types::Errno;
use std::ffi::{CString, c_uint, c_void};
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::ptr::null_mut;

const MFD_NOEXEC_SEAL: c_uint = 8; // Linux 6.3

/// memfd_create(2). Its size is sealed, so that no process can truncate it under the others.
pub fn memory_file(name: &str, size: usize) -> Result<File, Errno> {
    let name = CString::new(name).map_err(|_| Errno::INVALID)?;
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string; the descriptor returned is owned by the file.
    let file = unsafe {
        let mut number = libc::memfd_create(name.as_ptr(), flags | MFD_NOEXEC_SEAL);
        if number < 0 && Errno::last() == Errno::INVALID {
            number = libc::memfd_create(name.as_ptr(), flags);
        }
        if number < 0 {
            return Err(Errno::last());
        }
        File::from_raw_fd(number)
    };
    file.set_len(size as u64).map_err(Errno::from)?;
    // SAFETY: the descriptor is open. Without seals the size is merely not protected.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW) };
    Ok(file)
}

pub fn find_memory_file(process: u32, number: i32, name: &str, write: bool) -> Result<File, Errno> {
    let target = format!("/memfd:{name} (deleted)");
    let check = |path: &str| match std::fs::read_link(path)? {
        found if found.as_os_str() == target.as_str() => Ok(()),
        _ => Err(Errno::NOTHING_THERE), // the descriptor is another file's now
    };
    let path = format!("/proc/{process}/fd/{number}");
    check(&path)?; // before as well, because opening another file may have side effects
    let mut options = OpenOptions::new();
    options.read(true).write(write).custom_flags(libc::O_NONBLOCK); // never blocks, whatever kind of file it is
    let file = options.open(&path)?;
    check(&format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    Ok(file)
}

/// What a clone gets is such a number.
pub fn beside_standard_streams(file: File) -> std::io::Result<File> {
    if file.as_raw_fd() <= libc::STDERR_FILENO { file.try_clone() } else { Ok(file) }
}

pub fn file_number(file: &File) -> i32 {
    file.as_raw_fd()
}

pub fn map_file(file: &File, size: usize, write: bool) -> Result<usize, Errno> {
    if size as u64 > file.metadata()?.len() {
        return Err(Errno::INVALID);
    }
    let access = libc::PROT_READ | if write { libc::PROT_WRITE } else { 0 };
    // SAFETY: without MAP_FIXED, a new mapping replaces no other.
    let at = unsafe { libc::mmap(null_mut(), size, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(at as usize) }
}

pub fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    // SAFETY: the kernel writes at most the length of the buffer.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast::<c_void>(), bytes.len(), 0) };
    bytes
}

/// The device of a file, and its number there.
pub fn file_identity(file: &File) -> Result<(u64, u64), Errno> {
    let found = file.metadata()?;
    Ok((found.dev(), found.ino()))
}
