//! Handles of allocators: counted references.

use crate::error::{Status, ensure_memory, fail, protect};
use firsttouch::adaptors::{Options, Pool};
use firsttouch::allocator::Allocator;
use firsttouch::owners::{self, Keeper};
use firsttouch::sync::first::First;
use std::ffi::{CStr, c_char};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel, Ordering::Relaxed};

/// `firsttouch_allocator`.
pub struct Handle {
    allocator: Arc<dyn Allocator>,
    references: AtomicUsize,
}

/// The pool that null stands for.
fn default_pool() -> &'static Arc<Pool> {
    static POOL: First<Arc<Pool>> = First::new();
    POOL.get_or_make(|| Pool::new(Options::default()))
}

/// The allocator behind a handle.
///
/// # Safety
/// Null, or a handle that lives for `'a`.
pub unsafe fn behind<'a>(handle: *const Handle) -> &'a dyn Allocator {
    // SAFETY: null or a live handle, as the header demands of C programs for every function that takes one.
    match unsafe { handle.as_ref() } {
        Some(handle) => &*handle.allocator,
        None => &**default_pool(),
    }
}

/// The same, shared, as upstream of another.
///
/// # Safety
/// As for [`behind`].
pub unsafe fn shared(handle: *const Handle) -> Arc<dyn Allocator> {
    // SAFETY: null or a live handle, as the header demands of C programs for every function that takes one.
    match unsafe { handle.as_ref() } {
        Some(handle) => handle.allocator.clone(),
        None => default_pool().clone(),
    }
}

/// Makes an allocator and hands out its first reference.
///
/// # Safety
/// `out` is null or can be written.
pub unsafe fn hand_out(out: *mut *mut Handle, make: impl FnOnce() -> Result<Arc<dyn Allocator>, Status>) -> Status {
    if out.is_null() {
        return fail(Status::Invalid, "allocator is NULL: give the address of a firsttouch_allocator *");
    }
    let made = || {
        ensure_memory()?;
        let allocator = make()?;
        // One that keeps a list of its blocks stays until none lives, even where its last reference is gone.
        if owners::keeps_list(&*allocator) {
            owners::enter(Keeper::Allocator(allocator.clone()));
        }
        Ok(Box::into_raw(Box::new(Handle { allocator, references: AtomicUsize::new(1) })))
    };
    match protect(Err(Status::Internal), made) {
        Ok(handle) => {
            // SAFETY: `out` is null or writable, as the header demands of C programs (constructors, scratch).
            unsafe { out.write(handle) };
            Status::Ok
        }
        Err(status) => status,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_retain(handle: *mut Handle) -> *mut Handle {
    // SAFETY: null, or a living handle (header).
    if let Some(handle) = unsafe { handle.as_ref() } {
        handle.references.fetch_add(1, Relaxed);
    }
    handle
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_release(handle: *mut Handle) {
    protect((), || {
        // SAFETY: null, or a living handle, one of whose references is given up here (`firsttouch_release` in the
        // header).
        unsafe {
            if handle.is_null() || (*handle).references.fetch_sub(1, AcqRel) > 1 {
                return;
            }
            drop(Box::from_raw(handle));
        }
        owners::sweep();
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_describe(handle: *const Handle, buffer: *mut c_char, capacity: usize) -> usize {
    if capacity > 0 && !buffer.is_null() {
        // SAFETY: `buffer` has room for `capacity` bytes (header).
        unsafe { *buffer = 0 }; // also where there is no memory for the text
    }
    protect(0, || {
        if ensure_memory().is_err() {
            return 0;
        }
        // SAFETY: a living handle (header).
        let text = unsafe { behind(handle) }.expression();
        if capacity > 0 && !buffer.is_null() {
            let cut = text.len().min(capacity - 1);
            // SAFETY: `buffer` has room for `capacity` bytes (header).
            unsafe {
                buffer.copy_from_nonoverlapping(text.as_ptr().cast(), cut);
                buffer.add(cut).write(0);
            }
        }
        text.len()
    })
}

/// A text from C.
///
/// # Safety
/// Null, or a string that ends with a zero and stays for `'a`.
pub unsafe fn text<'a>(name: &str, given: *const c_char) -> Result<&'a str, Status> {
    if given.is_null() {
        return Err(fail(Status::Invalid, format_args!("{name} is NULL")));
    }
    // SAFETY: null or a string that ends with a zero, as the header demands of C programs.
    let text = unsafe { CStr::from_ptr(given) };
    text.to_str().map_err(|_| fail(Status::Invalid, format_args!("{name} is not UTF-8")))
}
