//! The threads that touch: their number, their processors, and when they stop.

#![allow(unsafe_code)] // Safety: as in the module above.

use super::pieces::Pieces;
use super::{Done, GoOn, Job};
use crate::os::{self, Errno};
use crate::reserve;
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel, Ordering::Acquire};
use std::thread;
use std::time::{Duration, Instant};

/// With fewer bytes per thread, another thread costs as much as it gains.
const PER_THREAD: usize = 16 << 20;
/// The interval between calls of `go_on`.
const ASK: Duration = Duration::from_millis(20);
const STACK: usize = 128 << 10;

/// The number of threads that suits the size and the processors.
fn crew(job: &Job) -> usize {
    let here = os::thread_processors().map_or(1, |set| set.len());
    let most = job.processors.map_or(here, |set| set.len()).max(1);
    job.threads.unwrap_or_else(|| most.min(job.size / PER_THREAD)).clamp(1, 1024).min((job.size / job.step).max(1))
}

/// Notifies the waiting thread when a helper has ended, even by a panic.
struct Ending<'a>(&'a AtomicUsize, thread::Thread);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, AcqRel);
        self.1.unpark();
    }
}

/// Faults in the pages of a range. Continues with fewer threads if some cannot be started.
///
/// # Errors
/// [`Errno::INTERRUPTED`] if `go_on` returns false, or the kernel's error if it has no memory.
///
/// # Safety
/// The range is mapped while this runs, and is writable unless the way is `Way::Read`.
pub unsafe fn make_real(job: Job, go_on: GoOn<'_>) -> Result<Done, Errno> {
    let threads = crew(&job);
    let (pieces, running) = (Pieces::new(job, threads), AtomicUsize::new(0));
    // The calling thread works, too, unless other processors were requested.
    let away = job.processors.filter(|set| os::thread_processors().is_ok_and(|here| !here.without(set).is_empty()));
    let first = usize::from(away.is_none());
    let mut stopped = false;
    let mut asked = Instant::now();
    let mut ask = || {
        if asked.elapsed() >= ASK {
            asked = Instant::now();
            stopped |= !go_on(pieces.done());
        }
        !stopped
    };
    // The standard library aborts if it cannot allocate a thread's handle, even the calling thread's.
    if threads == first || !reserve::has_memory() {
        (0..threads.max(1)).for_each(|worker| pieces.work(worker, &mut ask));
        let by_kernel = pieces.outcome();
        return if stopped {
            Err(Errno::INTERRUPTED)
        } else {
            by_kernel.map(|by_kernel| Done { threads: 1, by_kernel })
        };
    }
    let started = thread::scope(|scope| {
        let mut helpers = 0;
        for worker in first..threads {
            let (pieces, away, ending) = (&pieces, &away, Ending(&running, thread::current()));
            running.fetch_add(1, AcqRel);
            let body = move || {
                let _ending = ending;
                if let Some(set) = away {
                    let _ = os::run_on_processors(set); // elsewhere it works as well
                }
                pieces.work(worker, || true);
            };
            if thread::Builder::new().stack_size(STACK).spawn_scoped(scope, body).is_err() {
                break;
            }
            helpers += 1;
        }
        let alone = threads - first - helpers;
        if first == 1 {
            pieces.work(0, &mut ask);
        }
        (first + helpers..threads).for_each(|worker| pieces.work(worker, &mut ask));
        while running.load(Acquire) > 0 {
            thread::park_timeout(ASK);
            if !ask() {
                pieces.stop();
            }
        }
        helpers + usize::from(first == 1 || alone > 0)
    });
    let by_kernel = pieces.outcome();
    if stopped { Err(Errno::INTERRUPTED) } else { by_kernel.map(|by_kernel| Done { threads: started, by_kernel }) }
}
