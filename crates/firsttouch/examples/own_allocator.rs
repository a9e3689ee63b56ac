//! A custom allocator: an adaptor that counts the blocks of its upstream and refuses large requests. Run it with
//! `cargo run --example own_allocator -p firsttouch`.
//!
//! The trait is `unsafe`, since its implementation promises to keep the laws of allocators; the `SAFETY` comments tell
//! what that promise rests on.

#![allow(unsafe_code)] // Safety: all memory comes from the upstream, which keeps the laws.

use firsttouch::adaptors::{Options, Pool};
use firsttouch::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// Counts the blocks of its upstream, and refuses requests above `largest` bytes.
struct Counted {
    upstream: Arc<dyn Allocator>,
    largest: usize,
    live: AtomicIsize,
    served: AtomicUsize,
}

impl Counted {
    fn new(upstream: Arc<dyn Allocator>, largest: usize) -> Arc<Self> {
        Arc::new(Self { upstream, largest, live: AtomicIsize::new(0), served: AtomicUsize::new(0) })
    }

    fn check(&self, request: Request) -> Result<(), AllocError> {
        let limit = Limit::Budget { allowed: self.largest, used: 0 };
        if request.size() > self.largest { Err(AllocError::new(request.size(), limit)) } else { Ok(()) }
    }
}

// SAFETY: every block is passed on unchanged from the upstream; deallocation counts and calls the upstream, which neither
// fails nor panics.
unsafe impl Allocator for Counted {
    fn describe(&self) -> Description {
        Description::of("counted").with(self.upstream.describe()).with(self.largest)
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        self.check(request)?;
        let block = self.upstream.allocate(request)?;
        self.served.fetch_add(1, Relaxed);
        self.live.fetch_add(1, Relaxed);
        Ok(block)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        self.live.fetch_sub(1, Relaxed);
        // SAFETY: callers pass live blocks of this allocator (`Allocator`), which are the upstream's.
        unsafe { self.upstream.deallocate(address) }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: as above.
        unsafe { self.upstream.usable_size(address) }
    }

    unsafe fn reallocate(&self, address: NonNull<u8>, request: Request) -> Result<Block, AllocError> {
        self.check(request)?;
        // SAFETY: as above. The upstream moves the block, so the number of blocks is unchanged.
        unsafe { self.upstream.reallocate(address, request) }
    }

    fn trim(&self) -> usize {
        self.upstream.trim()
    }
}

fn main() {
    let counted = Counted::new(Pool::new(Options::default()), 64 << 20);
    println!("{}", counted.expression());
    let blocks: Vec<Block> = (1..=10).map(|n| counted.allocate(Request::zeroed(n << 20)).unwrap()).collect();
    println!("{} of {} blocks are live", counted.live.load(Relaxed), counted.served.load(Relaxed));
    assert_eq!(counted.live.load(Relaxed), 10);

    let refused = counted.allocate(Request::bytes(100 << 20)).unwrap_err();
    println!("{refused}");
    assert!(refused.to_string().contains("100 MiB"));

    for block in blocks {
        // SAFETY: each block is deallocated once, by the allocator that allocated it.
        unsafe {
            assert_eq!(block.address.read(), 0, "zeroed blocks read zero");
            let block = counted.reallocate(block.address, Request::bytes(block.size / 2)).unwrap();
            counted.deallocate(block.address);
        }
    }
    println!("{} blocks are live, {} bytes were trimmed", counted.live.load(Relaxed), counted.trim());
    assert_eq!(counted.live.load(Relaxed), 0);
}

#[test]
fn the_example_runs() {
    main();
}
