//! What the kernel counts of this process. Nothing here takes a lock or memory: a signal handler may ask.

use crate::os::types::Usage;
use std::fs::File;
use std::io::Read;

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

/// The peak is that since its exec.
pub fn resident_and_peak() -> Option<(usize, usize)> {
    let mut room = [0; 4096];
    let text = start_of("/proc/self/status", &mut room)?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_ascii_whitespace().next()?.parse::<usize>().ok()? << 10)
    };
    Some((value("VmRSS:")?, value("VmHWM:")?))
}

/// Returns the valid text at the start of a file, as much as there is room for.
pub(super) fn start_of<'a>(path: &str, room: &'a mut [u8]) -> Option<&'a str> {
    let count = File::open(path).ok()?.read(room).ok()?;
    room[..count].utf8_chunks().map(|chunk| chunk.valid()).max_by_key(|text| text.len())
}
