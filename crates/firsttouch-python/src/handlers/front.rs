//! The front: one handler of ours before NumPy's default, for the whole process.

#![allow(unsafe_code)] // Safety: one handler that lives for ever goes into NumPy's capsule, after everything was checked.

use crate::allocators::process_pool::process_pool;
use crate::handlers::entry_points::{new_handler, set_profiled};
use crate::handlers::handler::{Handler, Kind};
use crate::handlers::numpy_default::{behind, behind_now, capsule_lock, insert_behind_recorder, put_in_capsule};
use crate::numpy::abi::Functions;
use crate::python::guarded::Guarded;
use firsttouch::allocator::Allocator;
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock};

/// The front, once it was needed.
static FRONT: OnceLock<&'static Handler> = OnceLock::new();

/// Lets `allocator` serve the process; requests below `small` bytes stay with NumPy.
pub fn serve(py: Python<'_>, allocator: Arc<dyn Allocator>, small: usize) -> PyResult<()> {
    behind(py)?; // outside the lock, as it may import NumPy
    let _lock = capsule_lock(py);
    let (_, functions) = behind_now(py)?; // another library may have replaced it since
    if let Some(front) = FRONT.get() {
        front.replace(allocator, small);
        return Ok(());
    }
    put_front(py, allocator, small, functions).map(drop)
}

/// Leaves all requests to NumPy from now on.
pub fn stop_serving(py: Python<'_>) {
    let _lock = capsule_lock(py);
    if let Some(front) = FRONT.get() {
        front.set_small(usize::MAX);
    }
}

/// Changes the size below which requests stay with NumPy, where an allocator is installed.
pub fn change_small(py: Python<'_>, nbytes: usize) {
    let _lock = capsule_lock(py);
    if let Some(front) = serving() {
        front.set_small(nbytes);
    }
}

/// Puts the front before NumPy's handler, as blocks of ours may be freed through it: an array may get another's data. Until
/// an allocator is installed all requests go on to NumPy. Where another library's handler stands there, nothing changes.
pub fn ensure_front(py: Python<'_>) {
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
    let _lock = capsule_lock(py);
    if let Some(front) = FRONT.get() {
        return Ok(front);
    }
    let (_, functions) = behind_now(py)?;
    put_front(py, process_pool().clone(), usize::MAX, functions)
}

/// Puts a handler in front of NumPy's, with the lock held.
fn put_front(
    py: Python<'_>,
    allocator: Arc<dyn Allocator>,
    small: usize,
    functions: Functions,
) -> PyResult<&'static Handler> {
    follow_glibc();
    let front: &'static Handler = Box::leak(new_handler(Kind::Front, allocator, small, functions));
    if !insert_behind_recorder(front.raw()) {
        // SAFETY: the handler was leaked, has its functions, and finds the maker of each block by its address.
        unsafe { put_in_capsule(py, front.raw())? };
    }
    let _ = FRONT.set(front);
    Ok(front)
}

/// Lets glibc's thresholds follow the front's blocks, if `malloc` is glibc's own.
fn follow_glibc() {
    #[cfg(target_env = "gnu")]
    {
        use crate::numpy::c_api::library_of;
        let is_own = library_of(libc::malloc as *const _) == library_of(libc::gnu_get_libc_version as *const _);
        let tunables = std::env::var("GLIBC_TUNABLES").unwrap_or_default();
        let fills = std::env::var_os("MALLOC_PERTURB_").is_some() || tunables.contains("glibc.malloc.perturb");
        if is_own && !fills {
            firsttouch::glibc::begin_to_raise();
        }
    }
}

/// Those who watch the front.
static WATCHERS: Guarded<usize> = Guarded::new(0);

/// Reports every block of the process's arrays to the profile, until each call was undone by `unwatch`. Where nothing was
/// ever installed, the front that does it leaves all requests to NumPy.
pub fn watch(py: Python<'_>) -> PyResult<()> {
    let front = stand(py)?;
    let mut watchers = WATCHERS.lock(py);
    *watchers += 1;
    set_profiled(front, true);
    Ok(())
}

/// Undoes one call of `watch`.
pub fn unwatch(py: Python<'_>) {
    let mut watchers = WATCHERS.lock(py);
    *watchers -= 1;
    if let Some(front) = FRONT.get().filter(|_| *watchers == 0) {
        set_profiled(front, false);
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
