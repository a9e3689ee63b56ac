//! What a fixed buffer stands on: memory of the pool, or any writable memory that another object lends.

#![allow(unsafe_code)] // Safety: Python's buffer protocol, whose view is kept for as long as the memory is used.

use super::lent as loans;
use crate::memory_out::{PyTypeError, PyValueError};
use firsttouch::allocator::{AllocError, Allocator, Request};
use firsttouch::os;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::Arc;

/// Memory, and what keeps it.
pub struct Storage {
    pub address: NonNull<u8>,
    pub size: usize,
    /// Whether forked children would write to the same memory.
    pub shared: bool,
    pub keep: Box<dyn std::any::Any + Send + Sync>,
}

/// A block that goes back when it is dropped.
struct Block(Arc<dyn Allocator>, NonNull<u8>);

// SAFETY: a block may be given back from any thread (law 6).
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the block came from this allocator, and the buffer on it is gone with all its arrays.
        unsafe { self.0.deallocate(self.1) }
    }
}

/// Another object's memory, which it must not move or free meanwhile.
struct Lent(Box<ffi::Py_buffer>, Option<u64>);

// SAFETY: the view is only read, and released with the GIL held.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl Drop for Lent {
    fn drop(&mut self) {
        // At the interpreter's end, when there is none, memory goes anyway.
        Python::try_attach(|py| {
            if let Some(number) = self.1 {
                loans::leave(py, number);
            }
            // SAFETY: the view was filled in by the interpreter, which is there.
            unsafe { ffi::PyBuffer_Release(&raw mut *self.0) }
        });
    }
}

/// `size` bytes of a pool.
pub fn of_pool(pool: Arc<dyn Allocator>, size: usize) -> Result<Storage, AllocError> {
    let block = pool.allocate(Request::bytes(size))?;
    let shared = os::is_shared(block.address.as_ptr() as usize);
    Ok(Storage { address: block.address, size, shared, keep: Box::new(Block(pool, block.address)) })
}

/// The memory of `lender`: an array, a memory map, shared memory, a bytearray.
pub fn lent(lender: &Bound<'_, PyAny>) -> PyResult<Storage> {
    let py = lender.py();
    let kind = lender.get_type().name()?.to_string();
    // SAFETY: the view is plain data that the interpreter fills in, or leaves with an exception.
    let mut view = unsafe {
        if ffi::PyObject_CheckBuffer(lender.as_ptr()) == 0 {
            return Err(PyTypeError::new_err(format!(
                "FixedBuffer() takes a number of bytes, text like \"1 MiB\", or writable memory (an array, a memory map, \
                 shared memory), not {kind}"
            )));
        }
        let mut view: Box<ffi::Py_buffer> = Box::new(std::mem::zeroed());
        if ffi::PyObject_GetBuffer(lender.as_ptr(), &raw mut *view, ffi::PyBUF_STRIDED_RO | ffi::PyBUF_FORMAT) != 0 {
            return Err(PyErr::fetch(py));
        }
        Lent(view, None)
    };
    if view.0.readonly != 0 {
        return Err(PyValueError::new_err(format!(
            "FixedBuffer() got a read-only {kind}: its storage has to be writable"
        )));
    }
    // SAFETY: where there is a format it is a string that lives as long as the view.
    let format = unsafe { view.0.format.as_ref().map(|format| CStr::from_ptr(format)) };
    if format.is_some_and(|format| format.to_bytes().contains(&b'O')) {
        return Err(PyTypeError::new_err(format!(
            "FixedBuffer() got a {kind} of objects, whose references would be lost: give it one of numbers or bytes"
        )));
    }
    // SAFETY: the view is filled in. (Fortran order is as good: what is in there is overwritten anyway.)
    if unsafe { ffi::PyBuffer_IsContiguous(&raw const *view.0, b'A' as std::ffi::c_char) } == 0 {
        return Err(PyValueError::new_err(format!(
            "FixedBuffer() got a {kind} that is not contiguous: its storage has to lie in one piece, without steps"
        )));
    }
    let size = view.0.len as usize;
    let address = NonNull::new(view.0.buf.cast()).filter(|_| size > 0);
    let address = address.ok_or_else(|| PyValueError::new_err(format!("FixedBuffer() got a {kind} of no bytes")))?;
    let start = address.as_ptr() as usize;
    let (number, shared) = loans::enter(lender, start..start + size)?;
    view.1 = Some(number);
    Ok(Storage { address, size, shared, keep: Box::new(view) })
}
