//! A buffer over the C library, until the real ones are here.

#![allow(unsafe_code)] // Safety: the C library's blocks.

use super::cursor::Cursor;
use super::entry::Handle;
use firsttouch::allocator::{AllocError, Block, Limit, Request};
use firsttouch::scratch::{Backing, Closed, Refused, Slot, Survivor};
use pyo3::prelude::*;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Library {
    limit: usize,
    used: AtomicUsize,
}

// SAFETY: for tests.
unsafe impl Backing for Library {
    fn open(&self) -> Slot {
        Slot::OUTSIDE
    }
    fn close(&self, _: Slot) -> Closed {
        Closed::default()
    }
    fn allocate(&self, _: Slot, request: Request) -> Result<Block, Refused> {
        let used = self.used.load(Relaxed);
        if used + request.size > self.limit {
            let limit = Limit::Budget { allowed: self.limit, used };
            return Err(AllocError::new(request.size, limit).into());
        }
        let mut pointer = std::ptr::null_mut();
        // SAFETY: plain C.
        unsafe { libc::posix_memalign(&mut pointer, 64, request.size) };
        let address = NonNull::new(pointer.cast()).ok_or(AllocError::new(request.size, Limit::Upstream))?;
        // SAFETY: plain C.
        let size = unsafe { libc::malloc_usable_size(pointer) };
        self.used.fetch_add(size, Relaxed);
        Ok(Block { address, size, zeroed: false })
    }
    unsafe fn deallocate(&self, address: NonNull<u8>) -> bool {
        // SAFETY: plain C.
        unsafe {
            let size = libc::malloc_usable_size(address.as_ptr().cast());
            address.write_bytes(0xDB, size);
            self.used.fetch_sub(size, Relaxed);
            libc::free(address.as_ptr().cast());
        }
        true
    }
    fn usable_size(&self, _: NonNull<u8>) -> Option<usize> {
        None
    }
    unsafe fn resize_in_place(&self, _: NonNull<u8>, _: usize) -> bool {
        false
    }
    fn survivors(&self, _: Slot) -> Vec<Survivor> {
        Vec::new()
    }
    fn used(&self) -> usize {
        self.used.load(Relaxed)
    }
    fn capacity(&self) -> usize {
        0
    }
    fn peak(&self) -> usize {
        0
    }
    fn depth(&self) -> usize {
        0
    }
    fn reset(&self) -> Result<(), usize> {
        Ok(())
    }
    fn in_segments(&self) -> bool {
        false
    }
    fn expression(&self) -> String {
        String::new()
    }
}

#[pyclass(frozen, weakref, module = "firsttouch._firsttouch")]
pub struct JitBuffer {
    backing: Arc<dyn Backing>,
    handle: Handle,
}

#[pymethods]
impl JitBuffer {
    #[new]
    #[pyo3(signature = (limit=usize::MAX))]
    fn new(limit: usize) -> Self {
        Self { backing: Arc::new(Library { limit, used: AtomicUsize::new(0) }), handle: Handle::default() }
    }

    #[getter]
    fn used(&self) -> usize {
        self.backing.used()
    }

    #[getter]
    fn _numba_type_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("firsttouch.numba")?.getattr("scratch_buffer")
    }
}

impl JitBuffer {
    pub fn enter(owner: &Bound<'_, Self>) -> PyResult<*mut Cursor> {
        let this = owner.get();
        this.handle.enter(owner.as_any(), &this.backing)
    }

    pub fn leave(&self) {
        self.handle.leave();
    }
}
