//! An allocator of one's own: it stands on another, counts what goes through it, and refuses what is too large for one
//! block. `cargo run --example own_allocator -p firsttouch`
//!
//! Whoever implements the trait promises its laws, so the words `unsafe` and `SAFETY` say on what they rest.

#![allow(unsafe_code)] // Safety: all memory comes from the allocator below, which keeps the laws.

use firsttouch::adaptors::{Options, Pool};
use firsttouch::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// Counts the blocks of another allocator, and serves none above `largest` bytes.
struct Counted {
    upstream: Arc<dyn Allocator>,
    largest: usize,
    living: AtomicIsize,
    served: AtomicUsize,
}

impl Counted {
    fn new(upstream: Arc<dyn Allocator>, largest: usize) -> Arc<Self> {
        Arc::new(Self { upstream, largest, living: AtomicIsize::new(0), served: AtomicUsize::new(0) })
    }

    fn check(&self, request: Request) -> Result<(), AllocError> {
        let limit = Limit::Budget { allowed: self.largest, used: 0 };
        if request.size() > self.largest { Err(AllocError::new(request.size(), limit)) } else { Ok(()) }
    }
}

// SAFETY: every block is the upstream's, handed on as it came; giving back counts and calls the upstream, which neither
// fails nor panics.
unsafe impl Allocator for Counted {
    fn describe(&self) -> Description {
        Description::of("counted").with(self.upstream.describe()).with(self.largest)
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        self.check(request)?;
        let block = self.upstream.allocate(request)?;
        self.served.fetch_add(1, Relaxed);
        self.living.fetch_add(1, Relaxed);
        Ok(block)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        self.living.fetch_sub(1, Relaxed);
        // SAFETY: the caller's promise, which the upstream asks for too.
        unsafe { self.upstream.deallocate(address) }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: as above.
        unsafe { self.upstream.usable_size(address) }
    }

    unsafe fn reallocate(&self, address: NonNull<u8>, request: Request) -> Result<Block, AllocError> {
        self.check(request)?;
        // SAFETY: as above. The upstream knows best how to move its blocks; one block remains one block.
        unsafe { self.upstream.reallocate(address, request) }
    }

    fn trim(&self) -> usize {
        self.upstream.trim()
    }

    fn calls_out(&self) -> bool {
        self.upstream.calls_out()
    }

    fn in_segments(&self) -> bool {
        self.upstream.in_segments()
    }
}

fn main() {
    let counted = Counted::new(Pool::new(Options::default()), 64 << 20);
    println!("{}", counted.expression());
    let blocks: Vec<Block> = (1..=10).map(|n| counted.allocate(Request::zeroed(n << 20)).unwrap()).collect();
    println!("{} blocks of {} live", counted.living.load(Relaxed), counted.served.load(Relaxed));
    assert_eq!(counted.living.load(Relaxed), 10);

    let refused = counted.allocate(Request::bytes(100 << 20)).unwrap_err();
    println!("{refused}");
    assert!(refused.to_string().contains("104857600"));

    for block in blocks {
        // SAFETY: each block is given back once, to the allocator it came from.
        unsafe {
            assert_eq!(block.address.read(), 0, "zeroed blocks read zero");
            let block = counted.reallocate(block.address, Request::bytes(block.size / 2)).unwrap();
            counted.deallocate(block.address);
        }
    }
    println!("{} blocks live, {} bytes went home", counted.living.load(Relaxed), counted.trim());
    assert_eq!(counted.living.load(Relaxed), 0);
}

#[test]
fn the_example_runs() {
    main();
}
