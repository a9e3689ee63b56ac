//! C functions with the signatures of NumPy's handlers: the C library's own, counted.

#![allow(unsafe_code)] // Safety: the C library's functions, with their own arguments; sizes are checked on the way.

use firsttouch::sources::{Functions, FunctionsTable};
use firsttouch::{Allocator, Request};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// What the context of [`make`] counts: bytes out by the sizes that were asked and that came back with the frees.
type Out = AtomicUsize;

unsafe extern "C" fn malloc(context: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the context counts, where there is one.
    unsafe {
        let pointer = libc::malloc(size);
        if let Some(out) = context.cast::<Out>().as_ref().filter(|_| !pointer.is_null()) {
            out.fetch_add(size, SeqCst);
        }
        pointer
    }
}

unsafe extern "C" fn calloc(_: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: calloc has no preconditions.
    unsafe { libc::calloc(count, size) }
}

unsafe extern "C" fn free(context: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: the pointer came from the functions above.
    unsafe {
        if let Some(out) = context.cast::<Out>().as_ref() {
            out.fetch_sub(size, SeqCst);
        }
        libc::free(pointer);
    }
}

/// All three, without a context.
pub fn all() -> Arc<dyn Allocator> {
    let table = FunctionsTable { malloc, free, calloc: Some(calloc), context: null_mut() };
    // SAFETY: the functions are what they are called.
    unsafe { Functions::new(table, |free| free()) }
}

/// Only the two that must be given.
pub fn two() -> Arc<dyn Allocator> {
    // SAFETY: as above.
    unsafe { Functions::new(FunctionsTable { malloc, free, calloc: None, context: null_mut() }, |free| free()) }
}

#[test]
fn a_free_says_what_was_asked_and_each_address_is_known() {
    let out = Out::new(0);
    let context = (&raw const out).cast_mut().cast();
    let table = FunctionsTable { malloc, free, calloc: None, context };
    // SAFETY: the context outlives the allocator and its blocks.
    let functions = unsafe { Functions::new(table, |free| free()) };
    let blocks: Vec<_> = (0..50).map(|n| functions.allocate(Request::bytes(1 + n * 1000)).unwrap()).collect();
    assert!(out.load(SeqCst) >= blocks.iter().map(|block| block.size).sum());
    for block in blocks {
        assert_eq!(functions.list().map(|list| list.contains(block.address)), Some(true));
        // SAFETY: the block is given back once.
        unsafe { functions.deallocate(block.address) };
        assert_eq!(functions.list().map(|list| list.contains(block.address)), Some(false));
    }
    assert_eq!(out.load(SeqCst), 0);
    let foreign = NonNull::from(&out).cast();
    assert_eq!(functions.list().map(|list| list.contains(foreign)), Some(false));
    let expected =
        format!("malloc={:#x}, free={:#x}, calloc=None", malloc as *const () as usize, free as *const () as usize);
    assert!(functions.expression().contains(&expected), "{}", functions.expression());
}
