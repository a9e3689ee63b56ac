//! Reads small files of the kernel. Nothing here uses the global allocator, so that the background purger may call it.

use super::cancellation::uncancelled;
use super::kernel_texts::number;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Opens no file from now on.
pub fn stop() {
    STOPPED.store(true, Relaxed);
}

/// Returns whether [`stop`] was called.
pub fn stopped() -> bool {
    STOPPED.load(Relaxed)
}

static ASKS_NOTHING: AtomicBool = AtomicBool::new(false);

/// Asks the kernel nothing from now on: neither what pages are nor what limits the process has. A program that restricts its
/// own system calls to those that `malloc` needs may be killed for any other.
pub fn ask_nothing() {
    stop();
    ASKS_NOTHING.store(true, Relaxed);
}

/// Returns whether [`ask_nothing`] was called.
pub fn asks_nothing() -> bool {
    ASKS_NOTHING.load(Relaxed)
}

/// Reads as much of a small file as the buffer holds.
pub fn read<'a>(path: &CStr, buffer: &'a mut [u8]) -> Option<&'a str> {
    if stopped() {
        return None;
    }
    // SAFETY: the path is a C string and the kernel writes at most the length of the buffer.
    let length = uncancelled(|| unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return -1;
        }
        let length = libc::read(file, buffer.as_mut_ptr().cast(), buffer.len());
        libc::close(file);
        length
    });
    std::str::from_utf8(&buffer[..usize::try_from(length).ok()?]).ok()
}

/// Reads a file that holds a number.
pub fn read_number(path: &CStr) -> Option<usize> {
    number(read(path, &mut [0; 64])?)
}
