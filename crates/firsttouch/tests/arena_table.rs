//! Tables of C functions: their results are passed on, and invalid tables are rejected by name.

#![allow(unsafe_code)] // Safety: the tables' functions keep their promises, or are never called.

use firsttouch::allocator::Limit;
use firsttouch::arena::{Arena, Scratch, Upstream};
use firsttouch::arena::{ScratchTable, ScratchTableError, TableScratch};
use std::ffi::c_void;
use std::ptr::null_mut;

unsafe extern "C" fn allocate(context: *mut c_void, size: usize, align: usize) -> *mut u8 {
    // SAFETY: the context is an arena.
    unsafe { &*context.cast::<Arena>() }.allocate(size, align).map_or(null_mut(), |block| block.as_ptr())
}

unsafe extern "C" fn mark(context: *mut c_void) -> u64 {
    // SAFETY: as above.
    Scratch::mark(unsafe { &*context.cast::<Arena>() })
}

unsafe extern "C" fn rewind(context: *mut c_void, mark: u64) {
    // SAFETY: as above; the caller's promise.
    unsafe { Scratch::rewind(&*context.cast::<Arena>(), mark) }
}

unsafe extern "C" fn crooked(context: *mut c_void, size: usize, _align: usize) -> *mut u8 {
    // SAFETY: as above.
    unsafe { allocate(context, size + 1, 64) }.wrapping_add(1)
}

fn table(arena: &Arena) -> ScratchTable {
    ScratchTable { context: std::ptr::from_ref(arena).cast_mut().cast(), allocate, mark, rewind }
}

#[test]
fn a_table_is_a_scratch() {
    let arena = Arena::fixed(Upstream::System, 1000).unwrap();
    let described = table(&arena);
    // SAFETY: the arena outlives it.
    let scratch: Box<dyn Scratch> =
        Box::new(unsafe { TableScratch::from_address((&raw const described).expose_provenance()) }.unwrap());
    let mark = scratch.mark();
    let block = scratch.allocate(600, 64).unwrap();
    assert!(block.as_ptr().addr().is_multiple_of(64) && arena.used() >= 600);
    let error = scratch.allocate(600, 64).unwrap_err();
    assert_eq!((error.asked, error.limit), (600, Limit::Upstream));
    // SAFETY: the block is not used any more.
    unsafe { scratch.rewind(mark) };
    assert_eq!(arena.used(), 0);
    assert_ne!(scratch.allocate(0, 1), scratch.allocate(0, 1));
}

#[test]
fn what_is_not_aligned_is_refused() {
    let arena = Arena::new();
    // SAFETY: the arena outlives it.
    let scratch = unsafe { TableScratch::new(ScratchTable { allocate: crooked, ..table(&arena) }) };
    assert!(scratch.allocate(10, 8).is_err());
    scratch.allocate(10, 1).unwrap();
}

#[test]
fn bad_tables_are_named() {
    // SAFETY: nothing stands there, and nothing is read.
    let at = |address| unsafe { TableScratch::from_address(address) }.err();
    assert_eq!(at(0), Some(ScratchTableError::Address(0)));
    assert_eq!(at(0x1001), Some(ScratchTableError::Address(0x1001)));
    assert_eq!(at(0x1001).unwrap().to_string(), "no scratch table can stand at address 0x1001");
    for (index, name) in [(1, "allocate"), (2, "mark"), (3, "rewind")] {
        let mut words = [1usize; 4];
        words[index] = 0;
        assert_eq!(at((&raw const words).expose_provenance()), Some(ScratchTableError::Function(name)));
    }
}
