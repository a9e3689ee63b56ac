//! Pieces of a range: who takes which, and how its pages are made real.

#![allow(unsafe_code)] // Safety: as in the module above.

use super::{Job, Pattern, Way};
use crate::os::{self, Errno};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::Relaxed};

/// Bytes that a thread takes at a time, and between two looks at whether to go on.
const PIECE: usize = 16 << 20;

/// What the threads share.
pub(super) struct Pieces {
    job: Job,
    threads: usize,
    piece: usize,
    next: AtomicUsize,
    done: AtomicUsize,
    stop: AtomicBool,
    touches: AtomicBool,
    error: AtomicUsize,
}

impl Pieces {
    /// None is taken yet.
    pub(super) fn new(job: Job, threads: usize) -> Self {
        let step = job.step.max(1);
        Self {
            job,
            threads,
            piece: PIECE.next_multiple_of(step).min((job.size / threads).max(1).next_multiple_of(step)),
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            touches: AtomicBool::new(false),
            error: AtomicUsize::new(0),
        }
    }

    /// Bytes that are done.
    pub(super) fn done(&self) -> usize {
        self.done.load(Relaxed)
    }

    /// Everybody ends after the piece in hand.
    pub(super) fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Whether the kernel's populate did it all, or what it said.
    pub(super) fn outcome(&self) -> Result<bool, Errno> {
        match self.error.load(Relaxed) {
            0 => Ok(!self.touches.load(Relaxed)),
            error => Err(Errno(error as i32)),
        }
    }

    /// The range that a worker takes next; `mine` is what it has of its slab.
    fn take(&self, worker: usize, mine: &mut Option<(usize, usize)>) -> Option<(usize, usize)> {
        let Job { size, step, pattern, .. } = self.job;
        if pattern == Pattern::Dynamic {
            let from = self.next.fetch_add(self.piece, Relaxed);
            return (from < size).then(|| (from, self.piece.min(size - from)));
        }
        let edge = |at: usize| {
            if at == self.threads { size } else { (size * at / self.threads).next_multiple_of(step).min(size) }
        };
        let (from, to) = mine.unwrap_or((edge(worker), edge(worker + 1)));
        let len = self.piece.min(to - from);
        *mine = Some((from + len, to));
        (len > 0).then_some((from, len))
    }

    /// What one worker does; `between` two pieces it asks whether to go on.
    pub(super) fn work(&self, worker: usize, mut between: impl FnMut() -> bool) {
        let mut mine = None;
        while !self.stop.load(Relaxed) {
            let Some((from, len)) = self.take(worker, &mut mine) else { return };
            if let Err(error) = self.touch(self.job.address + from, len) {
                self.error.store(error.0 as usize, Relaxed);
                self.stop();
            }
            self.done.fetch_add(len, Relaxed);
            if !between() {
                self.stop();
            }
        }
    }

    fn touch(&self, address: usize, len: usize) -> Result<(), Errno> {
        while !self.touches.load(Relaxed) {
            match os::populate(address, len, self.job.way == Way::Write) {
                Ok(()) => return Ok(()),
                Err(Errno::INTERRUPTED | Errno::AGAIN) if !self.stop.load(Relaxed) => {}
                // Kernels before 5.14 don't know the advice. Others refuse memory that the touch would fault on.
                Err(Errno::INVALID | Errno::NO_CALL | Errno::UNSUPPORTED)
                    if os::populate(address, 0, self.job.way == Way::Write).is_err() =>
                {
                    self.touches.store(true, Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        for at in (address..address + len).step_by(self.job.step) {
            // SAFETY: the range is mapped (the caller of `make_real`); adding nothing changes nothing, also where others
            // write meanwhile, and reading one byte does no harm.
            unsafe {
                let byte = AtomicU8::from_ptr(std::ptr::with_exposed_provenance_mut(at));
                match self.job.way {
                    // A compiler that knew the zero would write nothing at all.
                    Way::Write => byte.fetch_add(black_box(0), Relaxed),
                    Way::Read => byte.load(Relaxed),
                };
            }
        }
        Ok(())
    }
}
