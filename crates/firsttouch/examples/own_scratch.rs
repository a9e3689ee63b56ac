//! A scratch allocator of one's own for Python: a shared library that hands out a table of functions, by address.
//!
//! `cargo build --release --example own_scratch -p firsttouch` makes `target/release/examples/libown_scratch.so`, and
//!
//! ```python
//! library = ctypes.CDLL("target/release/examples/libown_scratch.so")
//! library.firsttouch_scratch_table.restype = ctypes.c_void_p
//! with ft.scratch(ft.buffers.scratch_from_table(library.firsttouch_scratch_table())) as s:
//!     x = s.zeros(1000)
//! ```
//!
//! lets arrays live in it. This one is a stack of one mebibyte: the end of a block is where the next begins.

#![allow(unsafe_code)] // Safety: memory is handed out from one static; each function says what it rests on.

use firsttouch::arena::table::ScratchTable;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const SIZE: usize = 1 << 20;

/// The memory, and how much of it is in use.
#[repr(C, align(64))]
struct Stack {
    memory: [u8; SIZE],
    used: AtomicUsize,
}

static mut STACK: Stack = Stack { memory: [0; SIZE], used: AtomicUsize::new(0) };

/// The stack that a table's context is.
fn stack(context: *mut c_void) -> *mut Stack {
    context.cast()
}

/// Where the next block of that alignment begins and ends, if there is room.
unsafe extern "C" fn allocate(context: *mut c_void, size: usize, align: usize) -> *mut u8 {
    let memory = stack(context).cast::<u8>(); // it begins with it
    // SAFETY: the context is the stack, which lives as long as the library; its counter is atomic.
    let used = unsafe { &(*stack(context)).used };
    let start = (memory as usize + used.load(Relaxed)).next_multiple_of(align) - memory as usize;
    match start.checked_add(size) {
        Some(end) if end <= SIZE => {
            used.store(end, Relaxed); // one thread at a time, as the table's users promise
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

/// The table; it stays where it is.
// SAFETY: no other function of that name is in this library.
#[unsafe(no_mangle)]
pub extern "C" fn firsttouch_scratch_table() -> *const ScratchTable {
    &TABLE
}

#[test]
fn the_table_works() {
    use firsttouch::arena::Scratch;
    use firsttouch::arena::table::Table;
    let address = firsttouch_scratch_table().expose_provenance();
    // SAFETY: the table is there, and its functions keep their promises.
    let scratch = unsafe { Table::at(address) }.unwrap();
    let outer = scratch.mark();
    scratch.allocate(1, 1).unwrap();
    for _ in 0..100 {
        let mark = scratch.mark();
        let block = scratch.allocate(100_000, 4096).unwrap();
        assert!((block.as_ptr() as usize).is_multiple_of(4096));
        // SAFETY: the block was just given, and is not used after the rewind.
        unsafe {
            block.write_bytes(7, 100_000);
            scratch.rewind(mark);
        }
    }
    assert!(scratch.allocate(SIZE, 1).is_err() && scratch.allocate(usize::MAX, 1).is_err());
    // SAFETY: nothing is used any more.
    unsafe { scratch.rewind(outer) };
    scratch.allocate(SIZE, 1).unwrap();
}
