//! What bounds the memory of this process, for the commands that show it or measure within it.

use firsttouch::os;
use pyo3::prelude::*;

/// The bytes that this process may still use.
#[pyfunction]
pub fn headroom() -> usize {
    os::headroom()
}

/// The limit and the use, in bytes, of the machine's memory, the control group's, the address space, and the data segment;
/// `None` for what has no limit.
#[pyfunction]
pub fn memory_bounds() -> Vec<Option<(usize, usize)>> {
    os::memory_bounds().into_iter().map(|bound| bound.map(|bound| (bound.limit, bound.used))).collect()
}
