//! Numba's runtime: reference counts that arrays share, as its table of functions for other libraries offers them.

#![allow(unsafe_code)] // Safety: the table and its functions are Numba's published interface (nrt_external.h).

use std::ffi::c_void;
use std::mem::transmute;
use std::ptr::{NonNull, null_mut, with_exposed_provenance};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A reference count of Numba's; the fields after the number are private to Numba.
#[repr(C)]
pub struct MemInfo {
    count: AtomicUsize,
}

/// Called when a count reaches zero.
pub type Destructor = extern "C" fn(*mut c_void);

#[repr(C)]
struct Api {
    allocate: *const c_void,
    allocate_external: *const c_void,
    manage_memory: extern "C" fn(*mut c_void, Destructor) -> *mut MemInfo,
    acquire: extern "C" fn(*mut MemInfo),
    release: extern "C" fn(*mut MemInfo),
    get_data: *const c_void,
}

static API: AtomicPtr<Api> = AtomicPtr::new(null_mut());

/// Remembers the table that `NRT_get_api` at an address gives; whether there is one.
pub fn attach(get_api: usize) -> bool {
    if get_api == 0 {
        return false;
    }
    // SAFETY: Numba names the address as that of its function of this type.
    let get_api = unsafe { transmute::<*const c_void, extern "C" fn() -> *mut Api>(with_exposed_provenance(get_api)) };
    API.store(get_api(), Ordering::Release);
    !API.load(Ordering::Relaxed).is_null()
}

/// Creates a count of one for `data`; `None` if there is no memory.
pub fn counted(data: *mut c_void, ended: Destructor) -> Option<NonNull<MemInfo>> {
    // SAFETY: the table is static in Numba's module, which Python never unloads.
    let api = unsafe { API.load(Ordering::Acquire).as_ref() }?;
    NonNull::new((api.manage_memory)(data, ended))
}

/// Gives a reference back.
///
/// # Safety
/// The reference is the caller's.
pub unsafe fn release(info: NonNull<MemInfo>) {
    // SAFETY: a count exists, so the table does.
    if let Some(api) = unsafe { API.load(Ordering::Acquire).as_ref() } {
        (api.release)(info.as_ptr());
    }
}

/// Whether the caller's reference is the only one. Everything that other threads did before they released theirs has
/// then happened.
///
/// # Safety
/// The caller has a reference.
pub unsafe fn alone(info: NonNull<MemInfo>) -> bool {
    // SAFETY: a count with a reference lives.
    unsafe { info.as_ref() }.count.load(Ordering::Acquire) == 1
}
