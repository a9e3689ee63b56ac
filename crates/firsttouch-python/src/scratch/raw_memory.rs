//! Raw memory of an allocator, without an array's shape.

use crate::allocators::allocator::PyAllocator;
use crate::allocators::factories::bytes;
use crate::custom::kept_error;
use crate::handlers::capsules;
use crate::handlers::handler::Handler;
use crate::numpy::c_api::NumPy;
use crate::numpy::tracemalloc;
use crate::python::errors::{PyMemoryError, PyRuntimeError, PyValueError};
use crate::python::values::{self, Name};
use firsttouch::allocator::Request;
use firsttouch::failure;
use pyo3::ffi;
use pyo3::prelude::*;

/// `nbytes` at a multiple of `alignment`, 64 if not given, in a memoryview.
pub fn raw<'py>(
    allocator: &Bound<'py, PyAllocator>,
    nbytes: &Bound<'py, PyAny>,
    alignment: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = allocator.py();
    let size = bytes("nbytes", nbytes)?;
    let align = alignment.map_or(Ok(64), |given| bytes("alignment", given))?;
    let request = Request::bytes(size).aligned(align).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let numpy = NumPy::get(py)?;
    let capsule = capsules::named(py, allocator.get())?;
    let native = capsules::handler(capsule)?.map(Handler::allocator);
    let native = native.ok_or_else(|| PyRuntimeError::new_err("this allocator cannot give raw memory"))?;
    drop(kept_error()); // of an earlier allocation, whose caller did not ask
    let block = native.allocate(request).map_err(|error| {
        if let Some(own) = kept_error() {
            return own;
        }
        let known = failure::last().filter(|last| *last == error).and_then(|_| failure::last_reason());
        PyMemoryError::new_err(known.unwrap_or_else(|| error.to_string()))
    })?;
    let dtype = py.import(Name("numpy"))?.getattr(Name("dtype"))?.call1(values::arguments(py, ("u1",))?)?;
    // SAFETY: the block is the handler's and large enough; where there is no array it goes back at once.
    #[allow(unsafe_code)]
    unsafe {
        let array = numpy.owning(&[size as isize], &dtype, block.address.as_ptr().cast(), capsule);
        let array = array.inspect_err(|_| native.deallocate(block.address))?;
        tracemalloc::track(block.address.as_ptr().cast(), size);
        Bound::from_owned_ptr_or_err(py, ffi::PyMemoryView_FromObject(array.as_ptr()))
    }
}
