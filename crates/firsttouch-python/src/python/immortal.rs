//! Objects that are not counted any more.

#![allow(unsafe_code)] // Safety: sets the fields of an object that only the caller has.

use pyo3::prelude::*;

/// Makes a new object live as long as the process, without counting its references.
///
/// Every array refers to its handler's capsule, and where threads run beside each other the count would pass from processor to
/// processor with every array. (NumPy does the same with its default handler's.) Where the interpreter has a GIL, a count costs
/// nothing, and this does nothing.
///
/// # Safety
/// No other thread has a reference to the object, and the garbage collector does not track it.
pub unsafe fn make_immortal(object: &Bound<'_, PyAny>) {
    #[cfg(Py_GIL_DISABLED)]
    // SAFETY: what CPython's own `_Py_SetImmortal` does, for which there is no public function before 3.15: an object that
    // no thread owns, with the local count that stands for immortality.
    unsafe {
        use std::sync::atomic::Ordering::Relaxed;
        let raw = object.as_ptr();
        (*raw).ob_tid = 0;
        (*raw).ob_ref_local.store(u32::MAX, Relaxed);
        (*raw).ob_ref_shared.store(0, Relaxed);
    }
    #[cfg(not(Py_GIL_DISABLED))]
    let _ = object;
}
