//! What bounds the memory of this process, for the commands that show it or measure within it.

use crate::allocators::allocator::PyAllocator;
use firsttouch::adaptors::{Accounts, Limited};
use firsttouch::allocator::find;
use firsttouch::os::{self, Errno};
use pyo3::prelude::*;

pub(super) fn os_error(error: Errno) -> PyErr {
    std::io::Error::from_raw_os_error(error.0).into()
}

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

/// Makes the file of a budget that processes share, and returns its number.
#[pyfunction]
pub fn budget_file() -> PyResult<i32> {
    let file = Accounts::create().map_err(os_error)?;
    let number = os::file_number(&file);
    std::mem::forget(file); // the caller closes it
    Ok(number)
}

/// Lets the budget of this process be that of all processes which open the file that `process` has open under the number `file`.
#[pyfunction]
pub fn share_budget(allocator: &PyAllocator, process: u32, file: i32) -> PyResult<()> {
    if let Some(limited) = allocator.native().and_then(find::<Limited>) {
        let accounts = Accounts::open(process, file).map_err(os_error)?;
        limited.join(accounts);
    }
    Ok(())
}

/// Notes that this process ends by itself.
#[pyfunction]
pub fn leave_budget(allocator: &PyAllocator) {
    if let Some(limited) = allocator.native().and_then(find::<Limited>) {
        limited.leave();
    }
}

/// Lets the kernel kill this process when the thread of `parent` ends that started it.
#[pyfunction]
pub fn end_with(parent: u32) {
    os::end_with(parent);
}
