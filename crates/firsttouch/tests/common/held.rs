//! A live block that is freed when it goes out of scope.

#![allow(unsafe_code)] // Safety: a `Held` is the only holder of its block; bytes are read after they were written.

use super::pattern;
use firsttouch::{AllocError, Allocator, Block, Request};
use std::ptr::NonNull;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// See the module.
pub struct Held<'a> {
    allocator: &'a dyn Allocator,
    address: NonNull<u8>,
    /// Bytes asked for.
    pub asked: usize,
    /// The pattern that stands in it; before [`Held::fill`], nothing.
    pub seed: Option<u64>,
    /// What the allocator said.
    pub zeroed: bool,
}

// SAFETY: any thread may use and give back a block (law 6).
unsafe impl Send for Held<'_> {}

impl<'a> Held<'a> {
    /// Asks for a block and checks what was given: law 1, and law 2 wherever the block is said to be zero.
    pub fn new(allocator: &'a dyn Allocator, request: Request) -> Result<Self, AllocError> {
        let held = Self::untouched(allocator, request)?;
        if held.zeroed {
            held.check_zero();
        }
        Ok(held)
    }

    /// The same, of which nothing is read.
    pub fn untouched(allocator: &'a dyn Allocator, request: Request) -> Result<Self, AllocError> {
        let block = allocator.allocate(request)?;
        let held = Self { allocator, address: block.address, asked: request.size(), seed: None, zeroed: block.zeroed };
        held.check_block(block, request);
        Ok(held)
    }

    /// A block of `size` bytes with the pattern of `seed`.
    pub fn filled(allocator: &'a dyn Allocator, size: usize, seed: u64) -> Self {
        let mut held = Self::new(allocator, Request::bytes(size)).unwrap();
        held.fill(seed);
        held
    }

    /// A block of `size` zeros.
    pub fn zeros(allocator: &'a dyn Allocator, size: usize) -> Self {
        Self::new(allocator, Request::zeroed(size)).unwrap()
    }

    fn check_block(&self, block: Block, request: Request) {
        assert!(self.address().is_multiple_of(request.align()), "{:#x} for {request:?}", self.address());
        assert!(block.size >= request.size() && self.usable() >= request.size(), "{block:?} for {request:?}");
        assert!(block.zeroed || !request.is_zeroed(), "{block:?} for {request:?}");
    }

    pub fn address(&self) -> usize {
        self.address.as_ptr() as usize
    }

    /// Whether the allocator's list of live blocks has this one; nothing where it keeps none.
    pub fn is_known(&self) -> Option<bool> {
        self.allocator.list().map(|list| list.contains(self.address))
    }

    /// Bytes that may be used.
    pub fn usable(&self) -> usize {
        // SAFETY: the block lives.
        unsafe { self.allocator.usable_size(self.address) }
    }

    /// The bytes asked for.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the block lives, is nobody else's and has that size.
        unsafe { from_raw_parts_mut(self.address.as_ptr(), self.asked) }
    }

    fn read(&self) -> &[u8] {
        // SAFETY: as for `bytes`.
        unsafe { from_raw_parts(self.address.as_ptr(), self.asked) }
    }

    /// Writes the pattern of `seed` into the bytes asked for, and something into the others that may be used: the
    /// first of them and the last.
    pub fn fill(&mut self, seed: u64) {
        let (asked, usable) = (self.asked, self.usable());
        self.seed = Some(seed);
        pattern::fill(self.bytes(), seed);
        let some = (usable - asked).min(16 << 10);
        // SAFETY: the block lives, is nobody else's and may be used up to there.
        unsafe {
            self.address.as_ptr().add(asked).write_bytes(0xEE, some);
            self.address.as_ptr().add(usable - some).write_bytes(0xEE, some);
        }
    }

    /// Checks the pattern.
    pub fn check(&self) {
        if let Some(seed) = self.seed {
            pattern::check(self.read(), seed);
        }
    }

    /// Checks that the bytes asked for are zero.
    pub fn check_zero(&self) {
        pattern::check_zero(self.read());
    }

    /// Moves to another size; checks that the content came along.
    pub fn resize(&mut self, size: usize) -> Result<(), AllocError> {
        self.reallocate(Request::bytes(size))
    }

    /// The same for any request.
    pub fn reallocate(&mut self, request: Request) -> Result<(), AllocError> {
        // SAFETY: the block lives, and its old address is forgotten.
        let block = unsafe { self.allocator.reallocate(self.address, request) };
        let block = block.inspect_err(|_| self.check())?;
        let kept = self.asked.min(request.size());
        (self.address, self.asked) = (block.address, request.size());
        self.check_block(block, request.with_zeroed(false));
        if let Some(seed) = self.seed {
            pattern::check(&self.read()[..kept], seed);
            self.fill(seed);
        }
        Ok(())
    }

    /// Checks the pattern and gives the block back.
    pub fn give_back(self) {
        self.check();
    }

    /// The same block, to be given back to another allocator.
    pub fn hand_over<'b>(self, allocator: &'b dyn Allocator) -> Held<'b> {
        let Self { address, asked, seed, zeroed, .. } = self;
        std::mem::forget(self);
        Held { allocator, address, asked, seed, zeroed }
    }

    /// Lets the block live for ever.
    pub fn leak(self) -> &'static [u8] {
        let (address, asked) = (self.address, self.asked);
        std::mem::forget(self);
        // SAFETY: the block is never given back.
        unsafe { from_raw_parts(address.as_ptr(), asked) }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: the block lives and goes with its only holder.
        unsafe { self.allocator.deallocate(self.address) }
    }
}

/// Checks that no two blocks overlap.
pub fn check_apart<'a, 'b: 'a>(blocks: impl IntoIterator<Item = &'a Held<'b>>) {
    let mut ranges: Vec<_> = blocks.into_iter().map(|block| (block.address(), block.usable())).collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:x?}");
    }
}
