//! Failed requests return an error with the reason, and nothing is lost.

use super::Make;
use super::common::held::Held;
use firsttouch::allocator::Limit;
use firsttouch::layout::MAX_SIZE;
use firsttouch::size::Bytes;
use firsttouch::{Allocator, Request, failure};

/// More than the address space of a process.
const IMPOSSIBLE: [usize; 8] =
    [usize::MAX, MAX_SIZE + 1, MAX_SIZE, MAX_SIZE - 64, MAX_SIZE - 4096, 1 << 62, 1 << 52, 1 << 47];

fn refuse(allocator: &dyn Allocator, request: Request) {
    let error = Held::new(allocator, request).err().unwrap_or_else(|| panic!("{request:?} was served"));
    assert_eq!(error.asked, request.size());
    assert!(error.to_string().contains(&Bytes(request.size()).to_string()), "{error}");
    if request.size() >= MAX_SIZE {
        assert_eq!(error.limit, Limit::Size);
    }
    assert!(failure::last().is_some());
}

/// A program that asks for too much again and again, and catches the error, has all its memory in the end.
pub fn nothing_is_lost(make: Make) {
    let allocator = make();
    let block = Held::filled(&*allocator, 3 << 20, 8);
    let before = allocator.stats();
    for round in 0..40 {
        // What lies between the machine's memory and the address space is refused by the kernel alone, if at all.
        // (Wine refuses none of it, and has records of each page.)
        if cfg!(unix) {
            let _ = Held::new(&*allocator, Request::bytes((8 << 40) + (round << 39)));
        }
        refuse(&*allocator, Request::bytes((1 << 47) + (round << 43)));
        let size = IMPOSSIBLE[round % IMPOSSIBLE.len()];
        for request in [Request::bytes(size), Request::zeroed(size)] {
            refuse(&*allocator, request);
            refuse(&*allocator, request.aligned(1 << 30).unwrap());
        }
    }
    let after = allocator.stats();
    assert_eq!((before.in_use, before.active, before.blocks), (after.in_use, after.active, after.blocks));
    assert!(after.mapped <= before.mapped, "{before:?}\n{after:?}");
    block.give_back();
}
