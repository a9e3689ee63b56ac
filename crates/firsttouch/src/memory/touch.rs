//! First touch: making pages real before use, by the kernel's populate or by a write to each, from several threads.
//!
//! Mapping takes the address space's lock for writing, faults for reading: so one thread maps, and many may touch.

#![allow(unsafe_code)] // Safety: touching changes no byte; who calls promises that the range is mapped.

use crate::os::{self, Errno, Processors};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bytes between two looks at whether to go on, and that threads take at a time.
const PIECE: usize = 16 << 20;
/// Below this many bytes a thread more costs what it gains.
const PER_THREAD: usize = 16 << 20;
/// Time between two questions whether to go on.
const ASK: Duration = Duration::from_millis(20);
const STACK: usize = 128 << 10;

/// How a page is made real.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As by a write, which changes nothing.
    Write,
    /// As by a read; memory never written may stay the kernel's page of zeros.
    Read,
}

/// Which thread touches what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Each takes the next piece that nobody has.
    Dynamic,
    /// Each has one slab, as the threads of a static loop have.
    Static,
}

/// What to touch, and how.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The first byte, at the beginning of a page.
    pub address: usize,
    /// Bytes, whole pages.
    pub size: usize,
    /// Bytes from one touch to the next: the page's.
    pub step: usize,
    /// How.
    pub way: Way,
    /// Threads; none: what suits the size and the processors.
    pub threads: Option<usize>,
    /// Processors to run on; none: where the calling thread may.
    pub processors: Option<Processors>,
    /// Which thread touches what.
    pub pattern: Pattern,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Threads that worked.
    pub threads: usize,
    /// Whether the kernel's populate did it; otherwise touches.
    pub by_kernel: bool,
}

/// Asked again and again, with the bytes done so far: whether to go on.
pub type GoOn<'a> = &'a mut dyn FnMut(usize) -> bool;
/// Runs work that takes long, letting others run meanwhile.
pub type Around = fn(&mut dyn FnMut(GoOn<'_>));

static AROUND: OnceLock<Around> = OnceLock::new();

/// Says how work that takes long is run: a front lets its interpreter go on meanwhile and asks it for signals.
pub fn set_around(around: Around) {
    let _ = AROUND.set(around);
}

/// Runs `work` that way.
pub fn around<T>(mut work: impl FnMut(GoOn<'_>) -> T) -> T {
    let mut result = None;
    if let Some(around) = AROUND.get() {
        around(&mut |go_on| result = Some(work(go_on)));
    }
    result.unwrap_or_else(|| work(&mut |_| true))
}

/// Threads that suit `size` bytes on these processors.
fn crew(job: &Job) -> usize {
    let here = os::thread_processors().map_or(1, |set| set.len());
    let most = job.processors.map_or(here, |set| set.len()).max(1);
    job.threads.unwrap_or_else(|| most.min(job.size / PER_THREAD)).clamp(1, 1024).min((job.size / job.step).max(1))
}

struct Shared {
    job: Job,
    threads: usize,
    piece: usize,
    next: AtomicUsize,
    done: AtomicUsize,
    stop: AtomicBool,
    touches: AtomicBool,
    error: AtomicUsize,
}

impl Shared {
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

    fn work(&self, worker: usize, mut between: impl FnMut() -> bool) {
        let mut mine = None;
        while !self.stop.load(Relaxed) {
            let Some((from, len)) = self.take(worker, &mut mine) else { return };
            if let Err(error) = self.touch(self.job.address + from, len) {
                self.error.store(error.0 as usize, Relaxed);
                self.stop.store(true, Relaxed);
            }
            self.done.fetch_add(len, Relaxed);
            if !between() {
                self.stop.store(true, Relaxed);
            }
        }
    }

    fn touch(&self, address: usize, len: usize) -> Result<(), Errno> {
        while !self.touches.load(Relaxed) {
            match os::populate(address, len, self.job.way == Way::Write) {
                Ok(()) => return Ok(()),
                Err(Errno::INTERRUPTED | Errno::AGAIN) if !self.stop.load(Relaxed) => {}
                // Kernels before 5.14 don't know the advice; nor do some kinds of mappings.
                Err(Errno::INVALID | Errno::NO_CALL | Errno::UNSUPPORTED) => self.touches.store(true, Relaxed),
                Err(error) => return Err(error),
            }
        }
        for at in (address..address + len).step_by(self.job.step) {
            // SAFETY: the range is mapped (the caller of `make_real`); adding nothing changes nothing, also where others
            // write meanwhile, and reading one byte does no harm.
            unsafe {
                let byte = AtomicU8::from_ptr(std::ptr::with_exposed_provenance_mut(at));
                match self.job.way {
                    Way::Write => byte.fetch_add(0, Relaxed),
                    Way::Read => byte.load(Relaxed),
                };
            }
        }
        Ok(())
    }
}

/// Makes the pages of a range real. Threads that can't be had are done without.
///
/// # Errors
/// [`Errno::INTERRUPTED`] where `go_on` says no, or what the kernel says where it has no memory.
///
/// # Safety
/// The range is mapped for as long as this runs, and can be written unless the way is [`Way::Read`].
pub unsafe fn make_real(job: Job, go_on: GoOn<'_>) -> Result<Done, Errno> {
    let threads = crew(&job);
    let piece =
        PIECE.next_multiple_of(job.step.max(1)).min((job.size / threads).max(1).next_multiple_of(job.step.max(1)));
    let shared = Shared {
        job,
        threads,
        piece,
        next: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        touches: AtomicBool::new(false),
        error: AtomicUsize::new(0),
    };
    // This thread works too, unless it is to be done elsewhere.
    let away = job.processors.filter(|set| os::thread_processors().is_ok_and(|here| !here.without(set).is_empty()));
    let first = usize::from(away.is_none());
    let mut stopped = false;
    let started = std::thread::scope(|scope| {
        let mut helpers = Vec::new();
        for worker in first..threads {
            let shared = &shared;
            let body = move || {
                if let Some(set) = &away {
                    let _ = os::run_on_processors(set); // elsewhere it is as good
                }
                shared.work(worker, || true);
            };
            match std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, body) {
                Ok(helper) => helpers.push(helper),
                Err(_) => break,
            }
        }
        let (missing, mut asked) = (threads - first > helpers.len(), Instant::now());
        let mut ask = |now: bool| {
            if now || asked.elapsed() >= ASK {
                asked = Instant::now();
                stopped |= !go_on(shared.done.load(Relaxed));
            }
            !stopped
        };
        if first == 1 {
            shared.work(0, || ask(false));
        }
        if missing {
            (first + helpers.len()..threads).for_each(|worker| shared.work(worker, || ask(false)));
        }
        while helpers.iter().any(|helper| !helper.is_finished()) {
            std::thread::park_timeout(Duration::from_micros(200));
            if !ask(false) {
                shared.stop.store(true, Relaxed);
            }
        }
        helpers.len() + usize::from(first == 1 || missing)
    });
    match shared.error.load(Relaxed) {
        _ if stopped => Err(Errno::INTERRUPTED),
        0 => Ok(Done { threads: started, by_kernel: !shared.touches.load(Relaxed) }),
        error => Err(Errno(error as i32)),
    }
}
