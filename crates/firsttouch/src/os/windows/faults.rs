//! Reports the first access violation of the process, then lets it take its course.

use crate::os::types::{Errno, Fault};
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use windows_sys::Win32::Foundation::EXCEPTION_ACCESS_VIOLATION;
use windows_sys::Win32::System::Diagnostics::Debug::{
    AddVectoredExceptionHandler, EXCEPTION_CONTINUE_SEARCH, EXCEPTION_POINTERS,
};

// The numbers of files are those of the C runtime that Python uses.
#[link(name = "api-ms-win-crt-stdio-l1-1-0", kind = "raw-dylib")]
unsafe extern "C" {
    fn _write(file: i32, bytes: *const c_void, count: u32) -> i32;
}

static REPORT: OnceLock<fn(&Fault)> = OnceLock::new();
static SEEN: AtomicBool = AtomicBool::new(false);

/// It then goes to other handlers. Only the first call has an effect.
pub fn watch_faults(report: fn(&Fault)) -> Result<(), Errno> {
    if REPORT.set(report).is_err() {
        return Ok(());
    }
    // SAFETY: the handler has the signature that the system calls, and stays loaded.
    let handle = unsafe { AddVectoredExceptionHandler(1, Some(on_exception)) };
    if handle.is_null() { Err(Errno::NO_MEMORY) } else { Ok(()) }
}

unsafe extern "system" fn on_exception(pointers: *mut EXCEPTION_POINTERS) -> i32 {
    // SAFETY: the system passes a record that is valid while the handler runs.
    let record = unsafe { &*(*pointers).ExceptionRecord };
    if record.ExceptionCode == EXCEPTION_ACCESS_VIOLATION && !SEEN.swap(true, Relaxed) {
        let [kind, address, ..] = record.ExceptionInformation;
        REPORT.get().into_iter().for_each(|report| {
            report(&Fault { signal: "EXCEPTION_ACCESS_VIOLATION", address, wrote: Some(kind == 1) })
        });
    }
    EXCEPTION_CONTINUE_SEARCH
}

/// An error could not be reported.
pub fn write_in_handler(file: i32, bytes: &[u8]) {
    // SAFETY: the bytes are valid.
    unsafe { _write(file, bytes.as_ptr().cast(), bytes.len() as u32) };
}
