//! The swapped pointer: one handler in front of NumPy's default for the whole process.

#![allow(unsafe_code)] // Safety: the one pointer store that reaches every thread, after everything was checked.

use crate::UnsupportedError;
use crate::allocator::PyAllocator;
use crate::handler::{Handler, Kind, NUMPY_NAME, is_front};
use crate::memory_out::{self, PyTypeError};
use crate::numpy_api::{Functions, NumPy, RawHandler, handler_in};
use crate::own::stands_on_python;
use crate::owners;
use crate::trace;
use firsttouch::adaptors::{Options, Pool, SMALL_LIMIT};
use firsttouch::allocator::Allocator;
use pyo3::ffi;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// The handler that stands in front, once there was an `install`.
static FRONT: OnceLock<&'static Handler> = OnceLock::new();
/// NumPy's own default handler, as first seen.
static BEHIND: OnceLock<Behind> = OnceLock::new();
/// Below this many bytes requests stay with NumPy.
static SMALL: AtomicUsize = AtomicUsize::new(SMALL_LIMIT);

struct Behind(*const RawHandler, Functions);
// SAFETY: NumPy's default handler is static and read only.
unsafe impl Send for Behind {}
// SAFETY: as above.
unsafe impl Sync for Behind {}

/// The process's own pool, made on first use and kept.
pub fn process_pool() -> &'static Arc<dyn Allocator> {
    static POOL: OnceLock<Arc<dyn Allocator>> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(Options::default()))
}

/// Requests below this many bytes stay with NumPy.
pub fn small_limit() -> usize {
    SMALL.load(Relaxed)
}

/// What stands behind NumPy's default capsule now, checked: NumPy's own handler, whose functions lie in NumPy's own
/// library, or a front of this package, perhaps another copy's.
pub fn behind_now(py: Python<'_>) -> PyResult<(*const RawHandler, Functions)> {
    let numpy = NumPy::get(py)?;
    let raw = handler_in(&numpy.default_capsule(py))?.cast_const();
    let raw = trace::serving(raw).unwrap_or(raw);
    // SAFETY: a capsule of this name holds a handler, whose first fields have not changed since NumPy 1.22; `version`
    // is checked before the functions are believed.
    let handler = unsafe { &*raw };
    let name = handler.name();
    match handler.allocator.functions() {
        Some(functions)
            if handler.version == 1 && name == NUMPY_NAME && (is_front(handler) || numpy.owns(&functions)) =>
        {
            Ok((raw, functions))
        }
        _ => Err(UnsupportedError::new_err(format!(
            "NumPy's default memory handler is {name:?}, version {}, where firsttouch expects NumPy's own \
             {NUMPY_NAME:?}, version 1: something else stands there, and is left alone",
            handler.version
        ))),
    }
}

fn checked(py: Python<'_>) -> PyResult<&'static Behind> {
    if let Some(found) = BEHIND.get() {
        return Ok(found);
    }
    let (raw, functions) = behind_now(py)?;
    Ok(BEHIND.get_or_init(|| Behind(raw, functions)))
}

/// What stood behind NumPy's default capsule when this copy first looked.
pub fn behind(py: Python<'_>) -> PyResult<*const RawHandler> {
    Ok(checked(py)?.0)
}

/// The functions of what stood behind NumPy's default capsule when this copy first looked.
pub fn next(py: Python<'_>) -> PyResult<Functions> {
    Ok(checked(py)?.1)
}

#[pyfunction]
#[pyo3(signature = (allocator=None))]
fn install(py: Python<'_>, allocator: Option<&PyAllocator>) -> PyResult<()> {
    memory_out::check(py)?;
    let chosen = match allocator {
        None => process_pool().clone(),
        Some(wrapped) => wrapped.native().cloned().ok_or_else(|| {
            PyTypeError::new_err(format!(
                "install() can't take {}: to leave memory to NumPy, call uninstall()",
                wrapped.expression()
            ))
        })?,
    };
    if stands_on_python(&chosen) {
        return Err(PyTypeError::new_err(format!(
            "install() can't take {}: at its bottom is an allocator written in Python, and memory that serves every thread \
             is given back without the GIL; give C functions to firsttouch.from_functions(), or use use()",
            chosen.expression()
        )));
    }
    if !owners::can_tell(chosen.as_ref()) {
        return Err(PyTypeError::new_err(format!(
            "install() can't take {}: its blocks lie outside firsttouch's segments, so their owner could not be told from \
             their address; use it in a block with use(), install tracked() around it, or install pool() or pages()",
            chosen.expression()
        )));
    }
    let small = owners::small_limit(chosen.as_ref(), small_limit());
    behind(py)?;
    let (_, functions) = behind_now(py)?; // somebody may have come since the first look
    if let Some(front) = FRONT.get() {
        front.replace(chosen, small);
        return Ok(());
    }
    put_front(py, chosen, small, functions).map(drop)
}

/// Stands before NumPy's handler, as blocks of ours may come back through it: an array may get another's data. Until
/// somebody installs an allocator all requests go on to NumPy. Where another library stands there, nothing changes.
pub fn take_back(py: Python<'_>) {
    if FRONT.get().is_none() {
        let _ = stand(py);
    }
}

/// The front, which leaves all requests to NumPy where nothing was installed.
fn stand(py: Python<'_>) -> PyResult<&'static Handler> {
    if let Some(front) = FRONT.get() {
        return Ok(front);
    }
    behind(py)?;
    let (_, functions) = behind_now(py)?;
    put_front(py, process_pool().clone(), usize::MAX, functions)
}

/// Puts a handler in front of NumPy's.
fn put_front(
    py: Python<'_>,
    chosen: Arc<dyn Allocator>,
    small: usize,
    functions: Functions,
) -> PyResult<&'static Handler> {
    let front: &'static Handler = Box::leak(Handler::new(Kind::Front, chosen, small, functions));
    if trace::insert_behind(front.raw()) {
        let _ = FRONT.set(front);
        return Ok(front);
    }
    let capsule = NumPy::get(py)?.default_capsule(py);
    // SAFETY: the capsule is NumPy's, its pointer leads to a handler that lives for ever and frees what was there
    // before through the handler that made it (law 4).
    if unsafe { ffi::PyCapsule_SetPointer(capsule.as_ptr(), front.raw().cast_mut().cast()) } != 0 {
        return Err(PyErr::fetch(py));
    }
    let _ = FRONT.set(front);
    Ok(front)
}

/// Lets the gauge be told of every block that the process's arrays get, or of none. Where nothing was ever installed,
/// the front that does it leaves all requests to NumPy.
pub fn watch(py: Python<'_>, on: bool) -> PyResult<()> {
    if !on && FRONT.get().is_none() {
        return Ok(());
    }
    stand(py)?.watch(on);
    Ok(())
}

#[pyfunction]
fn uninstall() {
    if let Some(front) = FRONT.get() {
        front.set_small(usize::MAX);
    }
}

/// The front, while it serves.
pub fn serving() -> Option<&'static Handler> {
    FRONT.get().copied().filter(|front| front.small() != usize::MAX)
}

/// The allocator that is installed now.
pub fn installed() -> Option<Arc<dyn Allocator>> {
    serving().map(|front| front.allocator().clone())
}

#[pyfunction]
fn is_installed() -> bool {
    installed().is_some()
}

/// Changes the size below which requests stay with NumPy; for measurements.
#[pyfunction]
fn set_small_limit(nbytes: usize) {
    SMALL.store(nbytes, Relaxed);
    if let Some(front) = FRONT.get().filter(|front| front.small() != usize::MAX) {
        front.set_small(nbytes);
    }
}

/// Lets segments claim no more than so many slots of the address space; for tests.
#[pyfunction]
fn shrink_slots(count: usize) {
    firsttouch::os::shrink_slots(count);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(install, module)?)?;
    module.add_function(wrap_pyfunction!(uninstall, module)?)?;
    module.add_function(wrap_pyfunction!(is_installed, module)?)?;
    module.add_function(wrap_pyfunction!(set_small_limit, module)?)?;
    module.add_function(wrap_pyfunction!(shrink_slots, module)?)
}
