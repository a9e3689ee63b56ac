//! A custom scratch allocator for Python: a shared library that exports a table of functions.
//!
//! `cargo build --release --example own_scratch -p firsttouch` builds `target/release/examples/libown_scratch.so`.
//! Python allocates arrays in it as follows:
//!
//! ```python
//! library = ctypes.CDLL("target/release/examples/libown_scratch.so")
//! library.firsttouch_scratch_table.restype = ctypes.c_void_p
//! with ft.scratch(ft.buffers.scratch_from_table(library.firsttouch_scratch_table())) as s:
//!     x = s.zeros(1000)
//! ```
//!
//! The allocator is a stack of 1 MiB: each block begins at the end of the previous one.

#![allow(unsafe_code)] // Safety: all memory is in one static; each block says what it rests on.

use firsttouch::arena::ScratchTable;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const SIZE: usize = 1 << 20;

/// The memory, and the number of bytes in use.
#[repr(C, align(64))]
struct Stack {
    memory: [u8; SIZE],
    used: AtomicUsize,
}

static mut STACK: Stack = Stack { memory: [0; SIZE], used: AtomicUsize::new(0) };

/// Returns the stack behind the context of a table.
fn stack(context: *mut c_void) -> *mut Stack {
    context.cast()
}

/// Allocates a block; returns null if there is no room.
unsafe extern "C" fn allocate(context: *mut c_void, size: usize, align: usize) -> *mut u8 {
    let memory = stack(context).cast::<u8>(); // the first field
    // SAFETY: the context is the static stack; its counter is atomic.
    let used = unsafe { &(*stack(context)).used };
    let start = (memory as usize + used.load(Relaxed)).next_multiple_of(align) - memory as usize;
    match start.checked_add(size) {
        Some(end) if end <= SIZE => {
            used.store(end, Relaxed); // one thread at a time, as promised by the users of a table
            memory.wrapping_add(start)
        }
        _ => null_mut(),
    }
}

unsafe extern "C" fn mark(context: *mut c_void) -> u64 {
    // SAFETY: as above.
    unsafe { (*stack(context)).used.load(Relaxed) as u64 }
}

unsafe extern "C" fn rewind(context: *mut c_void, mark: u64) {
    // SAFETY: as above.
    unsafe { (*stack(context)).used.store(mark as usize, Relaxed) }
}

static TABLE: ScratchTable = ScratchTable { context: (&raw mut STACK).cast(), allocate, mark, rewind };

/// Returns the table, which is never freed.
// SAFETY: the library exports no other function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn firsttouch_scratch_table() -> *const ScratchTable {
    &TABLE
}

#[test]
fn the_table_works() {
    use firsttouch::arena::{Scratch, TableScratch};
    let address = firsttouch_scratch_table().expose_provenance();
    // SAFETY: the table is valid, and its functions keep the promises of `Scratch`.
    let scratch = unsafe { TableScratch::from_address(address) }.unwrap();
    let outer = scratch.mark();
    scratch.allocate(1, 1).unwrap();
    for _ in 0..100 {
        let mark = scratch.mark();
        let block = scratch.allocate(100_000, 4096).unwrap();
        assert!((block.as_ptr() as usize).is_multiple_of(4096));
        // SAFETY: the block was just allocated, and is not used after the rewind.
        unsafe {
            block.write_bytes(7, 100_000);
            scratch.rewind(mark);
        }
    }
    assert!(scratch.allocate(SIZE, 1).is_err() && scratch.allocate(usize::MAX, 1).is_err());
    // SAFETY: no block is used afterwards.
    unsafe { scratch.rewind(outer) };
    scratch.allocate(SIZE, 1).unwrap();
}
