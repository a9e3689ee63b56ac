//! The storage of a fixed buffer: memory of the pool, or writable memory that another object lends.

#![allow(unsafe_code)] // Safety: a block of a pool goes back once, when no buffer stands on it any more.

use crate::python::values::{PyTypeError, PyValueError};
use firsttouch::allocator::{AllocError, Allocator, Request};
use firsttouch::os;
use firsttouch::scratch::{Buffer, Survivor};
use firsttouch::sync::lock::Lock;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// Buffers that live, and their memory.
static LENT: Lock<Vec<(Range<usize>, Weak<Buffer>)>> = Lock::new(Vec::new());

/// Notes that a buffer stands on some memory. Two on the same memory would hand it out twice; but what one handed out is its
/// holder's, who may lend it to another.
pub fn note(range: Range<usize>, buffer: &Arc<Buffer>) -> PyResult<()> {
    let living: Vec<_>; // dropped after the lock, as the end of a buffer may run code of its lender's
    let mut lent = LENT.lock();
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
    let kind = lender.get_type().name()?.to_string();
    let view = match PyMemoryView::from(lender).and_then(|view| PyUntypedBuffer::get(&view)) {
        Err(error) if error.is_instance_of::<exceptions::PyTypeError>(lender.py()) => {
            return Err(PyTypeError::new_err(format!(
                "FixedBuffer() takes a number of bytes, text like \"1 MiB\", or writable memory (an array, a memory map, \
                 shared memory), not {kind}"
            )));
        }
        view => view?,
    };
    if view.readonly() {
        return Err(PyValueError::new_err(format!(
            "FixedBuffer() got a read-only {kind}: its storage has to be writable"
        )));
    }
    if has_objects(view.format().to_bytes()) {
        return Err(PyTypeError::new_err(format!(
            "FixedBuffer() got a {kind} of objects, whose references would be lost: give it one of numbers or bytes"
        )));
    }
    if !view.is_c_contiguous() && !view.is_fortran_contiguous() {
        return Err(PyValueError::new_err(format!(
            "FixedBuffer() got a {kind} that is not contiguous: its storage has to lie in one piece, without steps"
        )));
    }
    let size = view.len_bytes();
    let address = NonNull::new(view.buf_ptr().cast()).filter(|_| size > 0);
    let address = address.ok_or_else(|| PyValueError::new_err(format!("FixedBuffer() got a {kind} of no bytes")))?;
    Ok(Storage { address, size, shared: os::is_shared(address.as_ptr() as usize), keep: Box::new(view) })
}
