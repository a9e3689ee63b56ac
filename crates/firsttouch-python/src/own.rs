//! Allocators written in Python: an object with `allocate(nbytes, alignment, zeroed)` and `deallocate(address, nbytes)`.
//!
//! They serve constructors and `use`. Blocks that arrays give back are queued, as an array may be freed anywhere, and
//! delivered as soon as the interpreter goes on, with the GIL held (law 5 names this exception).

#![allow(unsafe_code)] // Safety: the object's promise about its addresses is checked as far as it can be.

use crate::allocator::PyAllocator;
use crate::callbacks::given;
use crate::memory_out::{self, Name, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
use firsttouch::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use firsttouch::failure;
use firsttouch::heap::ledger::Ledger;
use pyo3::exceptions::{PyException, PyRecursionError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_long, c_void};
use std::ptr::{NonNull, null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// The Python object, kept by the allocator and by blocks that wait for delivery.
struct Object {
    object: Py<PyAny>,
    name: String,
}

struct Own {
    object: Arc<Object>,
    expression: String,
    /// Bytes asked for, by address.
    ledger: Arc<Ledger<usize>>,
}

/// A block on its way back.
struct Returned {
    to: Arc<Object>,
    address: usize,
    nbytes: usize,
}

static RETURNED: Mutex<Vec<Returned>> = Mutex::new(Vec::new());
/// Whether the interpreter was asked to deliver.
static ASKED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// What the last failing `allocate` of this thread raised.
    static ERROR: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// Whether Python was asked to raise its like in this thread.
    static ON_ITS_WAY: Cell<bool> = const { Cell::new(false) };
}

/// The address that a method written in Python returned; an error where that is none, which `call` names.
pub fn as_address(given: &Bound<'_, PyAny>, call: &impl Fn() -> String) -> PyResult<usize> {
    if !given.is_instance_of::<PyInt>() || given.is_instance_of::<PyBool>() {
        let kind = given.get_type().name()?;
        return Err(PyTypeError::new_err(format!("{} returned {kind}, not an address (an int)", call())));
    }
    given.extract().map_err(|_| PyValueError::new_err(format!("{} returned {given}, which is not an address", call())))
}

/// Keeps what an allocation of this thread raised, for the constructor that asked.
pub fn keep_error(error: PyErr) {
    let before = ERROR.with(|last| last.borrow_mut().replace(error));
    drop(before); // no borrow lives: its end may run code that comes back here
}

/// What was kept, once; who takes it raises it, and nobody else has to.
pub fn kept_error() -> Option<PyErr> {
    let found = ERROR.with(|last| last.borrow_mut().take());
    if found.is_some() && ON_ITS_WAY.replace(false) {
        // SAFETY: has no preconditions but the GIL, with which errors are kept and taken.
        unsafe { ffi::PyThreadState_SetAsyncExc(ffi::PyThread_get_thread_ident() as c_long, null_mut()) };
    }
    found
}

/// Drops what was kept.
pub fn forget_error() {
    drop(kept_error());
}

/// Calls of `allocate` that may run within each other in one thread: an allocator of one's own that stands on others of
/// one's own needs a few.
const DEEPEST: usize = 32;

thread_local! {
    /// How many calls run, and whether one was refused: then those around fail too, instead of trying again each.
    static RUNNING: Cell<(usize, bool)> = const { Cell::new((0, false)) };
}

/// A call of Python's `allocate` that runs in this thread.
pub struct Depth;

impl Depth {
    /// A `RecursionError` where too many run already: native frames lie between them, and Python, which counts its own,
    /// would notice after the end of the stack.
    pub fn enter(name: &str) -> PyResult<Self> {
        let (depth, refused) = RUNNING.get();
        if depth >= DEEPEST || (refused && depth > 0) {
            RUNNING.set((depth, true));
            return Err(PyRecursionError::new_err(format!(
                "{name}.allocate() makes arrays on the allocator that it serves, which calls it again, without end"
            )));
        }
        RUNNING.set((depth + 1, false));
        Ok(Self)
    }
}

impl Drop for Depth {
    fn drop(&mut self) {
        let (depth, refused) = RUNNING.get();
        RUNNING.set((depth - 1, refused && depth > 1));
    }
}

extern "C" fn raise_kept(_: *mut c_void) -> c_int {
    let raised = Python::try_attach(|py| {
        let error = kept_error()?;
        if error.is_instance_of::<PyException>(py) {
            keep_error(error); // a later one, which somebody will ask for
            return None;
        }
        error.restore(py);
        Some(())
    });
    if raised.flatten().is_some() { -1 } else { 0 }
}

/// Has what asks a program to end (`KeyboardInterrupt`, `SystemExit`) come out as itself, whoever asked for memory: NumPy
/// makes an error of its own of every failure, and while it makes it, Python looks for what is pending.
pub fn interrupt(py: Python<'_>, error: &PyErr) {
    if error.is_instance_of::<PyException>(py) {
        return;
    }
    // SAFETY: have no preconditions but the GIL.
    let here = unsafe { ffi::PyThread_get_thread_ident() } as u64;
    let main = || -> PyResult<u64> { given(py, "main_thread")?.call0()?.getattr("ident")?.extract() };
    // SAFETY: as above; a full queue leaves NumPy's error. Threads but the main one get the exception without its text.
    unsafe {
        if main().is_ok_and(|main| main == here) {
            ffi::Py_AddPendingCall(Some(raise_kept), null_mut());
        } else {
            ffi::PyThreadState_SetAsyncExc(here as c_long, error.get_type(py).as_ptr());
            ON_ITS_WAY.set(true);
        }
    }
}

/// Delivers all blocks that wait. An exception goes where exceptions without a caller go.
fn deliver(py: Python<'_>) {
    loop {
        let waiting = std::mem::take(&mut *RETURNED.lock().unwrap_or_else(PoisonError::into_inner));
        if waiting.is_empty() {
            return;
        }
        for Returned { to, address, nbytes } in waiting {
            let object = to.object.bind(py);
            let told = memory_out::arguments(py, (address, nbytes));
            if let Err(error) = told.and_then(|told| object.call_method1(Name("deallocate"), told)) {
                error.write_unraisable(py, Some(object));
            }
        }
    }
}

extern "C" fn deliver_later(_: *mut c_void) -> c_int {
    ASKED.store(false, SeqCst);
    Python::try_attach(deliver);
    0
}

fn give_back(returned: Returned) {
    {
        let mut waiting = RETURNED.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.try_reserve(1).is_err() {
            return; // a free can't fail: where there is no memory to note the block, it is lost
        }
        waiting.push(returned);
    }
    if !ASKED.swap(true, SeqCst) {
        // SAFETY: may be called from any thread; where the queue is full, the next request delivers.
        if unsafe { ffi::Py_AddPendingCall(Some(deliver_later), null_mut()) } != 0 {
            ASKED.store(false, SeqCst);
        }
    }
}

impl Own {
    /// Calls `allocate` and checks what it returned.
    fn ask(&self, py: Python<'_>, request: Request) -> PyResult<usize> {
        let Object { object, name } = self.object.as_ref();
        let (size, align, zeroed) = (request.size(), request.align(), request.is_zeroed());
        let _depth = Depth::enter(name)?;
        let arguments = memory_out::arguments(py, (size, align, zeroed))?;
        let given = object.bind(py).call_method1(Name("allocate"), arguments)?;
        let call = || format!("{name}.allocate({size}, {align}, {})", if zeroed { "True" } else { "False" });
        if given.is_none() {
            return Err(PyMemoryError::new_err(format!("{} returned None: it has no memory", call())));
        }
        let address = as_address(&given, &call)?;
        if address == 0 {
            return Err(PyMemoryError::new_err(format!("{} returned 0: it has no memory", call())));
        }
        if !address.is_multiple_of(align) {
            give_back(Returned { to: self.object.clone(), address, nbytes: size });
            return Err(PyValueError::new_err(format!(
                "{} returned {address:#x}, which is not a multiple of {align}",
                call()
            )));
        }
        Ok(address)
    }

    fn refused(&self, py: Python<'_>, request: Request, error: PyErr) -> AllocError {
        let failed = AllocError::new(request.size(), Limit::Upstream);
        failure::explain(failed, format!("{} bytes could not be had: {}: {error}", request.size(), self.object.name));
        interrupt(py, &error);
        keep_error(error.clone_ref(py));
        failed
    }
}

// SAFETY: the ledger knows the blocks; that the object's memory is good is the promise of whoever wrote it.
unsafe impl Allocator for Own {
    fn describe(&self) -> Description {
        Description::opaque(self.expression.clone())
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        let attached = Python::try_attach(|py| {
            deliver(py);
            let address = self.ask(py, request).map_err(|error| self.refused(py, request, error))?;
            let address = NonNull::new(with_exposed_provenance_mut::<u8>(address));
            let address = address.ok_or_else(|| AllocError::new(request.size(), Limit::Upstream))?;
            self.ledger.enter(address, request.size(), request.size())?;
            Ok(Block { address, size: request.size(), zeroed: request.is_zeroed() })
        });
        attached.unwrap_or_else(|| {
            let error = AllocError::new(request.size(), Limit::Upstream);
            failure::explain(error, format!("{}: the interpreter is shutting down", self.object.name));
            Err(error)
        })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        if let Some(nbytes) = self.ledger.leave(address) {
            give_back(Returned { to: self.object.clone(), address: address.as_ptr() as usize, nbytes });
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        self.ledger.get(address).unwrap_or(0)
    }

    fn owns(&self, address: NonNull<u8>) -> Option<bool> {
        Some(self.ledger.get(address).is_some())
    }

    fn must_stay(&self) -> bool {
        self.ledger.any()
    }
}

/// Whether Python code is at the bottom of a stack: then its blocks can't be given back without the GIL.
pub fn stands_on_python(allocator: &Arc<dyn Allocator>) -> bool {
    let any: &dyn Any = allocator.as_ref();
    any.is::<Own>() || allocator.upstream().is_some_and(stands_on_python)
}

/// An allocator from an object with `allocate` and `deallocate`.
#[pyfunction]
fn own(candidate: &Bound<'_, PyAny>) -> PyResult<PyAllocator> {
    memory_out::check(candidate.py())?;
    for method in ["allocate", "deallocate"] {
        if !candidate.getattr_opt(method)?.is_some_and(|found| found.is_callable()) {
            return Err(PyTypeError::new_err(format!(
                "{} has no method {method}(): an allocator of one's own has allocate(nbytes, alignment, zeroed) -> \
                 address and deallocate(address, nbytes)",
                candidate.get_type().name()?
            )));
        }
    }
    let name = candidate.get_type().name()?.to_string();
    let expression = candidate.repr()?.to_string();
    let object = Arc::new(Object { object: candidate.clone().unbind(), name });
    Ok(PyAllocator::ours(Arc::new(Own { object, expression, ledger: Ledger::new() })))
}

/// The exception that an allocator of one's own raised in this thread since last asked.
#[pyfunction]
fn take_error(py: Python<'_>) -> Option<Py<PyAny>> {
    kept_error().map(|error| error.into_value(py).into_any())
}

/// Delivers the blocks that wait now.
#[pyfunction]
#[pyo3(name = "deliver")]
fn deliver_now(py: Python<'_>) -> PyResult<()> {
    if ASKED.load(SeqCst) || !RETURNED.lock().map_err(|_| PyRuntimeError::new_err("poisoned"))?.is_empty() {
        deliver(py);
    }
    Ok(())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(own, module)?)?;
    module.add_function(wrap_pyfunction!(take_error, module)?)?;
    module.add_function(wrap_pyfunction!(deliver_now, module)?)
}
