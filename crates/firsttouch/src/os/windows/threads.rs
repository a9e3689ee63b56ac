//! Threads, and words to wait on.

use crate::os::inject::{Call, injected};
use crate::os::types::Errno;
use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicU32;
use std::time::Duration;
use windows_sys::Win32::Foundation::{CloseHandle, HANDLE};
use windows_sys::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_PIN, GetModuleHandleExW,
};
use windows_sys::Win32::System::SystemInformation::GetSystemInfo;
use windows_sys::Win32::System::Threading::{
    ALL_PROCESSOR_GROUPS, CreateThread, GetActiveProcessorCount, GetCurrentProcessorNumberEx, INFINITE,
    WaitForSingleObject, WaitOnAddress, WakeByAddressSingle,
};

#[inline]
pub fn page_size() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    if SIZE.load(Relaxed) == 0 {
        // SAFETY: a description of zero bytes is valid, and the system fills it.
        let size = unsafe {
            let mut found = std::mem::zeroed();
            GetSystemInfo(&mut found);
            found.dwPageSize
        };
        SIZE.store(size as usize, Relaxed);
    }
    SIZE.load(Relaxed)
}

pub fn processors() -> usize {
    // SAFETY: returns a number.
    (unsafe { GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) }).max(1) as usize
}

/// Processors of a group have 64 numbers.
#[inline]
pub fn current_processor() -> usize {
    // SAFETY: a number of zero bytes is valid, and the system fills it.
    unsafe {
        let mut number = std::mem::zeroed();
        GetCurrentProcessorNumberEx(&mut number);
        usize::from(number.Group) * 64 + usize::from(number.Number)
    }
}

pub fn wait(word: &AtomicU32, value: u32, timeout: Option<Duration>) {
    let milliseconds = timeout.map_or(INFINITE, |time| time.as_millis().clamp(1, 1 << 30) as u32);
    // SAFETY: both words outlive the call.
    unsafe { WaitOnAddress(word.as_ptr().cast(), (&raw const value).cast(), size_of::<u32>(), milliseconds) };
}

pub fn wake(word: &AtomicU32) {
    // SAFETY: the system uses the address only as a key.
    unsafe { WakeByAddressSingle(word.as_ptr().cast()) };
}

type Body = extern "C" fn(*mut c_void) -> *mut c_void;

/// A running thread; waited for when it is dropped.
pub struct Helper(HANDLE);

// SAFETY: a handle names the thread in the whole process.
unsafe impl Send for Helper {}

impl Drop for Helper {
    fn drop(&mut self) {
        // SAFETY: the handle is this thread's, and is closed once.
        unsafe {
            WaitForSingleObject(self.0, INFINITE);
            CloseHandle(self.0);
        }
    }
}

pub unsafe fn help(body: Body, work: *mut c_void) -> Result<Helper, Errno> {
    if injected(Call::Spawn) {
        return Err(Errno::AGAIN);
    }
    extern "system" fn begin(task: *mut c_void) -> u32 {
        // SAFETY: `help` made it for this thread alone.
        let (body, work) = *unsafe { Box::from_raw(task.cast::<(Body, *mut c_void)>()) };
        body(work);
        0
    }
    const STACK: usize = 256 << 10;
    let task = Box::into_raw(Box::new((body, work)));
    // SAFETY: the thread takes its task over; if there is none, it is still this function's.
    unsafe {
        let handle = CreateThread(null(), STACK, Some(begin), task.cast(), 0, null_mut());
        if handle.is_null() {
            let error = Errno::last();
            drop(Box::from_raw(task));
            return Err(error);
        }
        Ok(Helper(handle))
    }
}

/// A thread started by [`spawn`].
pub struct Thread(Helper);

/// There are no signals to block, and no forks that it would have to end for.
pub fn spawn(body: Body, _task: &'static AtomicU32) -> Result<Thread, Errno> {
    let mut library = null_mut();
    // SAFETY: the system writes a handle of the library that the body is in, which stays loaded from now on: what such a
    // thread runs must not be unmapped. The body uses no argument.
    unsafe {
        let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN;
        GetModuleHandleExW(flags, body as *const u16, &mut library);
        help(body, null_mut()).map(Thread)
    }
}

impl Thread {
    /// Waits until the thread has ended.
    pub fn join(self) {
        drop(self.0);
    }
}

pub fn name_thread(name: &CStr, _task: &AtomicU32) {
    use windows_sys::Win32::System::Threading::{GetCurrentThread, SetThreadDescription};
    let wide: Vec<u16> = name.to_bytes_with_nul().iter().map(|&byte| u16::from(byte)).collect();
    // SAFETY: the name ends with a zero.
    unsafe { SetThreadDescription(GetCurrentThread(), wide.as_ptr()) };
}

pub fn seed() -> usize {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) as usize // its keys are the system's random numbers
}
