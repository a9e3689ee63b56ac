//! The factories of other libraries' allocators: bundled ones, and C functions given by address.

#![allow(unsafe_code)] // Safety: addresses of functions are taken on their giver's word.

use crate::allocators::allocator::PyAllocator;
use crate::python::errors::PyValueError;
use crate::python::global_allocator::ensure_memory;
use firsttouch::allocator::Allocator;
use firsttouch::sources::{Functions, FunctionsTable};
use pyo3::prelude::*;
use std::sync::Arc;

/// The address of a C function, which must not be null.
fn function<T: Copy>(name: &str, address: usize) -> PyResult<T> {
    if address == 0 {
        return Err(PyValueError::new_err(format!("{name}=0 is not the address of a function")));
    }
    assert_eq!(size_of::<T>(), size_of::<usize>());
    // SAFETY: a function pointer is an address; that a function of this type lies there is the caller's promise, as it
    // is with ctypes.
    Ok(unsafe { std::mem::transmute_copy::<usize, T>(&address) })
}

#[pyfunction]
#[pyo3(signature = (malloc, calloc, realloc, free, context))]
fn from_functions(
    py: Python<'_>,
    malloc: usize,
    calloc: Option<usize>,
    realloc: Option<usize>,
    free: usize,
    context: usize,
) -> PyResult<PyAllocator> {
    ensure_memory(py)?;
    let table = FunctionsTable {
        malloc: function("malloc", malloc)?,
        calloc: calloc.map(|address| function("calloc", address)).transpose()?,
        realloc: realloc.map(|address| function("realloc", address)).transpose()?,
        free: function("free", free)?,
        context: std::ptr::with_exposed_provenance_mut(context),
    };
    // SAFETY: as the docstring asks of the caller.
    Ok(PyAllocator::ours(unsafe { Functions::new(table) }))
}

#[cfg(feature = "mimalloc")]
fn bundled_mimalloc() -> PyResult<Arc<dyn Allocator>> {
    firsttouch::sources::Mimalloc::get().map(|source| source as _).map_err(unavailable)
}

#[cfg(feature = "jemalloc")]
fn bundled_jemalloc() -> PyResult<Arc<dyn Allocator>> {
    firsttouch::sources::Jemalloc::get().map(|source| source as _).map_err(unavailable)
}

#[cfg(any(feature = "mimalloc", feature = "jemalloc"))]
fn unavailable(error: firsttouch::AllocError) -> PyErr {
    crate::python::errors::PyMemoryError::new_err(error.to_string())
}

#[cfg(not(feature = "mimalloc"))]
fn bundled_mimalloc() -> PyResult<Arc<dyn Allocator>> {
    Err(crate::python::errors::UnsupportedError::new_err("this build of firsttouch has no mimalloc in it"))
}

#[cfg(not(feature = "jemalloc"))]
fn bundled_jemalloc() -> PyResult<Arc<dyn Allocator>> {
    Err(crate::python::errors::UnsupportedError::new_err("this build of firsttouch has no jemalloc in it"))
}

#[pyfunction]
fn mimalloc() -> PyResult<PyAllocator> {
    bundled_mimalloc().map(PyAllocator::ours)
}

#[pyfunction]
fn jemalloc() -> PyResult<PyAllocator> {
    bundled_jemalloc().map(PyAllocator::ours)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(from_functions, module)?)?;
    module.add_function(wrap_pyfunction!(mimalloc, module)?)?;
    module.add_function(wrap_pyfunction!(jemalloc, module)?)
}
