//! The memory of the machine and of the job, and what the process has used of them.

use crate::error::Limit;
use crate::os::types::{Bound, Errno, MemoryBound, Usage};
use std::ffi::{CStr, c_void};
use std::ptr::{NonNull, null_mut};
use windows_sys::Win32::Foundation::{FILETIME, HMODULE};
use windows_sys::Win32::System::JobObjects::{
    JOB_OBJECT_LIMIT_JOB_MEMORY, JOB_OBJECT_LIMIT_PROCESS_MEMORY, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectExtendedLimitInformation, QueryInformationJobObject,
};
use windows_sys::Win32::System::LibraryLoader::GetProcAddress;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::ProcessStatus::{
    K32EnumProcessModules, K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS,
};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessTimes};

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

pub fn memory_total() -> usize {
    machine().ullTotalPhys as usize
}

pub fn headroom() -> usize {
    let left = memory_bounds().into_iter().flatten().map(|bound| bound.limit.saturating_sub(bound.used)).min();
    left.unwrap_or(usize::MAX)
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

/// That of a job.
pub fn data_limit() -> Option<usize> {
    job().0
}

pub fn why_refused(size: usize, error: Errno) -> Limit {
    if error != Errno::NO_MEMORY {
        return Limit::Errno(error.0);
    }
    let committed = process().PagefileUsage;
    match job() {
        (Some(limit), _) | (None, Some(limit)) if committed.saturating_add(size) > limit => Limit::Data { limit },
        _ => {
            let status = machine();
            let (limit, left) = (status.ullTotalPageFile as usize, status.ullAvailPageFile as usize);
            Limit::Commit { limit, used: limit - left.min(limit) }
        }
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
