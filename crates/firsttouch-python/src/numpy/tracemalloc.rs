//! tracemalloc: NumPy reports blocks that it allocates itself; those of our constructors are reported here.

#![allow(unsafe_code)] // Safety: one function of the interpreter's, found by its name.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::OnceLock;

/// NumPy's domain (`NPY_TRACE_DOMAIN`).
const DOMAIN: c_uint = 389_047;

type Track = unsafe extern "C" fn(c_uint, usize, usize) -> c_int;

/// `PyTraceMalloc_Track`, which the stable interface leaves out but every CPython has.
fn function() -> Option<Track> {
    static FOUND: OnceLock<Option<Track>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        #[cfg(unix)]
        // SAFETY: the symbol, where there is one, has had this type since CPython 3.7.
        unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, c"PyTraceMalloc_Track".as_ptr());
            (!found.is_null()).then(|| std::mem::transmute::<*mut c_void, Track>(found))
        }
        #[cfg(not(unix))]
        None
    })
}

/// Tells tracemalloc, where it listens, of a block that an array owns. NumPy tells it of the end.
pub fn track(data: *mut c_void, bytes: usize) {
    if let Some(track) = function() {
        // SAFETY: the function takes any address, and is called with the GIL held.
        unsafe { track(DOMAIN, data as usize, bytes) };
    }
}
