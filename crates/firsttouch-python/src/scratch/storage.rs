//! The storage of a fixed buffer: memory of the pool, or writable memory that another object lends.

#![allow(unsafe_code)] // Safety: Python's buffer protocol, whose view is kept for as long as the memory is used.

use crate::python::gil::Guarded;
use crate::python::values::{PyTypeError, PyValueError};
use firsttouch::allocator::{AllocError, Allocator, Request};
use firsttouch::os;
use firsttouch::scratch::{Buffer, Survivor};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::CStr;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// Buffers that live, and their memory.
static LENT: Guarded<Vec<(Range<usize>, Weak<Buffer>)>> = Guarded::new(Vec::new());

/// Notes that a buffer stands on some memory. Two on the same memory would hand it out twice; but what one handed out is its
/// holder's, who may lend it to another.
pub fn note(py: Python<'_>, range: Range<usize>, buffer: &Arc<Buffer>) -> PyResult<()> {
    let living: Vec<_>; // dropped after the lock, as the end of a buffer may run code of its lender's
    let mut lent = LENT.lock(py);
    lent.retain(|(_, other)| other.strong_count() > 0);
    living = lent.iter().filter_map(|(range, other)| Some((range.clone(), other.upgrade()?))).collect();
    let is_taken = |(other, on): &(Range<usize>, Arc<Buffer>)| {
        let is_within = |block: &Survivor| block.address <= range.start && range.end <= block.address + block.size;
        other.start < range.end && range.start < other.end && !on.survivors(0).iter().any(is_within)
    };
    if living.iter().any(is_taken) {
        drop(lent);
        return Err(PyValueError::new_err(format!(
            "FixedBuffer() got {} bytes at {:#x}, which overlap the memory of another FixedBuffer that is in use: both would \
             hand out the same bytes; use that buffer, or drop it and its arrays first",
            range.len(),
            range.start
        )));
    }
    lent.push((range, Arc::downgrade(buffer)));
    Ok(())
}

/// Memory, and what keeps it.
pub struct Storage {
    pub address: NonNull<u8>,
    pub size: usize,
    /// Whether forked children would write to the same memory.
    pub shared: bool,
    pub keep: Box<dyn std::any::Any + Send + Sync>,
}

/// A block that goes back when it is dropped.
struct PoolBlock(Arc<dyn Allocator>, NonNull<u8>);

// SAFETY: a block may be given back from any thread (law 6).
unsafe impl Send for PoolBlock {}
// SAFETY: as above.
unsafe impl Sync for PoolBlock {}

impl Drop for PoolBlock {
    fn drop(&mut self) {
        // SAFETY: the block came from this allocator, and the buffer on it is gone with all its arrays.
        unsafe { self.0.deallocate(self.1) }
    }
}

/// Another object's memory, which it must not move or free meanwhile.
struct LentView(Box<ffi::Py_buffer>);

// SAFETY: the view is only read, and released with the GIL held.
unsafe impl Send for LentView {}
// SAFETY: as above.
unsafe impl Sync for LentView {}

impl Drop for LentView {
    fn drop(&mut self) {
        // SAFETY: the view was filled in by the interpreter, which is there. At its end memory goes anyway.
        Python::try_attach(|_| unsafe { ffi::PyBuffer_Release(&raw mut *self.0) });
    }
}

/// `size` bytes of a pool.
pub fn of_pool(pool: Arc<dyn Allocator>, size: usize) -> Result<Storage, AllocError> {
    let block = pool.allocate(Request::bytes(size))?;
    let shared = os::is_shared(block.address.as_ptr() as usize);
    Ok(Storage { address: block.address, size, shared, keep: Box::new(PoolBlock(pool, block.address)) })
}

/// Whether a format of the buffer protocol has objects. The names of fields stand between colons.
fn has_objects(format: &[u8]) -> bool {
    format.split(|&byte| byte == b':').step_by(2).any(|types| types.contains(&b'O'))
}

/// The memory of `lender`: an array, a memory map, shared memory, a bytearray.
pub fn lent(lender: &Bound<'_, PyAny>) -> PyResult<Storage> {
    let py = lender.py();
    let kind = lender.get_type().name()?.to_string();
    // SAFETY: the view is plain data that the interpreter fills in, or leaves with an exception.
    let view = unsafe {
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
        LentView(view)
    };
    if view.0.readonly != 0 {
        return Err(PyValueError::new_err(format!(
            "FixedBuffer() got a read-only {kind}: its storage has to be writable"
        )));
    }
    // SAFETY: where there is a format it is a string that lives as long as the view.
    let format = unsafe { view.0.format.as_ref().map(|format| CStr::from_ptr(format)) };
    if format.is_some_and(|format| has_objects(format.to_bytes())) {
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
    Ok(Storage { address, size, shared: os::is_shared(address.as_ptr() as usize), keep: Box::new(view) })
}
