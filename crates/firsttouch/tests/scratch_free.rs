//! Law 5 for scratch buffers: freeing a block or closing a scope allocates nothing.

#![allow(unsafe_code)] // Safety: the counting allocator passes everything on to the system's.

mod scratch_common;

use firsttouch::adaptors::{self, Pool};
use firsttouch::scratch::{Backing, Buffer, Options};
use scratch_common::{Piece, fixed};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

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
    let pool = Pool::new(adaptors::Options::default());
    for debug in [false, true] {
        let options = Options { chunk_size: 64 << 10, debug, ..Options::default() };
        let growing = Buffer::growing(pool.clone(), options).unwrap();
        for backing in [growing as Arc<dyn Backing>, fixed(2 << 20, false, debug)] {
            let scopes: Vec<_> = (0..20).map(|_| backing.open()).collect();
            let mut pieces: Vec<_> = (0..400)
                .map(|n| Piece::bytes(&*backing, scopes[n % 20], [100, 3000, 7000, 9000][n % 4], n as u64))
                .collect();
            (0..200).for_each(|n| pieces.swap(n, 399 - n * 7 % 200));
            let mut closed = 0;
            let before = COUNT.get();
            for (n, piece) in pieces.into_iter().enumerate() {
                piece.give_back(&*backing);
                if n % 20 == 0 {
                    closed += backing.close(scopes[n / 20]).survivors;
                }
            }
            assert_eq!(COUNT.get(), before);
            assert!(closed > 0 && backing.used() == 0);
        }
    }
}
