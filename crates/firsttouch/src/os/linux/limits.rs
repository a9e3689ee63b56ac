//! The limits of the machine, of the container (cgroups of version 1 and 2, with all their ancestors), and of the process, and
//! their use. Nothing here uses the global allocator or a lock, so that the background purger and signal handlers may call it.

use super::kernel_texts::{self, kib, number};
use super::threads::uncancelled;
use crate::error::Limit;
use crate::os::types::{Bound, Errno, MemoryBound, Usage};
use std::ffi::CStr;
use std::iter::successors;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

// ---- Files of the kernel ---------------------------------------------------------------------------------------------

/// What may still be done: everything, nothing that opens a file, or no system call that `malloc` would not make.
static MODE: AtomicU8 = AtomicU8::new(EVERYTHING);
const EVERYTHING: u8 = 0;
const NO_FILES: u8 = 1;
const NOTHING: u8 = 2;

/// Whether no file may be opened.
pub(super) fn stopped() -> bool {
    MODE.load(Relaxed) >= NO_FILES
}

/// Whether neither pages nor limits may be asked for.
pub(super) fn asks_nothing() -> bool {
    MODE.load(Relaxed) == NOTHING
}

/// In a foreign program, even a short-lived descriptor may take the number that the program expects. Constant figures are
/// read now; what is available is not known any more.
pub fn stop_reading_files() {
    let _ = (memory_total(), available_huge_page_size(), super::processors());
    MODE.store(NO_FILES, Relaxed);
}

/// A program that restricts its own system calls to those that `malloc` needs may be killed for any other.
pub fn ask_nothing() {
    MODE.store(NOTHING, Relaxed);
}

/// Reads as much of a small file as the buffer holds; unless no file may be opened.
fn read<'a>(path: &CStr, buffer: &'a mut [u8]) -> Option<&'a str> {
    if stopped() { None } else { read_always(path, buffer) }
}

/// Reads it in any case. Names in it need not be UTF-8: returns the longest text that is.
pub(super) fn read_always<'a>(path: &CStr, buffer: &'a mut [u8]) -> Option<&'a str> {
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
    let text = buffer.get(..usize::try_from(length).ok()?)?;
    text.utf8_chunks().map(|chunk| chunk.valid()).max_by_key(|text| text.len())
}

/// Reads a file that holds a number.
fn read_number(path: &CStr) -> Option<usize> {
    number(read(path, &mut [0; 64])?)
}

/// Reads a figure that never changes, at the first call; zero if the system does not tell it.
#[inline]
pub(super) fn once(figure: &AtomicUsize, read: impl FnOnce() -> Option<usize>) -> usize {
    if figure.load(Relaxed) == usize::MAX {
        figure.store(read().unwrap_or(0), Relaxed);
    }
    figure.load(Relaxed)
}

pub fn huge_page_size() -> Option<usize> {
    static SIZE: AtomicUsize = AtomicUsize::new(usize::MAX);
    let size = once(&SIZE, || read_number(c"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"));
    Some(size).filter(|size| size.is_power_of_two())
}

pub fn available_huge_page_size() -> Option<usize> {
    static SIZE: AtomicUsize = AtomicUsize::new(usize::MAX);
    let path = c"/sys/kernel/mm/transparent_hugepage/enabled";
    let is_on = || read(path, &mut [0; 64]).is_some_and(|text| !text.contains("[never]"));
    Some(once(&SIZE, || huge_page_size().filter(|_| is_on()))).filter(|&size| size > 0)
}

/// `vm.max_map_count`.
pub fn mapping_limit() -> Option<usize> {
    static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
    Some(once(&LIMIT, || read_number(c"/proc/sys/vm/max_map_count"))).filter(|&limit| limit > 0)
}

// ---- The machine and the container -----------------------------------------------------------------------------------

/// Asks for a lock that names it as its owner. That opens no file, which a foreign program might notice. Few sandboxes end a
/// program for it; `asks_nothing` tells where one was begun.
pub fn first_thread_has_ended() -> bool {
    // SAFETY: has no preconditions.
    let word = AtomicU32::new(unsafe { libc::getpid() } as u32);
    let op = libc::FUTEX_TRYLOCK_PI | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word outlives the call.
    let ask = || unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, 0, 0) };
    !asks_nothing() && ask() < 0 && Errno::last().0 == libc::ESRCH
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

/// Returns the total and the available memory of the machine in bytes.
fn machine() -> (usize, usize) {
    meminfo("MemTotal").zip(meminfo("MemAvailable")).unwrap_or((usize::MAX, usize::MAX))
}

/// Returns the tightest limit of the memory cgroups and their ancestors, and its use. Inside a container its own cgroup is
/// mounted at the root; outside, /proc/self/cgroup names it.
fn cgroup() -> Option<MemoryBound> {
    #[inline(never)] // as above
    fn tightest() -> Option<MemoryBound> {
        let mut buffer = [0; 4096];
        let groups = read(c"/proc/self/cgroup", &mut buffer)?.lines().filter_map(kernel_texts::group);
        let with_ancestors = groups.flat_map(|(root, group)| {
            let groups = successors(Some(group), |group| Some(&group[..group.rfind('/')?]));
            groups.map(move |group| (root, group.trim_end_matches('/')))
        });
        with_ancestors.filter_map(|(root, group)| bound_of(root, group)).min_by_key(MemoryBound::left)
    }
    if stopped() { None } else { tightest() }
}

fn bound_of(root: &str, group: &str) -> Option<MemoryBound> {
    let value = |name| read_number(join(&mut [0; 4096], &[root, group, "/", name])?);
    let first = |names: [&'static str; 2]| names.into_iter().find_map(value);
    let limit = first(["memory.max", "memory.limit_in_bytes"]).filter(|&limit| limit < usize::MAX >> 2)?;
    let used = first(["memory.current", "memory.usage_in_bytes"])?;
    Some(MemoryBound { whose: Bound::Group, limit, used: used.saturating_sub(file_pages(root, group).unwrap_or(0)) })
}

/// The file pages of a group and the groups below it, which the kernel drops before the group runs out of memory.
fn file_pages(root: &str, group: &str) -> Option<usize> {
    let (mut path, mut buffer) = ([0; 4096], [0; 8192]);
    let text = read(join(&mut path, &[root, group, "/memory.stat"])?, &mut buffer)?;
    let value = |name: &str| text.lines().find_map(|line| number(line.strip_prefix(name)?));
    let both = |first, second| value(first).or_else(|| value(second)).unwrap_or(0);
    Some(both("total_inactive_file ", "inactive_file ") + both("total_active_file ", "active_file "))
}

fn join<'a>(path: &'a mut [u8; 4096], parts: &[&str]) -> Option<&'a CStr> {
    let mut end = 0;
    for part in parts {
        path.get_mut(end..end + part.len())?.copy_from_slice(part.as_bytes());
        end += part.len();
    }
    CStr::from_bytes_until_nul(path.get(..=end)?).ok()
}

/// As it was at the first call: every new pool calls, and to find out takes thirty files.
pub fn memory_total() -> usize {
    static TOTAL: AtomicUsize = AtomicUsize::new(usize::MAX);
    once(&TOTAL, || Some(machine().0.min(cgroup().map_or(usize::MAX, |group| group.limit))))
}

/// The smaller of what the machine and the memory cgroup have left.
pub fn headroom() -> usize {
    machine().1.min(cgroup().map_or(usize::MAX, |group| group.left()))
}

/// Shared bounds count the use of all programs. File pages that the kernel can drop are not in use.
pub fn memory_bounds() -> [Option<MemoryBound>; 4] {
    let ((total, available), [space, data]) = (machine(), of_process());
    let machine = MemoryBound { whose: Bound::Machine, limit: total, used: total.saturating_sub(available) };
    [Some(machine), cgroup(), space, data]
}

fn of_process() -> [Option<MemoryBound>; 2] {
    let limits = [(Bound::AddressSpace, libc::RLIMIT_AS, ADDRESS_SPACE), (Bound::Data, libc::RLIMIT_DATA, DATA)];
    limits.map(|(whose, which, field)| {
        Some(MemoryBound { whose, limit: rlimit(which)?, used: statm(field).unwrap_or(0) })
    })
}

// ---- The process -----------------------------------------------------------------------------------------------------

/// Fields of /proc/self/statm.
const ADDRESS_SPACE: usize = 0;
const RESIDENT: usize = 1;
const DATA: usize = 5;

/// Returns one of them in bytes.
fn statm(field: usize) -> Option<usize> {
    let mut buffer = [0; 128];
    let pages = read(c"/proc/self/statm", &mut buffer)?.split_ascii_whitespace().nth(field)?;
    Some(pages.parse::<usize>().ok()? * super::page_size())
}

pub fn resident() -> usize {
    statm(RESIDENT).unwrap_or(0)
}

/// The peak since its exec.
pub fn resident_and_peak() -> Option<(usize, usize)> {
    let mut buffer = [0; 4096];
    let text = read_always(c"/proc/self/status", &mut buffer)?;
    Some((kib(text, "VmRSS")?, kib(text, "VmHWM")?))
}

/// An exec keeps these counts, and a fork begins new ones.
pub fn usage() -> Usage {
    let of = |who| {
        // SAFETY: a rusage of zero bytes is valid, and the kernel writes one.
        unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &mut usage);
            usage
        }
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    let mut clock = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut clock) };
    let (own, others) = (of(libc::RUSAGE_SELF), of(libc::RUSAGE_CHILDREN));
    Usage {
        wall: clock.tv_sec as f64 + clock.tv_nsec as f64 * 1e-9,
        user: seconds(own.ru_utime),
        kernel: seconds(own.ru_stime),
        minor_faults: own.ru_minflt as u64,
        major_faults: own.ru_majflt as u64,
        children: seconds(others.ru_utime) + seconds(others.ru_stime),
    }
}

pub fn address_space_limit() -> Option<usize> {
    rlimit(libc::RLIMIT_AS)
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
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: 0 };
    if !asks_nothing() {
        // SAFETY: the kernel writes one rlimit.
        unsafe { libc::getrlimit(which, &mut limit) };
    }
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
}

pub fn why_refused(size: usize, error: Errno) -> Limit {
    match error.0 {
        libc::EAGAIN => return Limit::Locked(rlimit(libc::RLIMIT_MEMLOCK).unwrap_or(usize::MAX)),
        libc::ENOMEM => {}
        _ if error == Errno::NO_SLOT => return Limit::Claims,
        code => return Limit::Errno(code),
    }
    let figure = |name| meminfo(name).unwrap_or(0);
    let overcommit = read_number(c"/proc/sys/vm/overcommit_memory");
    let (whose, limit, used) = (Bound::Commit, figure("CommitLimit"), figure("Committed_AS"));
    let [space, data] = of_process();
    let bounds = [space, data, Some(MemoryBound { whose, limit, used }).filter(|_| overcommit == Some(2))];
    // The request is rounded to huge pages, and needs records of at most a hundredth.
    let about = size.saturating_add(size / 100 + (4 << 20));
    if let Some(bound) = bounds.into_iter().flatten().find(|bound| bound.left() < about) {
        return Limit::Bound(bound);
    }
    let total = figure("MemTotal") + figure("SwapTotal");
    match mapping_limit() {
        _ if size > total && overcommit == Some(0) => Limit::Memory(total),
        Some(limit) if size <= total => Limit::Maps(limit), // nothing else is left
        _ => Limit::Errno(error.0),
    }
}
