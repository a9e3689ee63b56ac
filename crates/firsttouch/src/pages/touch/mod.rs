//! First touch: making pages real before use, by the kernel's populate or by a write to each, from several threads.
//!
//! Mapping takes the address space's lock for writing, faults for reading: so one thread maps, and many may touch.

#![allow(unsafe_code)] // Safety: touching changes no byte; who calls promises that the range is mapped.

mod crew;
mod pieces;

use crate::os::Processors;
pub use crew::make_real;
use std::sync::OnceLock;

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
/// Runs work that takes long, letting others run meanwhile. Where there is a number of bytes, it shows how many are done.
pub type Around = fn(Option<usize>, &mut dyn FnMut(GoOn<'_>));

static AROUND: OnceLock<Around> = OnceLock::new();

/// Says how work that takes long is run: a front lets its interpreter go on meanwhile and asks it for signals.
pub fn set_around(around: Around) {
    let _ = AROUND.set(around);
}

/// Runs `work` that way, and shows how much of `shown` bytes is done.
pub fn around<T>(shown: Option<usize>, mut work: impl FnMut(GoOn<'_>) -> T) -> T {
    let mut result = None;
    if let Some(around) = AROUND.get() {
        around(shown, &mut |go_on| result = Some(work(go_on)));
    }
    result.unwrap_or_else(|| work(&mut |_| true))
}
