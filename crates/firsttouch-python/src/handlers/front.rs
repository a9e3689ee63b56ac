//! The front of the whole process, and `install` and `uninstall`. It is two handlers: one before NumPy's own, for arrays, and one
//! before CPython's allocator of the raw domain, for other large requests (`raw.rs`).

#![allow(unsafe_code)] // Safety: one handler that lives for ever; a block's owner is found by its address (law 4).

use crate::allocators::allocator::{PyAllocator, process_pool};
use crate::custom::stands_on_python;
use crate::handlers::handler::{Handler, Kind};
use crate::handlers::raw;
use crate::libraries;
use crate::numpy::NumPy;
use crate::python::values::{PyTypeError, ensure_memory};
use firsttouch::allocator::Allocator;
use firsttouch::sync::OnceBox;
use firsttouch::sync::lock::Lock;
use pyo3::prelude::*;
use std::sync::Arc;

/// The handler for arrays, once it was needed.
static FRONT: OnceBox<&'static Handler> = OnceBox::new();

/// The state of the front. Its lock is also held while the front is put in its place, or gets another allocator, as each sets
/// several words.
struct Installation {
    /// How many profiles and traces watch the front.
    watchers: usize,
    /// All allocators that were ever installed. They are kept, as another thread may be about to call one.
    ever: Vec<&'static Arc<dyn Allocator>>,
    /// Why the installed allocator serves arrays alone, if it does.
    arrays_only: Option<&'static str>,
}

static INSTALLATION: Lock<Installation> = Lock::new(Installation { watchers: 0, ever: Vec::new(), arrays_only: None });

/// Puts the front before NumPy's handler, because blocks of ours may be freed through that: an array may get another's data.
/// Until an allocator is installed all requests are passed on to NumPy. Where another library's handler is, nothing changes.
pub fn ensure_front(py: Python<'_>) {
    if FRONT.get().is_none() {
        let _ = put(py);
    }
}

/// The front, put in its place if it is not there. It passes all requests on to NumPy until an allocator is installed.
fn put(py: Python<'_>) -> PyResult<&'static Handler> {
    if let Some(front) = FRONT.get() {
        return Ok(front);
    }
    let numpy = NumPy::get(py)?; // outside the lock, as it may import NumPy
    let &(_, behind) = numpy.own_handler(py)?;
    let _lock = INSTALLATION.lock();
    if let Some(front) = FRONT.get() {
        return Ok(front);
    }
    numpy.default_handler(py, std::ptr::null())?;
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if is_glibcs() {
        firsttouch_report::glibc::begin_to_raise(|size| is_mapped(size, 0));
    }
    let front: &'static Handler = Box::leak(Handler::new(Kind::Front, process_pool().clone(), usize::MAX, behind));
    // SAFETY: the handler was leaked, passes on what it does not serve, and finds the owner of each block by its address.
    unsafe { numpy.put_front(py, &raw const front.raw)? };
    let _ = FRONT.set(Box::new(front));
    Ok(front)
}

/// Whether `malloc` is glibc's own.
fn is_glibcs() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use firsttouch::os::library_of;
        library_of(libc::malloc as *const _) == library_of(libc::gnu_get_libc_version as *const _)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}

/// Whether glibc maps a block of `size` bytes by itself. It does not if the block fits a gap of the heap: then the block is held
/// until the heap grows. Freed at its whole size, a mapped block would raise the thresholds, so it is shrunk first.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn is_mapped(size: usize, held: usize) -> bool {
    // SAFETY: null or a block of this `malloc`, which nobody else uses, is resized and freed once; sbrk(0) only asks.
    unsafe {
        let (end, block) = (libc::sbrk(0), std::hint::black_box(libc::malloc(size)));
        let follows_a_header = block as usize % firsttouch::os::page_size() == 16; // which begins a page
        let is_in_gap = !follows_a_header && libc::sbrk(0) == end && held < 32 << 20;
        let is_mapped = if is_in_gap { is_mapped(size, held + size) } else { follows_a_header };
        libc::free(std::hint::black_box(libc::realloc(block, 1)));
        is_mapped
    }
}

/// A reference to `allocator` that lives for ever; the same one however often it is installed.
fn for_ever(ever: &mut Vec<&'static Arc<dyn Allocator>>, allocator: Arc<dyn Allocator>) -> &'static Arc<dyn Allocator> {
    let found = ever.iter().copied().find(|other| Arc::ptr_eq(other, &allocator));
    found.unwrap_or_else(|| {
        ever.push(Box::leak(Box::new(allocator)));
        ever[ever.len() - 1]
    })
}

/// Lets `allocator` serve the process. Requests below its small limit are passed on to NumPy and CPython.
fn serve(py: Python<'_>, allocator: Arc<dyn Allocator>, arrays_only: bool) -> PyResult<()> {
    let (front, small) = (put(py)?, allocator.small_limit());
    let installation = &mut *INSTALLATION.lock();
    NumPy::get(py)?.default_handler(py, &raw const front.raw)?; // another library may have replaced it since
    let raw = match small {
        _ if arrays_only => Err("install(arrays_only=True) asked for it"),
        0 => Err("the installed allocator serves requests of every size, of which CPython makes too many"),
        _ => raw::put(py),
    };
    raw::close();
    let allocator = for_ever(&mut installation.ever, allocator);
    front.replace(allocator, small);
    installation.arrays_only = raw.err();
    if let Ok(raw) = raw {
        raw.replace(allocator, small);
    }
    Ok(())
}

/// The front, while it serves.
pub fn serving() -> Option<&'static Handler> {
    FRONT.get().copied().filter(|front| front.small_limit() != usize::MAX)
}

/// The allocator that is installed now.
pub fn installed() -> Option<Arc<dyn Allocator>> {
    serving().map(|front| front.allocator().clone())
}

/// Tells profiles and traces of every block of the process's arrays, until each call was undone by `unwatch`. Puts the front in
/// its place for that.
pub fn watch(py: Python<'_>) -> PyResult<()> {
    let front = put(py)?;
    let mut installation = INSTALLATION.lock();
    installation.watchers += 1;
    front.set_observed(true);
    Ok(())
}

/// Puts our functions before CPython's allocator of the raw domain for traces, or says why not. That alone serves nothing.
pub fn watch_buffers(py: Python<'_>) -> Result<(), &'static str> {
    let _lock = INSTALLATION.lock();
    raw::put(py).map(drop)
}

/// Undoes one call of `watch`.
pub fn unwatch() {
    let mut installation = INSTALLATION.lock();
    installation.watchers -= 1;
    if let Some(front) = FRONT.get().filter(|_| installation.watchers == 0) {
        front.set_observed(false);
    }
}

#[pyfunction]
#[pyo3(signature = (allocator=None, arrays_only=false, trim_c_library=false))]
pub fn install(
    py: Python<'_>,
    allocator: Option<&PyAllocator>,
    arrays_only: bool,
    trim_c_library: bool,
) -> PyResult<()> {
    ensure_memory(py)?;
    let chosen = match allocator {
        None => process_pool().clone(),
        Some(wrapped) => wrapped.native().cloned().ok_or_else(|| {
            PyTypeError::new_err(format!(
                "install() cannot take {}: to leave memory to NumPy, call uninstall()",
                wrapped.expression()
            ))
        })?,
    };
    if stands_on_python(&chosen) {
        return Err(PyTypeError::new_err(format!(
            "install() cannot take {}: at its bottom is an allocator written in Python, and memory that serves every thread \
             is given back without the GIL; give C functions to firsttouch.allocators.from_functions(), or use use()",
            chosen.expression()
        )));
    }
    serve(py, chosen, arrays_only)?;
    if trim_c_library && is_glibcs() {
        libraries::begin(py)?;
    }
    Ok(())
}

/// Stop serving new arrays of the process; existing arrays are freed by the allocator that created them.
///
/// See Also
/// --------
/// install : Serve every new array of the process.
///
/// Notes
/// -----
/// Never fails, and does nothing where no allocator is installed.
///
/// Examples
/// --------
/// >>> ft.uninstall()
/// >>> ft.is_installed()
/// False
#[pyfunction]
pub fn uninstall() {
    let _lock = INSTALLATION.lock();
    raw::close();
    if let Some(front) = FRONT.get() {
        front.set_small_limit(usize::MAX);
    }
}

/// Return whether an allocator is installed; :func:`use` around the caller does not count.
///
/// Returns
/// -------
/// bool
///
/// See Also
/// --------
/// install : Serve every new array of the process.
///
/// Examples
/// --------
/// >>> with ft.use():
/// ...     ft.is_installed()
/// False
#[pyfunction]
pub fn is_installed() -> bool {
    installed().is_some()
}

/// Why the installed allocator serves arrays alone; nothing where it serves all large blocks of Python's.
#[pyfunction]
pub fn arrays_only() -> Option<&'static str> {
    INSTALLATION.lock().arrays_only
}
