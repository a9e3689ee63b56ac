//! Allocators written in Python: an object with `allocate(nbytes, alignment, zeroed)` and `deallocate(address, nbytes)`.
//!
//! They serve constructors and `use`. An array may be freed anywhere, so blocks on their way back are queued, and delivered
//! as soon as the interpreter goes on, with the GIL held (law 5 names this exception). What `allocate` raises is kept for
//! whoever asked for the memory, as NumPy replaces errors of its handlers by its own.

#![allow(unsafe_code)] // Safety: the object's promise about its addresses is checked as far as it can be.

use crate::allocators::allocator::PyAllocator;
use crate::python::gil::{self, Name, thread_dict};
use crate::python::values::{PyMemoryError, PyTypeError, PyValueError, ensure_memory};
use firsttouch::allocator::{AllocError, Allocator, Block, BlockList, Description, Limit, Request};
use firsttouch::failure;
use firsttouch::heap::purger;
use firsttouch::ledger::Ledger;
use firsttouch::owners;
use firsttouch::size::Bytes;
use firsttouch::sync::lock::Lock;
use pyo3::exceptions::PyRecursionError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use std::any::Any;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Weak};

/// An object with `allocate` and `deallocate`, kept by its allocator and by blocks that wait for delivery.
struct PythonAllocator {
    object: Py<PyAny>,
    /// The name of its class.
    name: String,
}

struct CustomAllocator {
    object: Arc<PythonAllocator>,
    expression: String,
    /// Bytes asked for, by address.
    ledger: Arc<Ledger<usize>>,
}

impl CustomAllocator {
    /// Calls `allocate` and checks what it returned.
    fn ask(&self, py: Python<'_>, request: Request) -> PyResult<NonNull<u8>> {
        let PythonAllocator { object, name } = self.object.as_ref();
        let (size, align, zeroed) = (request.size(), request.align(), request.is_zeroed());
        RUNNING.set(RUNNING.get() + 1);
        let _running = RunningCall;
        if RUNNING.get() > MAX_RUNNING {
            return Err(PyRecursionError::new_err(format!("{name}.allocate() is called within {MAX_RUNNING} others")));
        }
        let given = gil::call_method(object.bind(py), "allocate", (size, align, zeroed))?;
        let call = || format!("{name}.allocate({size}, {align}, {})", if zeroed { "True" } else { "False" });
        let number = given.cast_exact::<PyInt>().ok().and_then(|given| given.extract().ok());
        let Some(address) = number.or(given.is_none().then_some(0_usize)) else {
            return Err(PyTypeError::new_err(format!("{} returned {given}, which is not an address (an int)", call())));
        };
        let Some(at) = NonNull::new(with_exposed_provenance_mut(address)) else {
            return Err(PyMemoryError::new_err(format!("{} returned {given}: it has no memory", call())));
        };
        let is_live = self.ledger.get(at).is_some();
        let why = match () {
            () if is_live => "at which an array is live".into(),
            () if !address.is_multiple_of(align) => format!("which is not a multiple of {align}"),
            () if owners::is_lent(at) => {
                "where a block of a FixedBuffer or of another such allocator begins: take one that \
                                          begins inside of it"
                    .into()
            }
            () => return Ok(at),
        };
        if !is_live {
            queue(ReturnedBlock { to: self.object.clone(), address, nbytes: size });
        }
        Err(PyValueError::new_err(format!("{} returned {address:#x}, {why}", call())))
    }

    fn refused(&self, py: Python<'_>, request: Request, error: PyErr) -> AllocError {
        // NumPy makes an error of its own of a refusal within `allocate`.
        let within =
            error.cause(py).or_else(|| take_error(py)).filter(|within| within.is_instance_of::<PyRecursionError>(py));
        let error = within.unwrap_or(error);
        let failed = AllocError::new(request.size(), Limit::Upstream);
        failure::explain(failed, format!("cannot allocate {}: {}: {error}", Bytes(request.size()), self.object.name));
        keep_error(py, error);
        failed
    }
}

// SAFETY: the ledger knows the blocks; that the object's memory is valid until it is freed is what `OwnAllocator`
// demands of its author.
unsafe impl Allocator for CustomAllocator {
    fn describe(&self) -> Description {
        Description::opaque(self.expression.clone())
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        let attached = Python::try_attach(|py| {
            deliver(py);
            drop(take_error(py)); // of an earlier request, whose caller did not take it
            let address = self.ask(py, request).map_err(|error| self.refused(py, request, error))?;
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
            queue(ReturnedBlock { to: self.object.clone(), address: address.as_ptr() as usize, nbytes });
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        self.ledger.get(address).unwrap_or(0)
    }

    fn list(&self) -> Option<&dyn BlockList> {
        Some(&*self.ledger)
    }

    fn is_lent(&self) -> bool {
        true
    }

    fn calls_out(&self) -> bool {
        true
    }
}

/// Whether an allocator written in Python is at the bottom of a stack: its blocks cannot be freed without the GIL.
pub fn stands_on_python(allocator: &Arc<dyn Allocator>) -> bool {
    let any: &dyn Any = allocator.as_ref();
    any.is::<CustomAllocator>() || allocator.upstream().is_some_and(stands_on_python)
}

/// The allocators that live, by the addresses of their objects.
static LIVING: Lock<Vec<(usize, Weak<CustomAllocator>)>> = Lock::new(Vec::new());

/// The allocator of an object with `allocate` and `deallocate`: the same while anyone has it.
#[pyfunction]
pub fn own(candidate: &Bound<'_, PyAny>) -> PyResult<PyAllocator> {
    ensure_memory(candidate.py())?;
    if let Some(living) = living(&LIVING.lock(), candidate) {
        return Ok(PyAllocator::ours(living));
    }
    static ENTERED: AtomicBool = AtomicBool::new(false);
    purger::enter_once(&WAITING, &ENTERED);
    let name = candidate.get_type().name()?.to_string();
    let expression = candidate.repr()?.to_string();
    let object = Arc::new(PythonAllocator { object: candidate.clone().unbind(), name });
    let made = Arc::new(CustomAllocator { object, expression, ledger: Ledger::new() });
    let mut all = LIVING.lock();
    let one = living(&all, candidate).unwrap_or_else(|| made.clone()); // another may have come first, as `repr` runs any code
    all.retain(|(_, each)| each.strong_count() > 0);
    all.push((candidate.as_ptr() as usize, Arc::downgrade(&one)));
    drop(all);
    Ok(PyAllocator::ours(one))
}

fn living(all: &[(usize, Weak<CustomAllocator>)], candidate: &Bound<'_, PyAny>) -> Option<Arc<CustomAllocator>> {
    // A living allocator keeps its object, so that no other one has its address. Others are not upgraded: to be the last
    // to drop one would run code of Python with the lock held.
    all.iter().filter(|(address, _)| *address == candidate.as_ptr() as usize).find_map(|(_, each)| each.upgrade())
}

// What a thread has here is dropped by Python or by nobody: glibc ends the process where it has no memory to note that a thread
// has a value of Rust's to drop.

thread_local! {
    /// Calls of `allocate` that run in this thread, each within the one before.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
    /// Whether the thread's dictionary has an exception.
    static HAS_ERROR: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread is delivering.
    static IS_DELIVERING: Cell<bool> = const { Cell::new(false) };
}

/// More of them are those of an allocator that serves itself. Each takes 4 to 7 KiB of the stack, whose end CPython sees from
/// 3.14 on.
const MAX_RUNNING: usize = 50;

struct RunningCall;

impl Drop for RunningCall {
    fn drop(&mut self) {
        RUNNING.set(RUNNING.get() - 1);
    }
}

/// Where the thread's dictionary has the exception.
pub static ERROR: Name = Name::new("firsttouch.error");

/// Keeps the exception of an allocation of this thread for whoever requested it, if there is memory.
fn keep_error(py: Python<'_>, error: PyErr) {
    let kept = thread_dict(py).and_then(|dict| dict.set_item(ERROR.get(py), error.into_value(py)));
    HAS_ERROR.set(kept.is_ok());
}

/// The exception that was kept, once: the caller raises it.
#[pyfunction]
pub fn take_error(py: Python<'_>) -> Option<PyErr> {
    if !HAS_ERROR.replace(false) {
        return None;
    }
    let dict = thread_dict(py).ok()?;
    let error = dict.get_item(ERROR.get(py)).ok()??;
    let _ = dict.del_item(ERROR.get(py));
    Some(PyErr::from_value(error))
}

/// A block on its way back.
struct ReturnedBlock {
    to: Arc<PythonAllocator>,
    address: usize,
    nbytes: usize,
}

static WAITING: Lock<Vec<ReturnedBlock>> = Lock::new(Vec::new());
/// Whether the interpreter was asked to deliver.
static IS_PENDING: AtomicBool = AtomicBool::new(false);

/// How often a delivery looks for blocks that came meanwhile. A `deallocate` that itself makes arrays on its allocator always
/// finds more.
const MAX_ROUNDS: usize = 100;

/// Delivers all blocks that wait. An exception goes where exceptions without a caller go.
#[pyfunction]
pub fn deliver(py: Python<'_>) {
    if IS_DELIVERING.replace(true) {
        return; // an array that `deallocate` makes: whoever called that goes on with what waits
    }
    for _ in 0..MAX_ROUNDS {
        let waiting = std::mem::take(&mut *WAITING.lock());
        if waiting.is_empty() {
            break;
        }
        for ReturnedBlock { to, address, nbytes } in waiting {
            let object = to.object.bind(py);
            // PyO3 panics where there is no memory for a number: the others are delivered all the same.
            let told = catch_unwind(AssertUnwindSafe(|| gil::call_method(object, "deallocate", (address, nbytes))));
            if let Ok(Err(error)) = told {
                error.write_unraisable(py, Some(object));
            }
        }
    }
    IS_DELIVERING.set(false);
}

extern "C" fn deliver_later(_: *mut c_void) -> c_int {
    IS_PENDING.store(false, SeqCst);
    Python::try_attach(deliver);
    0
}

/// Queues a block that an array gave back, from any thread.
fn queue(returned: ReturnedBlock) {
    {
        let mut waiting = WAITING.lock();
        if waiting.try_reserve(1).is_err() {
            return; // freeing cannot fail: without memory to queue the block, it leaks
        }
        waiting.push(returned);
    }
    if !IS_PENDING.swap(true, SeqCst) {
        // SAFETY: any thread may call it. Where the queue is full, the next request delivers.
        if unsafe { ffi::Py_AddPendingCall(Some(deliver_later), null_mut()) } != 0 {
            IS_PENDING.store(false, SeqCst);
        }
    }
}
