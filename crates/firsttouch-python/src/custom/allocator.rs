//! Allocators written in Python: an object with `allocate(nbytes, alignment, zeroed)` and `deallocate(address, nbytes)`.
//!
//! They serve constructors and `use`.

#![allow(unsafe_code)] // Safety: the object's promise about its addresses is checked as far as it can be.

use crate::allocators::allocator::PyAllocator;
use crate::custom::calls::{CallDepth, as_address, interrupt, keep_error};
use crate::custom::returned_blocks::{PythonAllocator, ReturnedBlock, deliver, give_back};
use crate::python::errors::{PyMemoryError, PyTypeError, PyValueError};
use crate::python::global_allocator::ensure_memory;
use crate::python::values::{self, Name};
use firsttouch::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use firsttouch::failure;
use firsttouch::heap::ledger::Ledger;
use firsttouch::size::Bytes;
use pyo3::prelude::*;
use std::any::Any;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::{Arc, Mutex, PoisonError, Weak};

struct CustomAllocator {
    object: Arc<PythonAllocator>,
    expression: String,
    /// Bytes asked for, by address.
    ledger: Arc<Ledger<usize>>,
}

impl CustomAllocator {
    /// Calls `allocate` and checks what it returned.
    fn ask(&self, py: Python<'_>, request: Request) -> PyResult<usize> {
        let PythonAllocator { object, name } = self.object.as_ref();
        let (size, align, zeroed) = (request.size(), request.align(), request.is_zeroed());
        let depth = CallDepth::enter(name)?;
        let arguments = values::arguments(py, (size, align, zeroed))?;
        let given = object.bind(py).call_method1(Name("allocate"), arguments);
        let given = given.map_err(|error| depth.explained(py, name, error))?;
        let call = || format!("{name}.allocate({size}, {align}, {})", if zeroed { "True" } else { "False" });
        if given.is_none() {
            return Err(PyMemoryError::new_err(format!("{} returned None: it has no memory", call())));
        }
        let address = as_address(&given, &call)?;
        if address == 0 {
            return Err(PyMemoryError::new_err(format!("{} returned 0: it has no memory", call())));
        }
        if !address.is_multiple_of(align) {
            give_back(ReturnedBlock { to: self.object.clone(), address, nbytes: size });
            return Err(PyValueError::new_err(format!(
                "{} returned {address:#x}, which is not a multiple of {align}",
                call()
            )));
        }
        if NonNull::new(with_exposed_provenance_mut(address)).is_some_and(|address| self.ledger.get(address).is_some())
        {
            return Err(PyValueError::new_err(format!("{} returned {address:#x}, at which an array is live", call())));
        }
        Ok(address)
    }

    fn refused(&self, py: Python<'_>, request: Request, error: PyErr) -> AllocError {
        let failed = AllocError::new(request.size(), Limit::Upstream);
        failure::explain(failed, format!("cannot allocate {}: {}: {error}", Bytes(request.size()), self.object.name));
        interrupt(py, &error);
        keep_error(error.clone_ref(py));
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
            give_back(ReturnedBlock { to: self.object.clone(), address: address.as_ptr() as usize, nbytes });
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

/// Whether an allocator written in Python is at the bottom of a stack: its blocks cannot be freed without the GIL.
pub fn stands_on_python(allocator: &Arc<dyn Allocator>) -> bool {
    let any: &dyn Any = allocator.as_ref();
    any.is::<CustomAllocator>() || allocator.upstream().is_some_and(stands_on_python)
}

/// The allocators that live, by the addresses of their objects.
static LIVING: Mutex<Vec<(usize, Weak<CustomAllocator>)>> = Mutex::new(Vec::new());

/// The allocator of an object with `allocate` and `deallocate`: the same while anyone has it.
#[pyfunction]
fn own(candidate: &Bound<'_, PyAny>) -> PyResult<PyAllocator> {
    ensure_memory(candidate.py())?;
    if let Some(living) = living(candidate) {
        return Ok(PyAllocator::ours(living));
    }
    for method in ["allocate", "deallocate"] {
        if !candidate.getattr_opt(method)?.is_some_and(|found| found.is_callable()) {
            return Err(PyTypeError::new_err(format!(
                "{} has no method {method}(): a custom allocator implements allocate(nbytes, alignment, zeroed) -> \
                 address and deallocate(address, nbytes)",
                candidate.get_type().name()?
            )));
        }
    }
    let name = candidate.get_type().name()?.to_string();
    let expression = candidate.repr()?.to_string();
    let object = Arc::new(PythonAllocator { object: candidate.clone().unbind(), name });
    let made = Arc::new(CustomAllocator { object, expression, ledger: Ledger::new() });
    let mut all = LIVING.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(_, each)| each.strong_count() > 0);
    all.push((candidate.as_ptr() as usize, Arc::downgrade(&made)));
    drop(all);
    Ok(PyAllocator::ours(made))
}

fn living(candidate: &Bound<'_, PyAny>) -> Option<Arc<CustomAllocator>> {
    let all = LIVING.lock().unwrap_or_else(PoisonError::into_inner);
    // A living allocator keeps its object, so that no other one has its address. Others are not upgraded: to be the last
    // to drop one would run code of Python with the lock held.
    all.iter().filter(|(address, _)| *address == candidate.as_ptr() as usize).find_map(|(_, each)| each.upgrade())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(own, module)?)
}
