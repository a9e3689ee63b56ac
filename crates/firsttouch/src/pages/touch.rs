//! First touch: faults in pages before use, by the kernel's populate or by a write to each, in several threads.
//!
//! Mapping acquires the address space's lock for writing, page faults for reading: so one thread maps, and many may
//! touch.

#![allow(unsafe_code)] // Safety: touching changes no byte; callers guarantee that the range is mapped.

use crate::os::{self, Errno, Helper};
use std::ffi::c_void;
use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize};

/// How a page is faulted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a write, which changes nothing.
    Write,
    /// By a read; memory that was never written may stay the shared zero page.
    Read,
}

/// What to touch, and how.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The first byte, at a page boundary.
    pub address: usize,
    /// The size in bytes, whole pages.
    pub size: usize,
    /// The distance between touches in bytes: the page size.
    pub step: usize,
    /// How pages are faulted in.
    pub way: Way,
    /// The number of threads; `None` for what suits the size and the processors.
    pub threads: Option<usize>,
}

/// The result of a prefault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The number of threads that worked.
    pub threads: usize,
    /// Whether the kernel's populate did it, rather than touches.
    pub by_kernel: bool,
}

/// Runs long work without blocking other threads of a front.
pub type Around = fn(&mut dyn FnMut());

static AROUND: OnceLock<Around> = OnceLock::new();

/// Sets how long work is run: a front releases its interpreter meanwhile.
pub fn set_around(around: Around) {
    let _ = AROUND.set(around);
}

/// Runs `work` in that way.
pub fn around<T>(mut work: impl FnMut() -> T) -> T {
    let mut result = None;
    if let Some(around) = AROUND.get() {
        around(&mut || result = Some(work()));
    }
    result.unwrap_or_else(work)
}

/// With fewer bytes per thread, another thread costs as much as it gains.
const PER_THREAD: usize = 16 << 20;

/// The number of threads that suits the size and the processors.
fn crew(job: &Job) -> usize {
    let most = os::thread_processors().map_or(1, |set| set.len()).max(1);
    job.threads.unwrap_or_else(|| most.min(job.size / PER_THREAD)).clamp(1, 1024).min((job.size / job.step).max(1))
}

/// What a helper does; it needs no memory (`os::help`).
extern "C" fn help(pieces: *mut c_void) -> *mut c_void {
    // SAFETY: `make_real` passes this, and it outlives the helpers there.
    let pieces: &Pieces = unsafe { &*pieces.cast_const().cast() };
    pieces.work();
    null_mut()
}

/// Starts `count` helpers, or as many as can be had. They end before they are dropped.
fn helpers(pieces: &Pieces, count: usize) -> Vec<Helper> {
    let mut started = Vec::new();
    if started.try_reserve_exact(count).is_err() {
        return started;
    }
    for _ in 0..count {
        // SAFETY: the pieces outlive the helpers, which `make_real` drops first.
        match unsafe { os::help(help, std::ptr::from_ref(pieces).cast_mut().cast()) } {
            Ok(helper) => started.push(helper),
            Err(_) => break,
        }
    }
    started
}

/// Faults in the pages of a range. Continues with fewer threads if some cannot be started.
///
/// # Errors
/// The kernel's error if it has no memory.
///
/// # Safety
/// The range is mapped while this runs, and is writable unless the way is `Way::Read`.
pub unsafe fn make_real(job: Job) -> Result<Done, Errno> {
    let threads = crew(&job);
    let pieces = Pieces::new(job, threads);
    let helpers = helpers(&pieces, threads - 1);
    let threads = helpers.len() + 1; // the calling thread works, too
    pieces.work();
    drop(helpers);
    pieces.outcome().map(|by_kernel| Done { threads, by_kernel })
}

/// Bytes that a thread takes at a time.
const PIECE: usize = 16 << 20;

/// The state shared by the threads.
struct Pieces {
    job: Job,
    piece: usize,
    next: AtomicUsize,
    touches: AtomicBool,
    error: AtomicUsize,
}

impl Pieces {
    /// Creates the pieces, none of which is taken.
    fn new(job: Job, threads: usize) -> Self {
        let step = job.step.max(1);
        Self {
            job,
            piece: PIECE.next_multiple_of(step).min((job.size / threads).max(1).next_multiple_of(step)),
            next: AtomicUsize::new(0),
            touches: AtomicBool::new(false),
            error: AtomicUsize::new(0),
        }
    }

    fn failed(&self) -> bool {
        self.error.load(Relaxed) != 0
    }

    /// Whether the kernel's populate did everything, or its error.
    fn outcome(&self) -> Result<bool, Errno> {
        match self.error.load(Relaxed) {
            0 => Ok(!self.touches.load(Relaxed)),
            error => Err(Errno(error as i32)),
        }
    }

    /// Touches one piece after the other. With an error every thread stops after its current piece; the first one counts.
    fn work(&self) {
        while !self.failed() {
            let from = self.next.fetch_add(self.piece, Relaxed);
            if from >= self.job.size {
                return;
            }
            let len = self.piece.min(self.job.size - from);
            if let Err(error) = self.touch(self.job.address + from, len) {
                let _ = self.error.compare_exchange(0, error.0 as usize, Relaxed, Relaxed);
            }
        }
    }

    fn touch(&self, address: usize, len: usize) -> Result<(), Errno> {
        loop {
            match os::populate(address, len, self.job.way == Way::Write) {
                Ok(()) => return Ok(()),
                Err(Errno::INTERRUPTED | Errno::AGAIN) if !self.failed() => {}
                // Kernels before 5.14 do not know the advice. Others refuse memory that the touch would fault on.
                Err(Errno::INVALID | Errno::NO_CALL | Errno::UNSUPPORTED)
                    if os::populate(address, 0, self.job.way == Way::Write).is_err() =>
                {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        self.touches.store(true, Relaxed);
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
