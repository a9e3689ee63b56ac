//! The allocating threads' side of the ring: numbers threads and sites, and packs events into records.

use super::ring::{CAPACITY, Record, Ring, record};
use firsttouch::sync::first::First;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// The maximum number of records of one event: its thread, its time, its detail and the event itself.
const MAX_RECORDS: usize = 4;
/// The writer is woken whenever another such part of the ring has filled.
const WAKE_INTERVAL: usize = CAPACITY / 8;

/// When the first trace of the process was started, and when this one was, in microseconds after that.
static CLOCK: First<Instant> = First::new();
static STARTED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// A trace, and the number of this thread in it.
    static THREAD: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

fn clock() -> u64 {
    CLOCK.get_or_make(Instant::now).elapsed().as_micros() as u64
}

/// Returns the microseconds since the start of the trace.
pub(super) fn now() -> u64 {
    clock().saturating_sub(STARTED.load(Relaxed))
}

/// The state of the producers, which share it under a lock.
pub(super) struct Producer {
    /// Number of traces started, to tell thread numbers of earlier traces.
    trace: u32,
    /// The thread of the last record.
    thread: u32,
    threads: u32,
    sites: u32,
    lost: u64,
}

impl Producer {
    pub(super) const fn new() -> Self {
        Self { trace: 0, thread: 0, threads: 0, sites: 0, lost: 0 }
    }

    /// Begins another trace.
    pub(super) fn start(&mut self) {
        STARTED.store(clock(), Relaxed);
        *self = Self { trace: self.trace + 1, ..Self::new() };
    }

    /// Returns the number of events lost because the ring was full.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Pushes an event with its thread and, if `timed`, the time. Returns whether the writer should be woken.
    ///
    /// # Safety
    /// The ring is open, and all its producers hold the lock of this state.
    #[inline]
    pub(super) unsafe fn push(&mut self, ring: &Ring, detail: Option<Record>, event: Record, timed: bool) -> bool {
        let thread = match THREAD.get() {
            (trace, number) if trace == self.trace => number,
            _ => self.number_thread(),
        };
        let (mut records, mut count) = ([[0; 2]; MAX_RECORDS], 0);
        let mut add = |record| {
            records[count] = record;
            count += 1;
        };
        if thread != self.thread {
            add(record::pack(0, record::THREAD, thread.into()));
        }
        if timed {
            add(record::pack(0, record::TIME, now()));
        }
        if let Some(detail) = detail {
            add(detail);
        }
        add(event);
        // SAFETY: the ring is open, and all its producers hold this state's lock (`recorder/mod.rs`).
        match unsafe { ring.push(&records[..count]) } {
            Some(head) => {
                self.thread = thread;
                head / WAKE_INTERVAL != (head - count) / WAKE_INTERVAL
            }
            None => {
                self.lost += 1;
                false
            }
        }
    }

    #[cold]
    fn number_thread(&mut self) -> u32 {
        let number = self.threads;
        self.threads += 1;
        THREAD.set((self.trace, number));
        number
    }

    /// Pushes a source line and returns its number, or 0 if there is no room for all of it.
    ///
    /// # Safety
    /// As for [`push`](Self::push).
    pub(super) unsafe fn push_site(&mut self, ring: &Ring, file: &str, line: u32) -> u32 {
        let name = &file.as_bytes()[..file.len().min(record::MAX_NAME_LEN)];
        if name.is_empty() || ring.len() + name.len() > CAPACITY {
            return 0;
        }
        // SAFETY: the ring is open, and all its producers hold this state's lock (`recorder/mod.rs`). There is room for
        // every record, so no site is left half pushed.
        let push = |record| unsafe { ring.push(&[record]) }.is_some();
        let head = record::pack(line.into(), record::SITE, name.len() as u64);
        if !push(head) || !record::pack_name(name).all(push) {
            return 0;
        }
        self.sites += 1;
        self.sites
    }
}
