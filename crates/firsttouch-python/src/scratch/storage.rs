//! The storage of a fixed buffer: memory of the pool, or writable memory that another object lends. Two buffers on the
//! same memory would hand it out twice, so that it is lent to one at a time.

#![allow(unsafe_code)] // Safety: Python's buffer protocol, whose view is kept for as long as the memory is used.

use crate::python::gil::Guarded;
use crate::python::values::{PyTypeError, PyValueError};
use firsttouch::allocator::{AllocError, Allocator, Request};
use firsttouch::os::{self, SharedPart};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use std::ffi::CStr;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// Memory that a buffer stands on.
struct Loan {
    number: u64,
    range: Range<usize>,
    /// What of it can be mapped at other addresses too.
    shared: Vec<SharedPart>,
    /// The object whose memory it is, by address: the loan keeps it.
    root: usize,
    /// For messages.
    what: String,
}

struct Loans {
    last: u64,
    all: Vec<Loan>,
}

static LOANS: Guarded<Loans> = Guarded::new(Loans { last: 0, all: Vec::new() });

/// The object whose memory an array or a view has, and where that lies if it is an array that owns it.
struct MemoryOwner {
    address: usize,
    owned: Option<Range<usize>>,
}

fn meet<T: Ord>(one: &Range<T>, other: &Range<T>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Loan {
    fn overlaps(&self, range: &Range<usize>, shared: &[SharedPart]) -> bool {
        let same = |one: &SharedPart, other: &SharedPart| one.file == other.file && meet(&one.bytes, &other.bytes);
        meet(&self.range, range) || self.shared.iter().any(|one| shared.iter().any(|other| same(one, other)))
    }

    /// Whether `root` is a block that the buffer on this memory handed out: an array that owns a part of it. That is
    /// its holder's, and the buffer works around it.
    fn handed_out(&self, root: &MemoryOwner) -> bool {
        let within = |owned: &Range<usize>| self.range.start <= owned.start && owned.end <= self.range.end;
        root.address != self.root && root.owned.as_ref().is_some_and(within)
    }
}

impl MemoryOwner {
    fn of(lender: &Bound<'_, PyAny>) -> PyResult<Self> {
        let ndarray = lender.py().import("numpy")?.getattr("ndarray")?;
        let mut root = lender.clone();
        loop {
            let is_array = root.is_instance(&ndarray)?;
            let base = match () {
                () if is_array => root.getattr("base")?,
                () if root.is_instance_of::<PyMemoryView>() => root.getattr("obj")?,
                () => return Ok(Self { address: root.as_ptr() as usize, owned: None }),
            };
            if base.is_none() {
                let owns = is_array && root.getattr("flags")?.getattr("owndata")?.extract()?;
                let owned = if owns { Some(range_of(&root)?) } else { None };
                return Ok(Self { address: root.as_ptr() as usize, owned });
            }
            root = base;
        }
    }
}

fn range_of(array: &Bound<'_, PyAny>) -> PyResult<Range<usize>> {
    let start: usize = array.getattr("__array_interface__")?.get_item("data")?.get_item(0)?.extract()?;
    Ok(start..start.saturating_add(array.getattr("nbytes")?.extract()?))
}

/// Notes that a buffer stands on the memory of `lender`; by which number, and whether forked children share it.
fn begin_loan(lender: &Bound<'_, PyAny>, range: Range<usize>) -> PyResult<(u64, bool)> {
    let kind = lender.get_type().name()?;
    let what = format!("{kind} of {} bytes at {:#x}", range.len(), range.start);
    let (root, shared) = (MemoryOwner::of(lender)?, os::shared_parts(range.clone()));
    let mut loans = LOANS.lock(lender.py());
    let taken = loans.all.iter().find(|loan| loan.overlaps(&range, &shared) && !loan.handed_out(&root));
    if let Some(loan) = taken {
        let message = format!(
            "FixedBuffer() got a {what}, which overlaps the memory of another FixedBuffer that is in use, on a {}: \
             both would hand out the same bytes; use that buffer, or drop it and its arrays first",
            loan.what
        );
        drop(loans);
        return Err(PyValueError::new_err(message));
    }
    loans.last += 1;
    let (number, is_shared) = (loans.last, !shared.is_empty());
    loans.all.push(Loan { number, range, shared, root: root.address, what });
    Ok((number, is_shared))
}

/// The buffer is gone, and all its arrays.
fn end_loan(py: Python<'_>, number: u64) {
    LOANS.lock(py).all.retain(|loan| loan.number != number);
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
struct LentView(Box<ffi::Py_buffer>, Option<u64>);

// SAFETY: the view is only read, and released with the GIL held.
unsafe impl Send for LentView {}
// SAFETY: as above.
unsafe impl Sync for LentView {}

impl Drop for LentView {
    fn drop(&mut self) {
        // At the interpreter's end, when there is none, memory goes anyway.
        Python::try_attach(|py| {
            if let Some(number) = self.1 {
                end_loan(py, number);
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
        LentView(view, None)
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
    let start = address.as_ptr() as usize;
    let (number, shared) = begin_loan(lender, start..start + size)?;
    view.1 = Some(number);
    Ok(Storage { address, size, shared, keep: Box::new(view) })
}
