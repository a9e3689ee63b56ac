//! Reads of uninitialized and of freed memory see the pattern.

use super::common::held::Held;
use firsttouch::adaptors::{Filled, Limited, Options, Pool};
use firsttouch::sources::{Calloc, Malloc, Pages};
use firsttouch::{AllocError, Allocator, Block, Description, Request, Stats};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

const SIZES: [usize; 7] = [1, 100, 4096, 5000, 70_000, 1 << 20, (3 << 20) + 5];

fn upstreams() -> [Arc<dyn Allocator>; 6] {
    [
        Pool::new(Options::default()),
        Pages::new(true),
        Malloc::new(),
        Calloc::new(),
        Calloc::aligned(64).unwrap(),
        Limited::new(Pool::new(Options::default()), 1 << 30),
    ]
}

fn all(bytes: &[u8], byte: u8) -> bool {
    bytes.iter().all(|&other| other == byte)
}

#[test]
fn what_was_never_written_shows() {
    for upstream in upstreams() {
        let filled = Filled::new(upstream, Some(0xFF), None);
        for round in 0..3 {
            for size in SIZES {
                let mut block = Held::new(&*filled, Request::bytes(size)).unwrap();
                assert!(!block.zeroed && all(block.bytes(), 0xFF), "{size} bytes in round {round}");
                block.fill(round);
                block.give_back();
                let mut zeros = Held::zeros(&*filled, size);
                assert!(all(zeros.bytes(), 0));
            }
        }
    }
}

#[test]
fn the_tail_of_a_block_that_grows_shows_too() {
    for (upstream, on_free) in upstreams().into_iter().flat_map(|up| [(up.clone(), None), (up, Some(3))]) {
        let filled = Filled::new(upstream, Some(0xAB), on_free);
        for zeroed in [false, true] {
            for (size, target) in [(100, 130), (100, 5000), (5000, 9000), (70_000, 3 << 20), (3 << 20, (3 << 20) + 777)]
            {
                let mut block = Held::new(&*filled, Request::bytes(size).with_zeroed(zeroed)).unwrap();
                block.bytes().fill(1);
                block.resize(target).unwrap();
                assert!(all(&block.bytes()[..size], 1) && all(&block.bytes()[size..], 0xAB), "{size} to {target}");
                block.bytes().fill(2);
                block.resize(size / 2).unwrap();
                assert!(all(block.bytes(), 2));
                block.resize(target).unwrap();
                assert!(all(&block.bytes()[..size / 2], 2) && all(&block.bytes()[size / 2..], 0xAB), "up again");
            }
        }
    }
}

/// Looks at every block that comes back.
struct Witness {
    upstream: Arc<dyn Allocator>,
    seen: Mutex<Vec<Vec<u8>>>,
}

#[allow(unsafe_code)] // Safety: everything is the upstream's; a block is read before it goes back.
// SAFETY: as above.
unsafe impl Allocator for Witness {
    fn describe(&self) -> Description {
        Description::of("witness")
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        self.upstream.allocate(request)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: the test passes a live block, all of which `Filled` wrote.
        unsafe {
            let bytes = std::slice::from_raw_parts(address.as_ptr(), self.upstream.usable_size(address)).to_vec();
            self.seen.lock().unwrap().push(bytes);
            self.upstream.deallocate(address);
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: the core and the tests pass live blocks of this allocator (`Allocator`), which are the upstream's.
        unsafe { self.upstream.usable_size(address) }
    }

    fn stats(&self) -> Stats {
        self.upstream.stats()
    }
}

/// Nothing of a block's content is left as it goes back: freed, moved, or shrunk.
#[test]
fn what_is_freed_is_wiped() {
    for upstream in [Pool::new(Options::default()) as Arc<dyn Allocator>, Pages::new(true)] {
        let witness = Arc::new(Witness { upstream, seen: Mutex::default() });
        let filled = Filled::new(witness.clone(), None, Some(0));
        for size in SIZES {
            Held::filled(&*filled, size, 1).give_back();
            let mut moved = Held::filled(&*filled, size, 2);
            moved.resize(2 * size + (8 << 20)).unwrap();
            moved.resize(size / 2 + 1).unwrap();
            moved.resize(size / 4 + 1).unwrap();
            moved.give_back();
            let seen = std::mem::take(&mut *witness.seen.lock().unwrap());
            assert!(seen.len() >= 3 && seen.iter().all(|bytes| all(bytes, 0)), "{size} bytes");
            assert!(seen.iter().map(Vec::len).sum::<usize>() >= 3 * size + (8 << 20), "all of what it grew to");
        }
    }
}

/// Where a wiped block can't be moved, it stays as it was.
#[test]
fn a_move_that_fails_changes_nothing() {
    let filled = Filled::new(Limited::new(Malloc::new(), 10_000), Some(1), Some(2));
    let mut block = Held::filled(&*filled, 8000, 5);
    assert!(block.resize(12_000).is_err() && block.resize(4000).is_err());
    block.check();
    assert_eq!(block.asked, 8000);
}
