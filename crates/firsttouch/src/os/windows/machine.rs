//! The memory of the machine and of the job, and the process's use of them; processors and threads; and the first access violation,
//! which is reported before it takes its course.

use crate::error::Limit;
use crate::os::types::{Bound, Errno, Fault, MemoryBound, Usage};
use once_cell::race::OnceBox;
use std::ffi::{CStr, c_void};
use std::ptr::{NonNull, null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use windows_sys::Win32::Foundation::{EXCEPTION_ACCESS_VIOLATION, FILETIME, HMODULE};
use windows_sys::Win32::System::Diagnostics::Debug::{
    AddVectoredExceptionHandler, EXCEPTION_CONTINUE_SEARCH, EXCEPTION_POINTERS,
};
use windows_sys::Win32::System::JobObjects::{
    JOB_OBJECT_LIMIT_JOB_MEMORY, JOB_OBJECT_LIMIT_PROCESS_MEMORY, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectExtendedLimitInformation, QueryInformationJobObject,
};
use windows_sys::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_PIN,
    GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, GetModuleHandleExW, GetProcAddress,
};
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::ProcessStatus::{
    K32EnumProcessModules, K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS,
};
use windows_sys::Win32::System::SystemInformation::{GetSystemInfo, GlobalMemoryStatusEx, MEMORYSTATUSEX};
use windows_sys::Win32::System::Threading::{
    ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, GetCurrentProcess, GetCurrentProcessorNumberEx, GetProcessTimes,
    INFINITE, WaitOnAddress, WakeByAddressSingle,
};

/// The memory of the machine.
fn machine() -> MEMORYSTATUSEX {
    // SAFETY: a status of zero bytes but for its length is valid, and the system fills it.
    unsafe {
        let mut status: MEMORYSTATUSEX = std::mem::zeroed();
        status.dwLength = size_of::<MEMORYSTATUSEX>() as u32;
        GlobalMemoryStatusEx(&mut status);
        status
    }
}

/// What the process has in memory, and has committed.
fn process() -> PROCESS_MEMORY_COUNTERS {
    // SAFETY: counters of zero bytes are valid, and the system fills them.
    unsafe {
        let mut counters: PROCESS_MEMORY_COUNTERS = std::mem::zeroed();
        K32GetProcessMemoryInfo(GetCurrentProcess(), &mut counters, size_of::<PROCESS_MEMORY_COUNTERS>() as u32);
        counters
    }
}

/// The limits of the job that the process belongs to, if any: of the committed memory of one process, and of all.
fn job() -> (Option<usize>, Option<usize>) {
    // SAFETY: limits of zero bytes are valid, and the system fills as many as it is told.
    let found = unsafe {
        let mut limits: JOBOBJECT_EXTENDED_LIMIT_INFORMATION = std::mem::zeroed();
        let size = size_of::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>() as u32;
        let which = JobObjectExtendedLimitInformation;
        let done = QueryInformationJobObject(null_mut(), which, (&raw mut limits).cast(), size, null_mut());
        if done != 0 { limits } else { std::mem::zeroed() }
    };
    let flags = found.BasicLimitInformation.LimitFlags;
    let limit = |flag, bytes| (flags & flag != 0).then_some(bytes);
    (
        limit(JOB_OBJECT_LIMIT_PROCESS_MEMORY, found.ProcessMemoryLimit),
        limit(JOB_OBJECT_LIMIT_JOB_MEMORY, found.JobMemoryLimit),
    )
}

pub fn symbol(name: &CStr) -> Option<NonNull<c_void>> {
    let mut modules: [HMODULE; 1024] = [null_mut(); 1024];
    let mut bytes = 0;
    // SAFETY: the system writes as many handles as there is room for.
    unsafe {
        K32EnumProcessModules(GetCurrentProcess(), modules.as_mut_ptr(), size_of_val(&modules) as u32, &mut bytes);
    }
    let count = (bytes as usize / size_of::<HMODULE>()).min(modules.len());
    // SAFETY: the handles are of modules that are loaded, and the name is a C string.
    let find = |&module: &HMODULE| unsafe { GetProcAddress(module, name.as_ptr().cast()) };
    modules[..count].iter().find_map(find).and_then(|found| NonNull::new(found as *mut c_void))
}

pub fn library_of(function: *const c_void) -> *const c_void {
    let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    let mut module = null_mut();
    // SAFETY: the address is looked up, and the system writes one handle.
    unsafe { GetModuleHandleExW(flags, function.cast(), &mut module) };
    module
}

pub fn memory_total() -> usize {
    machine().ullTotalPhys as usize
}

pub fn headroom() -> usize {
    memory_bounds().into_iter().flatten().map(|bound| bound.left()).min().unwrap_or(usize::MAX)
}

pub fn memory_bounds() -> [Option<MemoryBound>; 4] {
    let status = machine();
    let (total, free) = (status.ullTotalPhys as usize, status.ullAvailPhys as usize);
    let committed = process().PagefileUsage;
    let (most, left) = (status.ullTotalPageFile as usize, status.ullAvailPageFile as usize);
    let bound = |whose, limit: Option<usize>| limit.map(|limit| MemoryBound { whose, limit, used: committed });
    let (of_process, of_job) = job();
    [
        Some(MemoryBound { whose: Bound::Machine, limit: total, used: total - free.min(total) }),
        bound(Bound::Group, of_job),
        bound(Bound::Data, of_process),
        Some(MemoryBound { whose: Bound::Commit, limit: most, used: most - left.min(most) }),
    ]
}

pub fn why_refused(size: usize, error: Errno) -> Limit {
    let [_, bounds @ ..] = memory_bounds();
    let tight = bounds.into_iter().flatten().find(|bound| bound.left() < size).or(bounds[2]);
    match (error, tight) {
        (Errno::AGAIN, _) => Limit::Locked(0),
        (Errno::NO_SLOT, _) => Limit::Claims,
        (Errno::NO_MEMORY, Some(bound)) => Limit::Bound(bound),
        _ => Limit::Errno(error.0),
    }
}

pub fn resident() -> usize {
    process().WorkingSetSize
}

pub fn resident_and_peak() -> Option<(usize, usize)> {
    let counters = process();
    Some((counters.WorkingSetSize, counters.PeakWorkingSetSize))
}

/// By the clock that Python's `time.monotonic` has. Windows does not tell faults that waited for a disk from others.
pub fn usage() -> Usage {
    let seconds = |time: FILETIME| (u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)) as f64 * 1e-7;
    // SAFETY: times of zero bytes are valid, and the system fills four.
    let (kernel, user, ticks, frequency) = unsafe {
        let (mut ticks, mut frequency) = (0, 0);
        QueryPerformanceCounter(&mut ticks);
        QueryPerformanceFrequency(&mut frequency);
        let mut times: [FILETIME; 4] = std::mem::zeroed();
        let [made, ended, kernel, user] = &mut times;
        GetProcessTimes(GetCurrentProcess(), made, ended, kernel, user);
        (seconds(times[2]), seconds(times[3]), ticks, frequency)
    };
    Usage {
        wall: ticks as f64 / frequency.max(1) as f64,
        user,
        kernel,
        minor_faults: u64::from(process().PageFaultCount),
        ..Usage::default()
    }
}

// ---- Processors and threads ------------------------------------------------------------------------------------------

#[inline]
pub fn page_size() -> usize {
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

/// A running thread; waited for when it is dropped.
pub struct Thread(Option<JoinHandle<()>>);

impl Drop for Thread {
    fn drop(&mut self) {
        let _ = self.0.take().map(JoinHandle::join);
    }
}

/// There are no signals to block, and no forks that it would have to end for.
pub unsafe fn spawn(
    body: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
    _task: &'static AtomicU32,
) -> Result<Thread, Errno> {
    let (mut library, argument) = (null_mut(), argument.expose_provenance());
    // SAFETY: the system writes a handle of the library that the body is in, which stays loaded from now on: what such a
    // thread runs must not be unmapped.
    unsafe {
        let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN;
        GetModuleHandleExW(flags, body as *const u16, &mut library);
    }
    let thread = Builder::new().name("firsttouch".into()).stack_size(256 << 10);
    let thread = thread.spawn(move || {
        body(with_exposed_provenance_mut(argument));
    });
    thread.map(|thread| Thread(Some(thread))).map_err(Errno::from)
}

// ---- Access violations -----------------------------------------------------------------------------------------------

// The numbers of files are those of the C runtime that Python uses.
#[link(name = "api-ms-win-crt-stdio-l1-1-0", kind = "raw-dylib")]
unsafe extern "C" {
    fn _write(file: i32, bytes: *const c_void, count: u32) -> i32;
}

static REPORT: OnceBox<fn(&Fault)> = OnceBox::new();
static SEEN: AtomicBool = AtomicBool::new(false);

/// It then goes to other handlers. Only the first call has an effect.
pub fn watch_faults(report: fn(&Fault)) -> Result<(), Errno> {
    if REPORT.set(Box::new(report)).is_err() {
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
