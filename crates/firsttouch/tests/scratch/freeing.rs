//! Law 5 for scratch buffers: freeing a block allocates nothing.

#![allow(unsafe_code)] // Safety: the counting allocator passes everything on to the system's.

use crate::pieces::{Piece, fixed};
use firsttouch::adaptors::{Options, Pool};
use firsttouch::scratch::Buffer;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting what this thread asks for.
struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator keeps the promises.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the core and the tests pass live blocks of this allocator (`Allocator`), which are the upstream's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the core and the tests pass live blocks of this allocator (`Allocator`), which are the upstream's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

#[test]
fn giving_back_allocates_nothing() {
    let pool = Pool::new(Options::default());
    let growing = Buffer::growing(pool, 64 << 10);
    for buffer in [growing, fixed(2 << 20, false)] {
        let mut pieces: Vec<_> =
            (0..400).map(|n| Piece::bytes(&buffer, [100, 3000, 7000, 9000][n % 4], n as u64)).collect();
        (0..200).for_each(|n| pieces.swap(n, 399 - n * 7 % 200));
        let before = COUNT.get();
        pieces.into_iter().for_each(|piece| piece.give_back(&buffer));
        assert_eq!((COUNT.get(), buffer.used()), (before, 0));
    }
}
