//! Allocators: handles, which are counted references, made from text; their blocks; what they hold.

use crate::error::{Status, ensure_memory, errno, fail, protect, put, required, status_of};
use firsttouch::adaptors::{Options, Pool};
use firsttouch::allocator::{AllocError, Allocator, Limit, Request};
use firsttouch::description::{Argument, Value};
use firsttouch::expression;
use firsttouch::factory::{Error, allocator_from};
use firsttouch::owners;
use firsttouch::stats::Stats;
use firsttouch::sync::OnceBox;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// `firsttouch_allocator`: what the pointer of an `Arc` leads to, whose count is that of the references.
pub struct Handle(Arc<dyn Allocator>);

/// The allocator behind a handle; null stands for a pool of the process.
///
/// # Safety
/// Null, or a handle that lives for `'a`.
pub unsafe fn behind<'a>(handle: *const Handle) -> &'a Arc<dyn Allocator> {
    static POOL: OnceBox<Arc<dyn Allocator>> = OnceBox::new();
    // SAFETY: null or a live handle, as the header demands of C programs for every function that takes one.
    match unsafe { handle.as_ref() } {
        Some(handle) => &handle.0,
        None => POOL.get_or_init(|| Box::new(Pool::new(Options::default()))),
    }
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

/// Makes an allocator and hands out its first reference.
///
/// # Safety
/// `out` is null or can be written.
unsafe fn hand_out(out: *mut *mut Handle, make: impl FnOnce() -> Result<Arc<dyn Allocator>, Status>) -> Status {
    status_of(|| {
        required("allocator", out)?;
        ensure_memory()?;
        let allocator = make()?;
        // One that keeps a list of its blocks stays until none lives, even where its last reference is gone.
        if allocator.list().is_some() {
            owners::enter(allocator.clone());
        }
        // SAFETY: not null, so it can be written.
        unsafe { out.write(Arc::into_raw(Arc::new(Handle(allocator))).cast_mut()) };
        Ok(())
    })
}

/// The status and message of an error of the factory's.
fn refused(error: Error) -> Status {
    match error {
        Error::Unsupported(_) => fail(Status::Unsupported, error),
        _ => fail(Status::Expression, error),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_parse(expression: *const c_char, out: *mut *mut Handle) -> Status {
    // SAFETY: a string, and a place for the handle (header).
    unsafe {
        hand_out(out, || {
            let expression = text("expression", expression)?;
            firsttouch::allocator_from_expression(expression).map_err(refused)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_parse_over(
    expression: *const c_char,
    upstream: *const Handle,
    out: *mut *mut Handle,
) -> Status {
    // SAFETY: a string, null or a living handle, and a place for the new one (header).
    unsafe {
        hand_out(out, || {
            let text = text("expression", expression)?;
            let made = || {
                let mut parsed = expression::parse(text)?;
                let upstream = Value::Existing(behind(upstream).clone());
                let upstream = Argument { name: Some("upstream".into()), value: upstream };
                parsed.arguments.get_or_insert_default().push(upstream);
                allocator_from(&parsed)
            };
            made().map_err(refused)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_retain(handle: *mut Handle) -> *mut Handle {
    if !handle.is_null() {
        // SAFETY: a living handle (header).
        unsafe { Arc::increment_strong_count(handle.cast_const()) };
    }
    handle
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_release(handle: *mut Handle) {
    protect((), || {
        if !handle.is_null() {
            // SAFETY: a living handle, one of whose references is given up here (header).
            drop(unsafe { Arc::from_raw(handle.cast_const()) });
            owners::sweep();
        }
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

// ---- Blocks ------------------------------------------------------------------------------------------------------------

/// Null, with `errno` and the message set.
pub fn no_memory(error: AllocError) -> *mut c_void {
    fail(Status::NoMemory, error);
    errno().set(libc::ENOMEM);
    null_mut()
}

/// The same for an argument.
pub fn invalid(message: impl std::fmt::Display) -> *mut c_void {
    fail(Status::Invalid, message);
    errno().set(libc::EINVAL);
    null_mut()
}

unsafe fn allocate(handle: *const Handle, request: Request) -> *mut c_void {
    // SAFETY: null, or a living handle (header).
    match unsafe { behind(handle) }.allocate(request) {
        Ok(block) => block.address.as_ptr().cast(),
        Err(error) => no_memory(error),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_malloc(handle: *const Handle, size: usize) -> *mut c_void {
    // SAFETY: null, or a living handle (header).
    protect(null_mut(), || unsafe { allocate(handle, Request::bytes(size)) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_calloc(handle: *const Handle, count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else {
        return no_memory(AllocError::new(usize::MAX, Limit::Size));
    };
    // SAFETY: null, or a living handle (header).
    protect(null_mut(), || unsafe { allocate(handle, Request::zeroed(bytes)) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_aligned_alloc(handle: *const Handle, alignment: usize, size: usize) -> *mut c_void {
    protect(null_mut(), || match Request::bytes(size).aligned(alignment) {
        // SAFETY: null, or a living handle (header).
        Ok(request) => unsafe { allocate(handle, request) },
        Err(error) => invalid(error),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_realloc(handle: *const Handle, block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: null or a living handle, and null or a living block of it (header).
    protect(null_mut(), || unsafe {
        let Some(address) = NonNull::new(block.cast()) else { return allocate(handle, Request::bytes(size)) };
        match behind(handle).reallocate(address, Request::bytes(size)) {
            Ok(block) => block.address.as_ptr().cast(),
            Err(error) => no_memory(error),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_free(handle: *const Handle, block: *mut c_void) {
    let Some(address) = NonNull::new(block.cast()) else { return };
    protect((), || {
        let before = errno().get();
        // SAFETY: null or a living handle, and a living block of it (header).
        unsafe { behind(handle).deallocate(address) };
        errno().set(before);
    });
}

// ---- What an allocator holds -------------------------------------------------------------------------------------------

/// `firsttouch_stats` has the fields of the core's, each of 64 bits.
const _: () = assert!(size_of::<Stats>() == 18 * size_of::<u64>());

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_get_stats(handle: *const Handle, out: *mut Stats) -> Status {
    // SAFETY: null or a living handle; null, or a structure (header).
    status_of(|| unsafe { put("stats", out, behind(handle).stats()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_trim(handle: *const Handle) -> usize {
    // SAFETY: null or a living handle (header).
    protect(0, || unsafe { behind(handle).trim() })
}
