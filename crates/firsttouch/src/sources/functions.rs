//! An allocator made of C functions: addresses from ctypes, cffi, Numba or a library, called without Python.
//!
//! The functions know nothing of alignment, so each request is enlarged by its alignment.

#![allow(unsafe_code)]

use super::listed::{Library, Listed};
use crate::allocator::{Description, Request};
use crate::description::Value;
use std::ffi::c_void;
use std::sync::Arc;

/// C functions with the signatures of NumPy's handlers (NEP 49). `free` receives the size that the block was requested
/// with.
#[derive(Clone, Copy, Debug)]
pub struct FunctionsTable {
    /// `malloc(context, size)`.
    pub malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    /// `free(context, pointer, size)`.
    pub free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
    /// `calloc(context, count, size)`. Without it, memory from `malloc` is cleared.
    pub calloc: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void>,
    /// The first argument of each call.
    pub context: *mut c_void,
}

/// See the module.
pub type Functions = Listed<Called>;

/// The functions, and how `free` is called.
pub struct Called {
    table: FunctionsTable,
    /// Runs what it is given, which calls `free`.
    around_free: fn(&dyn Fn()),
}

// SAFETY: `Functions::new` requires that any thread may call the functions with this context.
unsafe impl Send for Called {}
// SAFETY: as above.
unsafe impl Sync for Called {}

impl Functions {
    /// Creates an allocator that calls the functions of `table`.
    ///
    /// # Safety
    /// The functions do what their names say, may be called from any thread with the context, do not unwind, and
    /// remain callable while the allocator or any of its blocks lives.
    pub unsafe fn new(table: FunctionsTable) -> Arc<Self> {
        // SAFETY: the same is required.
        unsafe { Self::with_free_inside(table, |free| free()) }
    }

    /// The same for a language with state that `free` must not meet: `around_free` puts it aside while it runs what it is
    /// given, once.
    ///
    /// # Safety
    /// As for `new`.
    pub unsafe fn with_free_inside(table: FunctionsTable, around_free: fn(&dyn Fn())) -> Arc<Self> {
        Self::on(Called { table, around_free })
    }
}

// SAFETY: `Functions::new` requires it.
unsafe impl Library for Called {
    const ALIGNS: bool = false;
    const CALLS_OUT: bool = true;

    fn describe(&self) -> Description {
        let FunctionsTable { malloc, free, calloc, context } = self.table;
        Description::of("from_functions")
            .named("malloc", Value::Address(malloc as usize))
            .named("free", Value::Address(free as usize))
            .named("calloc", calloc.map(|f| Value::Address(f as usize)))
            .named("context", Value::Address(context as usize))
    }

    fn take(&self, request: Request) -> (*mut u8, bool) {
        let FunctionsTable { malloc, calloc, context, .. } = self.table;
        // SAFETY: `Functions::new` requires that the functions do what their names say.
        unsafe {
            match calloc.filter(|_| request.is_zeroed()) {
                Some(calloc) => (calloc(context, 1, request.size()).cast(), true),
                None => (malloc(context, request.size()).cast(), false),
            }
        }
    }

    unsafe fn give_back(&self, raw: *mut u8, given: usize) {
        // SAFETY: `Functions::new` requires that `free` does what its name says; the rest is required here.
        (self.around_free)(&|| unsafe { (self.table.free)(self.table.context, raw.cast(), given) });
    }

    unsafe fn usable(&self, _raw: *mut u8, given: usize) -> usize {
        given
    }
}
