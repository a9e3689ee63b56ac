//! Blocks on their way back to allocators written in Python. An array may be freed anywhere, so they are queued, and
//! delivered as soon as the interpreter goes on, with the GIL held (law 5 names this exception).

#![allow(unsafe_code)] // Safety: one call that asks Python to call us back.

use crate::python::errors::PyRuntimeError;
use crate::python::values::{self, Name};
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// An object with `allocate` and `deallocate`, kept by its allocator and by blocks that wait for delivery.
pub struct PythonAllocator {
    pub object: Py<PyAny>,
    /// The name of its class.
    pub name: String,
}

/// A block on its way back.
pub struct ReturnedBlock {
    pub to: Arc<PythonAllocator>,
    pub address: usize,
    pub nbytes: usize,
}

static WAITING: Mutex<Vec<ReturnedBlock>> = Mutex::new(Vec::new());
/// Whether the interpreter was asked to deliver.
static IS_PENDING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is delivering.
    static IS_DELIVERING: Cell<bool> = const { Cell::new(false) };
}

/// How often a delivery looks for blocks that came meanwhile. A `deallocate` that itself makes arrays on its allocator always
/// finds more.
const MAX_ROUNDS: usize = 100;

/// Delivers all blocks that wait. An exception goes where exceptions without a caller go.
pub fn deliver(py: Python<'_>) {
    if IS_DELIVERING.replace(true) {
        return; // an array that `deallocate` makes: whoever called that goes on with what waits
    }
    deliver_rounds(py);
    IS_DELIVERING.set(false);
}

fn deliver_rounds(py: Python<'_>) {
    for _ in 0..MAX_ROUNDS {
        let waiting = std::mem::take(&mut *WAITING.lock().unwrap_or_else(PoisonError::into_inner));
        if waiting.is_empty() {
            return;
        }
        for ReturnedBlock { to, address, nbytes } in waiting {
            let object = to.object.bind(py);
            let told = values::arguments(py, (address, nbytes));
            if let Err(error) = told.and_then(|told| object.call_method1(Name("deallocate"), told)) {
                error.write_unraisable(py, Some(object));
            }
        }
    }
}

extern "C" fn deliver_later(_: *mut c_void) -> c_int {
    IS_PENDING.store(false, SeqCst);
    Python::try_attach(deliver);
    0
}

/// Queues a block that an array gave back, from any thread.
pub fn give_back(returned: ReturnedBlock) {
    {
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.try_reserve(1).is_err() {
            return; // freeing cannot fail: without memory to queue the block, it leaks
        }
        waiting.push(returned);
    }
    if !IS_PENDING.swap(true, SeqCst) {
        // SAFETY: may be called from any thread; where the queue is full, the next request delivers.
        if unsafe { ffi::Py_AddPendingCall(Some(deliver_later), null_mut()) } != 0 {
            IS_PENDING.store(false, SeqCst);
        }
    }
}

/// Delivers the blocks that wait now.
#[pyfunction]
#[pyo3(name = "deliver")]
fn deliver_now(py: Python<'_>) -> PyResult<()> {
    if IS_PENDING.load(SeqCst) || !WAITING.lock().map_err(|_| PyRuntimeError::new_err("poisoned"))?.is_empty() {
        deliver(py);
    }
    Ok(())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(deliver_now, module)?)
}
