//! Blocks of a buffer, with their contents.

#![allow(unsafe_code)] // Safety: a `Piece` is the only holder of its block; bytes are read after they were written.

pub use crate::common::pattern::Dice;
use crate::common::pattern::{check, fill};
use firsttouch::scratch::Buffer;
use firsttouch::{AllocError, Allocator, Request};
use std::ptr::NonNull;
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::Arc;

/// A live block; it is never given back by itself.
pub struct Piece {
    pub address: NonNull<u8>,
    pub asked: usize,
    pub usable: usize,
    /// The number of its request, where it lies in the buffer's own memory.
    pub serial: Option<u64>,
    seed: u64,
}

// SAFETY: any thread may use and give back a block (law 6).
unsafe impl Send for Piece {}

impl Piece {
    /// Asks for a block, checks what was given, and fills all that may be used with the pattern of `seed`.
    pub fn new(buffer: &Buffer, request: Request, seed: u64) -> Result<Self, AllocError> {
        let block = buffer.allocate(request)?;
        let serial = buffer.block(block.address).map(|(_, serial)| serial);
        let mut piece = Self { address: block.address, asked: request.size(), usable: block.size, serial, seed };
        assert!(piece.at().is_multiple_of(request.align()), "{:#x} for {request:?}", piece.at());
        assert!(block.size >= request.size(), "{block:?} for {request:?}");
        assert!(block.zeroed || !request.is_zeroed());
        if block.zeroed {
            // SAFETY: the block lives and was said to be zero; the kernel or the buffer made it so.
            let bytes = unsafe { from_raw_parts(piece.address.as_ptr(), request.size()) };
            assert!(bytes.iter().all(|&byte| byte == 0), "{block:?} for {request:?}");
        }
        piece.refill(seed);
        Ok(piece)
    }

    pub fn bytes(buffer: &Buffer, size: usize, seed: u64) -> Self {
        Self::new(buffer, Request::bytes(size), seed).unwrap()
    }

    pub fn at(&self) -> usize {
        self.address.as_ptr() as usize
    }

    pub fn refill(&mut self, seed: u64) {
        self.seed = seed;
        // SAFETY: the block lives, is nobody else's and may be used up to there.
        fill(unsafe { from_raw_parts_mut(self.address.as_ptr(), self.usable) }, seed);
    }

    /// Checks every byte.
    pub fn check(&self) {
        // SAFETY: as above.
        check(unsafe { from_raw_parts(self.address.as_ptr(), self.usable) }, self.seed);
    }

    /// Moves to another size, if there is room; what stays is unchanged.
    pub fn resize(&mut self, buffer: &Buffer, size: usize, seed: u64) -> bool {
        // SAFETY: the block lives, and its old address is forgotten.
        let Ok(block) = (unsafe { buffer.reallocate(self.address, Request::bytes(size)) }) else { return false };
        let kept = self.asked.min(size);
        // SAFETY: the block lives and has at least that size.
        check(unsafe { from_raw_parts(block.address.as_ptr(), kept) }, self.seed);
        (self.address, self.asked, self.usable) = (block.address, size, block.size);
        self.serial = buffer.block(block.address).map(|(_, serial)| serial);
        assert!(self.usable >= size);
        self.refill(seed);
        true
    }

    /// The same block once more, for a child of a fork that gives it back, too.
    #[cfg(unix)]
    pub fn copy(other: &Self) -> Self {
        Self { ..*other }
    }

    pub fn give_back(self, buffer: &Buffer) {
        self.check();
        // SAFETY: the block lives and is this buffer's.
        unsafe { buffer.deallocate(self.address) };
    }
}

/// A buffer of a fixed size on a vector, which is dropped with it.
pub fn fixed(size: usize, shared: bool) -> Arc<Buffer> {
    let mut storage = vec![0x55_u8; size];
    let address = NonNull::new(storage.as_mut_ptr()).unwrap();
    // SAFETY: the vector's memory stays where it is, and nobody else uses it.
    unsafe { Buffer::fixed(address, size, shared, Box::new(storage)) }
}
