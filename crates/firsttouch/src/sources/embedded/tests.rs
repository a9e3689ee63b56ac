//! A library whose blocks are freed at the worst moment.

#![allow(unsafe_code)] // Safety: each block is of its own, and freed once.

use super::{Embedded, Library};
use crate::allocator::{Allocator, Request};
use crate::os::Errno;
use crate::sync::first::First;
use std::ptr::{NonNull, null_mut, with_exposed_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// Each block of it has one size, and stays open when it is freed.
struct Fake;

const SIZE: usize = 1 << 20;
/// Freed in the middle of the next purge.
static LATE: AtomicPtr<u8> = AtomicPtr::new(null_mut());

// SAFETY: each block is handed out once.
unsafe impl Library for Fake {
    const NAME: &str = "fake";
    const UNIT: usize = SIZE;
    const MAX_ALIGN: usize = SIZE;

    fn one() -> &'static First<Arc<Embedded<Self>>> {
        static ONE: First<Arc<Embedded<Fake>>> = First::new();
        &ONE
    }

    fn start(_: &'static Embedded<Self>) -> Result<(), Errno> {
        Ok(())
    }

    fn grow(_: &'static Embedded<Self>, _: usize) -> bool {
        false
    }

    fn allocate(_: Request) -> *mut u8 {
        let source = Self::one().get().unwrap();
        let at = source.take(SIZE, SIZE).unwrap();
        source.space().open(at, SIZE).unwrap();
        source.space().was_opened(); // or the purger's thread would purge, too
        with_exposed_provenance_mut(at)
    }

    unsafe fn free(_: *mut u8) {}

    unsafe fn usable(_: *mut u8) -> usize {
        SIZE
    }

    unsafe fn resize(_: *mut u8, _: usize) -> bool {
        false
    }

    fn purge() {
        if let (Some(source), Some(late)) = (Self::one().get(), NonNull::new(LATE.swap(null_mut(), Relaxed))) {
            // SAFETY: nobody uses the block.
            unsafe { source.deallocate(late) };
        }
    }
}

#[test]
fn what_is_freed_during_a_purge_is_idle() {
    let source = Embedded::<Fake>::get().unwrap();
    LATE.store(source.allocate(Request::bytes(SIZE)).unwrap().address.as_ptr(), Relaxed);
    assert_eq!(source.trim(), 0);
    assert_eq!((source.stats().active, source.stats().idle), (0, SIZE));
}
