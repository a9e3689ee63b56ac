//! The target of a replay: the functions that NumPy itself would call.

#![allow(unsafe_code)] // Safety: as NumPy calls them, with its own sizes.

use crate::allocators::allocator::PyAllocator;
use crate::allocators::queries;
use crate::handlers::entry_points::new_handler;
use crate::handlers::handler::{Handler, Kind};
use crate::handlers::numpy_default::{behind_now, next};
use crate::numpy::abi::Functions;
use firsttouch_trace::replay::Target;
use pyo3::prelude::*;

/// A handler's functions, and the handler where it is not the process's.
pub struct ReplayTarget {
    functions: Functions,
    _handler: Option<Box<Handler>>,
}

// SAFETY: a handler's functions may be called from any thread that is attached to the interpreter, as `attached`
// ensures.
unsafe impl Sync for ReplayTarget {}
// SAFETY: as above.
unsafe impl Send for ReplayTarget {}

impl ReplayTarget {
    /// The allocator that serves the process, or `allocator` as the context's.
    pub fn new(py: Python<'_>, allocator: Option<&PyAllocator>) -> PyResult<Self> {
        let Some(native) = allocator.and_then(PyAllocator::native) else {
            return Ok(Self { functions: behind_now(py)?.1, _handler: None });
        };
        let small = queries::small_limit(native.as_ref(), 0);
        let handler = new_handler(Kind::Context, native.clone(), small, next(py)?);
        let functions = handler.functions().functions().unwrap_or(next(py)?);
        Ok(Self { functions, _handler: Some(handler) })
    }
}

// SAFETY: NumPy's handlers keep malloc's contract, and so that of `Target`.
unsafe impl Target for ReplayTarget {
    /// NumPy calls handlers with the GIL held, and its own functions rely on it: they cache small blocks in plain lists, and
    /// from NumPy 2.4 on `calloc` releases the GIL. Our handlers pass small requests on to them.
    fn attached(&self, turn: &mut dyn FnMut()) {
        Python::attach(|_| turn());
    }

    fn allocate(&self, size: usize, zeroed: bool) -> *mut u8 {
        let Functions { ctx, malloc, calloc, .. } = self.functions;
        // SAFETY: the functions are called with their own context.
        unsafe { if zeroed { calloc(ctx, size, 1) } else { malloc(ctx, size) }.cast() }
    }

    unsafe fn resize(&self, address: *mut u8, size: usize) -> *mut u8 {
        // SAFETY: as above, and a live block of these functions (the player of a trace, which keeps its blocks).
        unsafe { (self.functions.realloc)(self.functions.ctx, address.cast(), size).cast() }
    }

    unsafe fn free(&self, address: *mut u8, size: usize) {
        // SAFETY: as above, and a live block of these functions (the player of a trace, which keeps its blocks).
        unsafe { (self.functions.free)(self.functions.ctx, address.cast(), size) }
    }
}
