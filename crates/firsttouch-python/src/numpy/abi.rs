//! The layout of NumPy's memory handlers (NEP 49) and arrays, as its C interface publishes it.

#![allow(unsafe_code)] // Safety: NumPy's binary interface 2, which `c_api` checks before anything is read.

use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute_copy;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire};

/// The name of every handler's capsule (NEP 49).
pub const CAPSULE: &CStr = c"mem_handler";

/// NumPy's `PyDataMemAllocator`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawAllocator {
    pub ctx: *mut c_void,
    pub malloc: Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>,
    pub calloc: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void>,
    pub realloc: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void>,
    pub free: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize)>,
}

impl RawAllocator {
    /// No functions.
    pub const NONE: Self = Self { ctx: std::ptr::null_mut(), malloc: None, calloc: None, realloc: None, free: None };

    /// The functions, if there are all four.
    pub fn functions(&self) -> Option<Functions> {
        Some(Functions {
            ctx: self.ctx,
            malloc: self.malloc?,
            calloc: self.calloc?,
            realloc: self.realloc?,
            free: self.free?,
        })
    }
}

/// A `PyDataMemAllocator` that has all its functions.
#[derive(Clone, Copy)]
pub struct Functions {
    pub ctx: *mut c_void,
    pub malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    pub calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    pub realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    pub free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
}

/// NumPy's `PyDataMem_Handler`.
#[repr(C)]
pub struct RawHandler {
    pub name: [c_char; 127],
    pub version: u8,
    pub allocator: RawAllocator,
}

/// The head of NumPy's `PyArrayObject_fields`.
#[repr(C)]
pub struct RawArray {
    head: ffi::PyObject,
    pub data: *mut c_void,
    nd: c_int,
    dimensions: *mut c_void,
    strides: *mut c_void,
    pub base: *mut ffi::PyObject,
    descr: *mut c_void,
    pub flags: c_int,
    weakreflist: *mut c_void,
    buffer_info: *mut c_void,
    pub mem_handler: *mut ffi::PyObject,
}

/// NumPy's flag for an array that frees its data.
pub const OWNDATA: c_int = 0x0004;
/// NumPy's flag for an array that may be written to.
pub const WRITEABLE: c_int = 0x0400;

/// The handler inside a capsule.
pub fn handler_in(capsule: &Bound<'_, PyAny>) -> PyResult<*mut RawHandler> {
    // SAFETY: asks the capsule for its pointer by name; null comes with an error.
    let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), CAPSULE.as_ptr()) };
    if pointer.is_null() { Err(PyErr::fetch(capsule.py())) } else { Ok(pointer.cast()) }
}

/// A function pointer, read at once.
///
/// # Safety
/// `F` is a function pointer, and one or null lies there.
unsafe fn load<F>(place: *const Option<F>) -> Option<F> {
    // SAFETY: a function pointer of type `F` or null lies there (`load_allocator` below); an aligned word that is only
    // read, and lies in memory as an atomic pointer does.
    unsafe { transmute_copy(&AtomicPtr::<c_void>::from_ptr(place.cast_mut().cast()).load(Acquire)) }
}

impl RawHandler {
    /// The functions of a handler, whose pointers another thread may replace meanwhile.
    ///
    /// # Safety
    /// The handler lives, and any mix of functions that it has had works.
    pub unsafe fn load_allocator(handler: *const Self) -> RawAllocator {
        // SAFETY: the handler lives, and any mix of its functions works (`handler.rs`, `door.rs`).
        unsafe {
            let raw = &raw const (*handler).allocator;
            RawAllocator {
                ctx: (*raw).ctx,
                malloc: load(&raw const (*raw).malloc),
                calloc: load(&raw const (*raw).calloc),
                realloc: load(&raw const (*raw).realloc),
                free: load(&raw const (*raw).free),
            }
        }
    }

    /// The handler's own name.
    pub fn name(&self) -> String {
        let bytes: Vec<u8> = self.name.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
