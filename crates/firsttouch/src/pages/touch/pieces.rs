//! The pieces of a range: which thread takes which, and how their pages are faulted in.

#![allow(unsafe_code)] // Safety: as in the module above.

use super::{Job, Pattern, Way};
use crate::os::{self, Errno};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::Relaxed};

/// Bytes that a thread takes at a time, and between two calls of `go_on`.
const PIECE: usize = 16 << 20;

/// The state shared by the threads.
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
    /// Creates the pieces, none of which is taken.
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

    /// The bytes that are done.
    pub(super) fn done(&self) -> usize {
        self.done.load(Relaxed)
    }

    /// Lets every thread stop after its current piece.
    pub(super) fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Whether the kernel's populate did everything, or its error.
    pub(super) fn outcome(&self) -> Result<bool, Errno> {
        match self.error.load(Relaxed) {
            0 => Ok(!self.touches.load(Relaxed)),
            error => Err(Errno(error as i32)),
        }
    }

    /// The next range of a worker; `mine` is the rest of its slab.
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

    /// Runs one worker, which calls `between` between two pieces to find out whether to continue.
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
                // Kernels before 5.14 do not know the advice. Others refuse memory that the touch would fault on.
                Err(Errno::INVALID | Errno::NO_CALL | Errno::UNSUPPORTED)
                    if os::populate(address, 0, self.job.way == Way::Write).is_err() =>
                {
                    self.touches.store(true, Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        for at in (address..address + len).step_by(self.job.step) {
            // SAFETY: the range is mapped (the caller of `make_real`); adding zero changes nothing, even if other
            // threads write meanwhile, and reading a byte is harmless.
            unsafe {
                let byte = AtomicU8::from_ptr(std::ptr::with_exposed_provenance_mut(at));
                match self.job.way {
                    // If the compiler knew that it is zero, it would write nothing.
                    Way::Write => byte.fetch_add(black_box(0), Relaxed),
                    Way::Read => byte.load(Relaxed),
                };
            }
        }
        Ok(())
    }
}
