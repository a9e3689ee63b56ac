//! The threads that touch: their number, their processors, and when they stop.

#![allow(unsafe_code)] // Safety: as in the module above.

use super::pieces::Pieces;
use super::{Done, GoOn, Job};
use crate::os::{self, Errno, Helper, Processors};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// With fewer bytes per thread, another thread costs as much as it gains.
const PER_THREAD: usize = 16 << 20;
/// The interval between calls of `go_on`.
const ASK: Duration = Duration::from_millis(20);

/// The number of threads that suits the size and the processors.
fn crew(job: &Job) -> usize {
    let here = os::thread_processors().map_or(1, |set| set.len());
    let most = job.processors.map_or(here, |set| set.len()).max(1);
    job.threads.unwrap_or_else(|| most.min(job.size / PER_THREAD)).clamp(1, 1024).min((job.size / job.step).max(1))
}

/// What the helpers share with the calling thread.
struct Shared<'a> {
    pieces: &'a Pieces,
    away: Option<&'a Processors>,
    /// The number of the next helper that begins.
    next: AtomicUsize,
    /// The number of helpers that have not ended.
    running: AtomicU32,
}

/// What a helper does; it needs no memory (`os::help`).
extern "C" fn help(shared: *mut c_void) -> *mut c_void {
    // SAFETY: `make_real` passes this, and it outlives the helpers there.
    let shared: &Shared<'_> = unsafe { &*shared.cast_const().cast() };
    if let Some(set) = shared.away {
        let _ = os::run_on_processors(set); // elsewhere it works as well
    }
    shared.pieces.work(shared.next.fetch_add(1, Relaxed), || true);
    shared.running.fetch_sub(1, AcqRel);
    os::wake(&shared.running);
    null_mut()
}

/// Starts `count` helpers, or as many as can be had.
fn helpers(shared: &Shared<'_>, count: usize) -> Vec<Helper> {
    let mut started = Vec::new();
    if started.try_reserve_exact(count).is_err() {
        return started;
    }
    for _ in 0..count {
        shared.running.fetch_add(1, AcqRel);
        // SAFETY: what is shared outlives the helpers, which `make_real` drops first.
        match unsafe { os::help(help, std::ptr::from_ref(shared).cast_mut().cast()) } {
            Ok(helper) => started.push(helper),
            Err(_) => {
                shared.running.fetch_sub(1, AcqRel);
                break;
            }
        }
    }
    started
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
    let pieces = Pieces::new(job, threads);
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
    if threads == first {
        (0..threads.max(1)).for_each(|worker| pieces.work(worker, &mut ask));
        let by_kernel = pieces.outcome();
        return if stopped {
            Err(Errno::INTERRUPTED)
        } else {
            by_kernel.map(|by_kernel| Done { threads: 1, by_kernel })
        };
    }
    let (next, running) = (AtomicUsize::new(first), AtomicU32::new(0));
    let shared = Shared { pieces: &pieces, away: away.as_ref(), next, running };
    let helpers = helpers(&shared, threads - first);
    let helped = helpers.len();
    if first == 1 {
        pieces.work(0, &mut ask);
    }
    (first + helped..threads).for_each(|worker| pieces.work(worker, &mut ask));
    loop {
        let left = shared.running.load(Acquire);
        if left == 0 {
            break;
        }
        os::wait(&shared.running, left, Some(ASK));
        if !ask() {
            pieces.stop();
        }
    }
    drop(helpers);
    let started = helped + usize::from(first == 1 || first + helped < threads);
    let by_kernel = pieces.outcome();
    if stopped { Err(Errno::INTERRUPTED) } else { by_kernel.map(|by_kernel| Done { threads: started, by_kernel }) }
}
