//! First touch: faults in pages before use, by the kernel's populate or by a write to each, in several threads.
//!
//! Mapping acquires the address space's lock for writing, page faults for reading: so one thread maps, and many may
//! touch.

#![allow(unsafe_code)] // Safety: touching changes no byte; callers guarantee that the range is mapped.

mod crew;
mod pieces;

use crate::os::Processors;
pub use crew::make_real;
use std::sync::OnceLock;

/// How a page is faulted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a write, which changes nothing.
    Write,
    /// By a read; memory that was never written may stay the shared zero page.
    Read,
}

/// How pages are assigned to threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Each thread takes the next free piece.
    Dynamic,
    /// Each thread has one slab, as in a loop with a static schedule.
    Static,
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
    /// The processors to run on; `None` for those of the calling thread.
    pub processors: Option<Processors>,
    /// How pages are assigned to threads.
    pub pattern: Pattern,
}

/// The result of a prefault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The number of threads that worked.
    pub threads: usize,
    /// Whether the kernel's populate did it, rather than touches.
    pub by_kernel: bool,
}

/// Called repeatedly with the bytes done so far; returns whether to continue.
pub type GoOn<'a> = &'a mut dyn FnMut(usize) -> bool;
/// Runs long work without blocking other threads of a front. If a number of bytes is given, it shows the progress.
pub type Around = fn(Option<usize>, &mut dyn FnMut(GoOn<'_>));

static AROUND: OnceLock<Around> = OnceLock::new();

/// Sets how long work is run: a front releases its interpreter meanwhile and checks for signals.
pub fn set_around(around: Around) {
    let _ = AROUND.set(around);
}

/// Runs `work` in that way, and shows its progress as a part of `shown` bytes.
pub fn around<T>(shown: Option<usize>, mut work: impl FnMut(GoOn<'_>) -> T) -> T {
    let mut result = None;
    if let Some(around) = AROUND.get() {
        around(shown, &mut |go_on| result = Some(work(go_on)));
    }
    result.unwrap_or_else(|| work(&mut |_| true))
}
