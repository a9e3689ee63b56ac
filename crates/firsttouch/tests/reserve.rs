//! The global allocator of a front, and the reserve behind it.

#![allow(unsafe_code)] // Safety: blocks of an allocator under test.

use firsttouch::reserve::{WithReserve, inject, owns, used};
use std::alloc::{GlobalAlloc, Layout};
use std::sync::Mutex;

/// A failure that is asked for would come in the other test.
static ONE: Mutex<()> = Mutex::new(());

#[test]
fn a_block_is_resized_into_the_reserve_and_out_of_it() {
    let _one = ONE.lock().unwrap();
    let (small, larger) = (Layout::new::<[u8; 64]>(), Layout::new::<[u8; 96]>());
    // SAFETY: each block has 64 bytes at least, and is resized and freed with its layout.
    unsafe {
        let content = |block: *mut u8| std::slice::from_raw_parts(block, 64).to_vec();
        let block = WithReserve.alloc_zeroed(small);
        assert_eq!(content(block), [0; 64]);
        block.write_bytes(7, 64);
        inject(1, false);
        let kept = WithReserve.realloc(block, small, larger.size());
        assert!(owns(kept) && content(kept) == [7; 64]);
        let back = WithReserve.realloc(kept, larger, small.size());
        assert!(!owns(back) && used() == 0 && content(back) == [7; 64]);
        WithReserve.dealloc(back, small);
        inject(1, false);
        let again = WithReserve.alloc_zeroed(small);
        assert!(again == kept && content(again) == [0; 64], "not cleared since it was used before");
        WithReserve.dealloc(again, small);
    }
}

/// The kernel's pages are zero already, and move with a large block.
#[cfg(target_os = "linux")]
#[test]
fn pages_are_neither_cleared_nor_copied() {
    let _one = ONE.lock().unwrap();
    let (large, doubled) = (Layout::new::<[u8; 64 << 20]>(), Layout::new::<[u8; 128 << 20]>());
    let before = firsttouch::os::usage().minor_faults;
    // SAFETY: as above.
    unsafe {
        let block = WithReserve.alloc_zeroed(large);
        WithReserve.dealloc(WithReserve.realloc(block, large, doubled.size()), doubled);
    }
    assert!(firsttouch::os::usage().minor_faults - before < 1000);
}
