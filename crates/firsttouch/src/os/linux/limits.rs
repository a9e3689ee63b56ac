//! The limits of the machine, the container and the process. Nothing here uses the global allocator, so that the background
//! purger may call it.

use super::process::page_size;
use crate::error::Limit;
use crate::os::inject::{Call, injected};
use crate::os::types::Errno;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Whether no file may be opened any more, and the memory that was available but not free when that began.
static NO_FILES: AtomicBool = AtomicBool::new(false);
static RECLAIMABLE: AtomicUsize = AtomicUsize::new(0);

/// Stops opening files. In a foreign program, even a short-lived descriptor may take the number that the program
/// expects. Constant figures are read now; the others are then limited to system calls without files.
pub fn stop_reading_files() {
    RECLAIMABLE.store(meminfo("MemAvailable").unwrap_or(0).saturating_sub(machine().1), Relaxed);
    let _ = (memory_total(), huge_page_size(), super::process::processors());
    NO_FILES.store(true, Relaxed);
}

/// Reads a small file of the kernel.
fn read<'a>(path: &CStr, buffer: &'a mut [u8]) -> Option<&'a str> {
    if NO_FILES.load(Relaxed) {
        return None;
    }
    // SAFETY: the path is a C string and the kernel writes at most the length of the buffer.
    let length = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let length = libc::read(file, buffer.as_mut_ptr().cast(), buffer.len());
        libc::close(file);
        length
    };
    std::str::from_utf8(&buffer[..usize::try_from(length).ok()?]).ok()
}

fn number(text: &str) -> Option<usize> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

fn read_number(path: &CStr) -> Option<usize> {
    number(read(path, &mut [0; 64])?)
}

/// Returns a value of /proc/meminfo in bytes.
fn meminfo(name: &str) -> Option<usize> {
    let mut buffer = [0; 4096];
    let text = read(c"/proc/meminfo", &mut buffer)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    number(line).map(|kib| kib << 10)
}

/// Returns the size of a transparent huge page in bytes, or `None` if the kernel has none.
pub fn huge_page_size() -> Option<usize> {
    static SIZE: AtomicUsize = AtomicUsize::new(1);
    if SIZE.load(Relaxed) == 1 {
        let size = read_number(c"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").unwrap_or(0);
        SIZE.store(if size.is_power_of_two() { size } else { 0 }, Relaxed);
    }
    Some(SIZE.load(Relaxed)).filter(|&size| size > 0)
}

/// Returns the current limit on the address space of the process in bytes, if any.
pub fn address_space_limit() -> Option<usize> {
    rlimit(libc::RLIMIT_AS)
}

/// Returns the soft limit on the number of open file descriptors, if there is one.
pub fn file_limit() -> Option<usize> {
    rlimit(libc::RLIMIT_NOFILE)
}

fn rlimit(which: libc::__rlimit_resource_t) -> Option<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one rlimit.
    let result = unsafe { libc::getrlimit(which, &mut limit) };
    (result == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
}

/// Returns the limit that explains why `size` bytes were refused with `error`.
pub fn why_refused(size: usize, error: Errno) -> Limit {
    if error.0 == libc::EAGAIN {
        return Limit::Locked { limit: rlimit(libc::RLIMIT_MEMLOCK).unwrap_or(0) };
    }
    if error.0 != libc::ENOMEM {
        return Limit::Errno(error.0);
    }
    let used = read(c"/proc/self/statm", &mut [0; 128]).and_then(number).map_or(0, |pages| pages * page_size());
    // The request is rounded to huge pages, and needs records of at most a hundredth.
    let about = size.saturating_add(size / 100 + (4 << 20));
    if let Some(limit) = rlimit(libc::RLIMIT_AS)
        && used.saturating_add(about) > limit
    {
        return Limit::AddressSpace { limit, used };
    }
    let total = meminfo("MemTotal").unwrap_or(0) + meminfo("SwapTotal").unwrap_or(0);
    match read_number(c"/proc/sys/vm/overcommit_memory") {
        Some(2) => {
            let limit = meminfo("CommitLimit").unwrap_or(0);
            let used = meminfo("Committed_AS").unwrap_or(0);
            if used.saturating_add(size) > limit {
                return Limit::Commit { limit, used };
            }
        }
        Some(0) if size > total => return Limit::Memory { total },
        _ => {}
    }
    if let Some(limit) = rlimit(libc::RLIMIT_DATA) {
        return Limit::Data { limit };
    }
    match read_number(c"/proc/sys/vm/max_map_count") {
        Some(limit) if size <= total => Limit::Maps { limit },
        _ => Limit::Errno(error.0),
    }
}

/// Returns whether the process has almost as many mappings as it may have.
pub fn mappings_are_short() -> bool {
    const NEAR: usize = 16;
    if NO_FILES.load(Relaxed) {
        return address_space_limit().is_none(); // of the usual reasons that is the other
    }
    let Some(limit) = read_number(c"/proc/sys/vm/max_map_count") else { return false };
    let mut lines = 0;
    // SAFETY: the path ends in a zero byte, and the kernel writes at most the buffer's length.
    unsafe {
        let file = libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return false;
        }
        let mut part = [0u8; 4096];
        while let Ok(read @ 1..) = usize::try_from(libc::read(file, part.as_mut_ptr().cast(), part.len())) {
            lines += part[..read].iter().filter(|&&byte| byte == b'\n').count();
        }
        libc::close(file);
    }
    lines + NEAR >= limit
}

/// Returns the total and the free memory of the machine in bytes, where there is no /proc.
fn machine() -> (usize, usize) {
    // SAFETY: a sysinfo of zero bytes is valid, and the kernel writes one.
    unsafe {
        let mut info: libc::sysinfo = std::mem::zeroed();
        match libc::sysinfo(&mut info) {
            0 => (info.totalram as usize * info.mem_unit as usize, info.freeram as usize * info.mem_unit as usize),
            _ => (usize::MAX, usize::MAX),
        }
    }
}

/// Returns the number of threads that run or could, on all processors (proc_loadavg(5)).
///
/// # Errors
/// If the system does not tell.
pub fn runnable_threads() -> Result<usize, Errno> {
    let mut buffer = [0; 64];
    let text = if injected(Call::RunnableThreads) { None } else { read(c"/proc/loadavg", &mut buffer) };
    let running = text.and_then(|text| text.split_ascii_whitespace().nth(3)?.split('/').next()?.parse().ok());
    running.ok_or(Errno::NOTHING_THERE)
}

/// Returns the memory of the machine or, if smaller, the limit of the container, in bytes, as it was when first asked:
/// every new pool asks, and the answer takes thirty files.
pub fn memory_total() -> usize {
    static TOTAL: AtomicUsize = AtomicUsize::new(0);
    if TOTAL.load(Relaxed) == 0 {
        let total = meminfo("MemTotal").unwrap_or_else(|| machine().0);
        TOTAL.store(cgroup().map_or(total, |(limit, _)| total.min(limit)), Relaxed);
    }
    TOTAL.load(Relaxed)
}

/// Returns the resident memory of the process in bytes.
pub fn resident() -> usize {
    let mut buffer = [0; 128];
    let pages =
        read(c"/proc/self/statm", &mut buffer).and_then(|text| text.split_ascii_whitespace().nth(1)?.parse().ok());
    pages.map_or(0, |pages: usize| pages * page_size())
}

/// Returns the available memory in bytes: the smaller of MemAvailable and what the memory cgroup has left.
pub fn headroom() -> usize {
    let free = meminfo("MemAvailable").unwrap_or_else(|| machine().1.saturating_add(RECLAIMABLE.load(Relaxed)));
    cgroup().map_or(free, |(limit, used)| free.min(limit.saturating_sub(used)))
}

/// Returns the tightest limit of the memory cgroups, and its use, in bytes. Inside a container its own cgroup is mounted at
/// the root; outside, /proc/self/cgroup names it.
fn cgroup() -> Option<(usize, usize)> {
    let mut buffer = [0; 4096];
    let groups = read(c"/proc/self/cgroup", &mut buffer)?;
    let mut least: Option<(usize, usize)> = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let roots: &[&str] = if controllers.is_empty() {
            &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        } else if controllers.split(',').any(|name| name == "memory") {
            &["/sys/fs/cgroup/memory"]
        } else {
            continue;
        };
        for root in roots {
            let mut group = group;
            loop {
                if let Some((limit, used)) = group_bounds(root, group) {
                    let left = limit.saturating_sub(used);
                    if least.is_none_or(|(limit, used)| left < limit.saturating_sub(used)) {
                        least = Some((limit, used));
                    }
                }
                match group.rfind('/') {
                    Some(end) => group = &group[..end],
                    None => break,
                }
            }
        }
    }
    least
}

fn group_bounds(root: &str, group: &str) -> Option<(usize, usize)> {
    let group = group.trim_end_matches('/');
    let first = |names: [&str; 2]| names.iter().find_map(|name| read_joined(&[root, group, "/", name]));
    let limit = first(["memory.max", "memory.limit_in_bytes"]).filter(|&limit| limit < usize::MAX >> 2)?;
    let used = first(["memory.current", "memory.usage_in_bytes"])?;
    let cache = inactive_file(root, group).unwrap_or(0); // reclaimed before the group runs out of memory
    Some((limit, used.saturating_sub(cache)))
}

fn inactive_file(root: &str, group: &str) -> Option<usize> {
    let mut path = [0; 4096];
    let mut buffer = [0; 8192];
    let text = read(join(&mut path, &[root, group, "/memory.stat"])?, &mut buffer)?;
    let value = |name: &str| text.lines().find_map(|line| number(line.strip_prefix(name)?));
    value("total_inactive_file ").or_else(|| value("inactive_file "))
}

fn read_joined(parts: &[&str]) -> Option<usize> {
    read_number(join(&mut [0; 4096], parts)?)
}

fn join<'a>(path: &'a mut [u8; 4096], parts: &[&str]) -> Option<&'a CStr> {
    let mut end = 0;
    for part in parts {
        path.get_mut(end..end + part.len())?.copy_from_slice(part.as_bytes());
        end += part.len();
    }
    CStr::from_bytes_until_nul(path.get(..=end)?).ok()
}
