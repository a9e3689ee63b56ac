//! First touch: faults in pages before use, by the kernel's populate or by a write to each, in several threads.
//!
//! Mapping acquires the address space's lock for writing, page faults for reading: so one thread maps, and many may touch.

#![allow(unsafe_code)] // Safety: touching changes no byte; callers guarantee that the range is mapped.

use crate::numa::{Topology, with_memory};
use crate::os::{self, Errno, Nodes};
use crate::size::Bytes;
use crate::sync::OnceBox;
use std::ffi::c_void;
use std::hint::black_box;
use std::num::NonZero;
use std::ops::Range;
use std::ptr::{from_ref, null_mut, with_exposed_provenance_mut};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicUsize};
use std::thread::available_parallelism;

static DETACH: OnceBox<fn(&mut dyn FnMut())> = OnceBox::new();

/// Sets how a front detaches long work from its interpreter, so that other threads run meanwhile.
pub fn set_detach(detach: fn(&mut dyn FnMut())) {
    let _ = DETACH.set(Box::new(detach));
}

/// Runs `work` in that way.
pub fn detached<T>(mut work: impl FnMut() -> T) -> T {
    let mut result = None;
    if let Some(detach) = DETACH.get() {
        detach(&mut || result = Some(work()));
    }
    result.unwrap_or_else(work)
}

/// The memory that is available, and a message, if the pages of a range that are not resident need more: the kernel would have
/// to kill a process. They come from `nodes`, if that is given. Explicit huge pages are ready in the kernel's pool.
pub fn lacking((address, size): (usize, usize), nodes: Option<&Nodes>) -> Option<(usize, String)> {
    if size < 4 << 20 {
        return None; // a query is not worth its cost
    }
    let (page, machine, with_tables) = (os::page_size(), os::headroom(), |bytes| bytes + bytes / 256);
    let nodes = nodes.filter(|nodes| **nodes != with_memory()); // others than all
    let available = machine.min(nodes.map_or(usize::MAX, |nodes| Topology::read().available_on(nodes)));
    if with_tables(size) <= available {
        return None;
    }
    let step = 4096 * page;
    let there = |from| os::resident_pages(address + from, step.min(size - from)).unwrap_or(0) * page;
    let missing = size - (0..size).step_by(step).map(there).sum::<usize>();
    let absent = os::sizes_of_pages(&(address..address + size)).map_or(missing, |[_, _, absent]| absent);
    let missing = missing.min(absent);
    let whose = match nodes {
        Some(nodes) if available < machine => format!("on nodes {nodes}"),
        _ => "in this machine or its memory cgroup".into(),
    };
    let (lacking, left) = (Bytes(missing), Bytes(available));
    let why = format!("{lacking} of them are not resident, and {left} are available {whose}");
    (with_tables(missing) > available).then_some((available, why))
}

/// Bytes that a thread takes at a time. With fewer of them, another thread costs as much as it gains.
const PIECE: usize = 16 << 20;

/// Faults in the pages of a range, which are `page` bytes large and whole: by a write, which changes nothing, or by a read,
/// after which memory that was never written may be the shared zero page. Zero threads stand for as many as suit the size and
/// the processors; it continues with fewer if some cannot be started. Returns how many worked.
///
/// # Errors
/// The kernel's error if it has no memory.
///
/// # Safety
/// The range is mapped while this runs, and can be written if `write`.
pub unsafe fn prefault(
    (address, size): (usize, usize),
    page: usize,
    write: bool,
    threads: usize,
) -> Result<usize, Errno> {
    static UNNAMED: AtomicU32 = AtomicU32::new(0);
    let suits = || available_parallelism().map_or(1, NonZero::get).min(size / PIECE);
    let threads = if threads == 0 { suits() } else { threads }.clamp(1, 1024).min((size / page).max(1));
    let work = Work {
        range: address..address + size,
        page,
        write,
        piece: PIECE.min(size / threads).max(1).next_multiple_of(page),
        next: AtomicUsize::new(address),
        error: AtomicI32::new(0),
    };
    let mut helpers = Vec::new();
    if helpers.try_reserve_exact(threads - 1).is_ok() {
        let argument = from_ref(&work).cast_mut().cast();
        // SAFETY: the work outlives the helpers, which are joined below.
        helpers.extend((1..threads).map_while(|_| unsafe { os::spawn(help, argument, &UNNAMED) }.ok()));
    }
    work.run();
    let threads = helpers.len() + 1; // the calling thread works, too
    drop(helpers);
    match work.error.into_inner() {
        0 => Ok(threads),
        error => Err(Errno(error)),
    }
}

/// The work of a helper; it needs no memory (`os::spawn`).
extern "C" fn help(work: *mut c_void) -> *mut c_void {
    // SAFETY: `prefault` passes this, and it outlives the helpers there.
    let work: &Work = unsafe { &*work.cast_const().cast() };
    work.run();
    null_mut()
}

/// The state shared by the threads.
struct Work {
    range: Range<usize>,
    page: usize,
    write: bool,
    piece: usize,
    next: AtomicUsize,
    error: AtomicI32,
}

impl Work {
    fn failed(&self) -> bool {
        self.error.load(Relaxed) != 0
    }

    /// Touches one piece after the other. With an error every thread stops after its current piece; the first one counts.
    fn run(&self) {
        while !self.failed() {
            let from = self.next.fetch_add(self.piece, Relaxed);
            if from >= self.range.end {
                return;
            }
            if let Err(error) = self.touch(from, self.piece.min(self.range.end - from)) {
                let _ = self.error.compare_exchange(0, error.0, Relaxed, Relaxed);
            }
        }
    }

    fn touch(&self, address: usize, len: usize) -> Result<(), Errno> {
        loop {
            match os::populate(address, len, self.write) {
                Ok(()) => return Ok(()),
                Err(Errno::INTERRUPTED | Errno::AGAIN) if !self.failed() => {}
                // Kernels before 5.14 do not know the advice. Others refuse memory that the touch would fault on.
                Err(Errno::INVALID | Errno::NO_CALL | Errno::UNSUPPORTED)
                    if os::populate(address, 0, self.write).is_err() =>
                {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        for at in (address..address + len).step_by(self.page) {
            // SAFETY: the range is mapped (the caller of `prefault`); adding zero changes nothing, even if other
            // threads write meanwhile, and reading a byte is harmless.
            unsafe {
                let byte = AtomicU8::from_ptr(with_exposed_provenance_mut(at));
                match self.write {
                    // If the compiler knew that it is zero, it would write nothing.
                    true => byte.fetch_add(black_box(0), Relaxed),
                    false => byte.load(Relaxed),
                };
            }
        }
        Ok(())
    }
}
