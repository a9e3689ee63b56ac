//! What a process used, counted from its start: an exec keeps the kernel's counters, and a fork the pool's.

use crate::large;
use firsttouch::{Allocator, Stats};
use std::fs::File;
use std::io::Read;
use std::time::Instant;

/// Processor seconds and faults.
#[derive(Clone, Copy)]
pub struct Usage {
    pub user: f64,
    pub kernel: f64,
    pub minor_faults: u64,
    pub major_faults: u64,
}

impl Usage {
    fn of(who: libc::c_int) -> Self {
        // SAFETY: a rusage of zero bytes is valid, and the kernel writes one.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &mut usage);
            usage
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
        Self {
            user: seconds(usage.ru_utime),
            kernel: seconds(usage.ru_stime),
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
        }
    }
}

/// The beginning.
pub struct Start {
    at: Instant,
    usage: Usage,
    children: Usage,
    pool: Stats,
}

impl Start {
    pub fn now() -> Self {
        let pool = large::pool().map(Allocator::stats).unwrap_or_default();
        let (usage, children) = (Usage::of(libc::RUSAGE_SELF), Usage::of(libc::RUSAGE_CHILDREN));
        Self { at: Instant::now(), usage, children, pool }
    }
}

/// What the process used since its start.
pub struct Spent {
    pub wall: f64,
    pub usage: Usage,
    pub children: f64,
    /// Resident bytes now and at the peak.
    pub resident: Option<(usize, usize)>,
}

impl Spent {
    /// Takes no lock and no memory: it is also called by `_exit` in a signal handler.
    pub fn since(start: &Start) -> Self {
        let (now, children) = (Usage::of(libc::RUSAGE_SELF), Usage::of(libc::RUSAGE_CHILDREN));
        let usage = Usage {
            user: now.user - start.usage.user,
            kernel: now.kernel - start.usage.kernel,
            minor_faults: now.minor_faults.saturating_sub(start.usage.minor_faults),
            major_faults: now.major_faults.saturating_sub(start.usage.major_faults),
        };
        let children = children.user + children.kernel - start.children.user - start.children.kernel;
        Self { wall: start.at.elapsed().as_secs_f64(), usage, children, resident: resident() }
    }
}

/// All that a report says.
pub struct Figures {
    pub spent: Spent,
    pub pool: Stats,
}

impl Figures {
    /// Adds what the pool did since the start; nothing where there is no pool.
    pub fn new(spent: Spent, start: &Start) -> Option<Self> {
        let mut pool = large::pool()?.stats();
        let before = &start.pool;
        for (now, before) in [
            (&mut pool.allocations, before.allocations),
            (&mut pool.recycled, before.recycled),
            (&mut pool.allocated_bytes, before.allocated_bytes),
            (&mut pool.recycled_bytes, before.recycled_bytes),
            (&mut pool.first_touched_small_bytes, before.first_touched_small_bytes),
            (&mut pool.first_touched_huge_bytes, before.first_touched_huge_bytes),
            (&mut pool.purged_bytes, before.purged_bytes),
            (&mut pool.failures, before.failures),
        ] {
            *now -= before;
        }
        Some(Self { spent, pool })
    }
}

fn resident() -> Option<(usize, usize)> {
    let mut room = [0; 4096];
    let count = File::open("/proc/self/status").ok()?.read(&mut room).ok()?;
    let status = std::str::from_utf8(&room[..count]).ok()?;
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_ascii_whitespace().next()?.parse::<usize>().ok()? << 10)
    };
    Some((value("VmRSS:")?, value("VmHWM:")?))
}
