//! The limits of the machine, of the container (cgroups of version 1 and 2, with all their ancestors), and of the process. Nothing
//! here uses the global allocator, so that the background purger may call it.

use super::kernel_texts::{self, kib, number};
use super::process::page_size;
use super::process::uncancelled;
use crate::error::Limit;
use crate::os::types::{Bound, Errno, MemoryBound};
use std::ffi::CStr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// The memory that was available but not free when files ceased to be read.
static RECLAIMABLE: AtomicUsize = AtomicUsize::new(0);

/// In a foreign program, even a short-lived descriptor may take the number that the program expects. Constant figures are
/// read now; the others are then limited to system calls without files.
pub fn stop_reading_files() {
    RECLAIMABLE.store(meminfo("MemAvailable").unwrap_or(0).saturating_sub(machine().1), Relaxed);
    let _ = (memory_total(), huge_page_size(), super::process::processors());
    stop();
}

/// Returns a value of /proc/meminfo in bytes.
fn meminfo(name: &str) -> Option<usize> {
    #[inline(never)] // its buffer is not for the small stacks of a foreign program's threads
    fn ask(name: &str) -> Option<usize> {
        let mut buffer = [0; 4096];
        kib(read(c"/proc/meminfo", &mut buffer)?, name)
    }
    if stopped() { None } else { ask(name) }
}

pub fn huge_page_size() -> Option<usize> {
    static SIZE: AtomicUsize = AtomicUsize::new(1);
    if SIZE.load(Relaxed) == 1 {
        let size = read_number(c"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").unwrap_or(0);
        SIZE.store(if size.is_power_of_two() { size } else { 0 }, Relaxed);
    }
    Some(SIZE.load(Relaxed)).filter(|&size| size > 0)
}

pub fn address_space_limit() -> Option<usize> {
    rlimit(libc::RLIMIT_AS)
}

/// The bytes of address space that are mapped.
fn address_space() -> Option<usize> {
    read(c"/proc/self/statm", &mut [0; 128]).and_then(number).map(|pages| pages * page_size())
}

pub fn data_limit() -> Option<usize> {
    rlimit(libc::RLIMIT_DATA)
}

pub fn lock_limit() -> Option<usize> {
    rlimit(libc::RLIMIT_MEMLOCK)
}

pub fn file_limit() -> Option<usize> {
    rlimit(libc::RLIMIT_NOFILE)
}

/// The type of the names of limits, which is not the same in every C library.
#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

fn rlimit(which: Resource) -> Option<usize> {
    static LAST: [AtomicUsize; 16] = [const { AtomicUsize::new(usize::MAX) }; 16];
    let last = &LAST[which as usize % LAST.len()];
    if asks_nothing() {
        return Some(last.load(Relaxed)).filter(|&limit| limit != usize::MAX);
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one rlimit.
    let result = unsafe { libc::getrlimit(which, &mut limit) };
    let found = (result == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize);
    last.store(found.unwrap_or(usize::MAX), Relaxed);
    found
}

pub fn why_refused(size: usize, error: Errno) -> Limit {
    if error.0 == libc::EAGAIN {
        return Limit::Locked { limit: rlimit(libc::RLIMIT_MEMLOCK).unwrap_or(0) };
    }
    if error.0 != libc::ENOMEM {
        return Limit::Errno(error.0);
    }
    let used = address_space().unwrap_or(0);
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

/// `vm.max_map_count`, as it was when first asked.
pub fn mapping_limit() -> Option<usize> {
    static LIMIT: AtomicUsize = AtomicUsize::new(0);
    if LIMIT.load(Relaxed) == 0 {
        LIMIT.store(read_number(c"/proc/sys/vm/max_map_count").unwrap_or(usize::MAX), Relaxed);
    }
    Some(LIMIT.load(Relaxed)).filter(|&limit| limit < usize::MAX)
}

/// Returns the total and the free memory of the machine in bytes, where there is no /proc.
fn machine() -> (usize, usize) {
    if asks_nothing() {
        return (usize::MAX, usize::MAX);
    }
    // SAFETY: a sysinfo of zero bytes is valid, and the kernel writes one.
    unsafe {
        let mut info: libc::sysinfo = std::mem::zeroed();
        match libc::sysinfo(&mut info) {
            0 => (info.totalram as usize * info.mem_unit as usize, info.freeram as usize * info.mem_unit as usize),
            _ => (usize::MAX, usize::MAX),
        }
    }
}

/// As it was when first asked: every new pool asks, and the answer takes thirty files.
pub fn memory_total() -> usize {
    static TOTAL: AtomicUsize = AtomicUsize::new(0);
    if TOTAL.load(Relaxed) == 0 {
        let total = meminfo("MemTotal").unwrap_or_else(|| machine().0);
        TOTAL.store(cgroup().map_or(total, |group| total.min(group.limit)), Relaxed);
    }
    TOTAL.load(Relaxed)
}

pub fn resident() -> usize {
    let mut buffer = [0; 128];
    let pages =
        read(c"/proc/self/statm", &mut buffer).and_then(|text| text.split_ascii_whitespace().nth(1)?.parse().ok());
    pages.map_or(0, |pages: usize| pages * page_size())
}

/// The smaller of MemAvailable and what the memory cgroup has left.
pub fn headroom() -> usize {
    let free = meminfo("MemAvailable").unwrap_or_else(|| machine().1.saturating_add(RECLAIMABLE.load(Relaxed)));
    cgroup().map_or(free, |group| free.min(group.limit.saturating_sub(group.used)))
}

/// In use by all programs where others share it. File pages that the kernel can drop are not in use.
pub fn memory_bounds() -> [Option<MemoryBound>; 4] {
    let (total, free) = machine();
    let total = meminfo("MemTotal").unwrap_or(total);
    let available = meminfo("MemAvailable").unwrap_or_else(|| free.saturating_add(RECLAIMABLE.load(Relaxed)));
    let mut buffer = [0; 128];
    let pages = read(c"/proc/self/statm", &mut buffer).unwrap_or_default();
    let field = |at| pages.split_ascii_whitespace().nth(at).and_then(number).map_or(0, |pages| pages * page_size());
    let of_process = |whose, which, field| rlimit(which).map(|limit| MemoryBound { whose, limit, used: field });
    [
        Some(MemoryBound { whose: Bound::Machine, limit: total, used: total.saturating_sub(available) }),
        cgroup().map(|group| MemoryBound {
            whose: Bound::Group,
            limit: group.limit,
            used: group.used.saturating_sub(group.active_file),
        }),
        of_process(Bound::AddressSpace, libc::RLIMIT_AS, field(0)),
        of_process(Bound::Data, libc::RLIMIT_DATA, field(5)),
    ]
}

/// The limit of a memory cgroup and its use, in bytes.
struct Group {
    limit: usize,
    /// Without inactive file pages.
    used: usize,
    /// The part of `used` that is active file pages.
    active_file: usize,
}

impl Group {
    fn left(&self) -> usize {
        self.limit.saturating_sub(self.used)
    }
}

/// Returns the tightest limit of the memory cgroups, and its use, in bytes.
fn cgroup() -> Option<Group> {
    if stopped() { None } else { tightest() }
}

#[inline(never)] // its buffers are not for the small stacks of a foreign program's threads
fn tightest() -> Option<Group> {
    let mut least: Option<Group> = None;
    visit(|root, group| {
        if let Some(found) = bounds(root, group)
            && least.as_ref().is_none_or(|least| found.left() < least.left())
        {
            least = Some(found);
        }
    });
    least
}

/// Calls a function with every folder and path that a group and its ancestors may have. Inside a container its own cgroup
/// is mounted at the root; outside, /proc/self/cgroup names it.
fn visit(mut function: impl FnMut(&str, &str)) {
    let mut buffer = [0; 4096];
    for line in read(c"/proc/self/cgroup", &mut buffer).unwrap_or_default().lines() {
        let Some((roots, group)) = kernel_texts::group(line) else { continue };
        for root in roots {
            let mut group = group;
            loop {
                function(root, group.trim_end_matches('/'));
                match group.rfind('/') {
                    Some(end) => group = &group[..end],
                    None => break,
                }
            }
        }
    }
}

fn bounds(root: &str, group: &str) -> Option<Group> {
    let first = |names: [&str; 2]| names.iter().find_map(|name| read_joined(&[root, group, "/", name]));
    let limit = first(["memory.max", "memory.limit_in_bytes"]).filter(|&limit| limit < usize::MAX >> 2)?;
    let used = first(["memory.current", "memory.usage_in_bytes"])?;
    let (inactive_file, active_file) = file_pages(root, group).unwrap_or_default();
    Some(Group { limit, used: used.saturating_sub(inactive_file), active_file })
}

/// The inactive and the active file pages of a group and the groups below it. The kernel reclaims inactive ones before the
/// group runs out of memory, and active ones after those.
fn file_pages(root: &str, group: &str) -> Option<(usize, usize)> {
    let mut path = [0; 4096];
    let mut buffer = [0; 8192];
    let text = read(join(&mut path, &[root, group, "/memory.stat"])?, &mut buffer)?;
    let value = |name: &str| text.lines().find_map(|line| number(line.strip_prefix(name)?));
    let both = |first, second| value(first).or_else(|| value(second));
    let active = both("total_active_file ", "active_file ").unwrap_or(0);
    Some((both("total_inactive_file ", "inactive_file ")?, active))
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

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Opens no file from now on.
fn stop() {
    STOPPED.store(true, Relaxed);
}

/// Returns whether [`stop`] was called.
pub(super) fn stopped() -> bool {
    STOPPED.load(Relaxed)
}

static ASKS_NOTHING: AtomicBool = AtomicBool::new(false);

/// Asks neither what pages are nor what limits the process has. A program that restricts its own system calls to those that
/// `malloc` needs may be killed for any other.
pub fn ask_nothing() {
    stop();
    ASKS_NOTHING.store(true, Relaxed);
}

/// Returns whether [`ask_nothing`] was called.
pub(super) fn asks_nothing() -> bool {
    ASKS_NOTHING.load(Relaxed)
}

/// Reads as much of a small file as the buffer holds.
fn read<'a>(path: &CStr, buffer: &'a mut [u8]) -> Option<&'a str> {
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
fn read_number(path: &CStr) -> Option<usize> {
    number(read(path, &mut [0; 64])?)
}
