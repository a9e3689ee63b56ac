//! What is asked, what is given, and the one interface that all allocators share.

#![allow(unsafe_code)] // Safety: the promises of allocators and of their callers are stated here; nothing is touched.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

pub use crate::description::Description;
pub use crate::error::{AllocError, Limit};
use crate::layout::{DEFAULT_ALIGN, LayoutError, MAX_SIZE, checked_align};
use crate::stats::Stats;

/// A request for memory: at least one byte, at a power of two from [`DEFAULT_ALIGN`] to [`MAX_ALIGN`](crate::layout::MAX_ALIGN). Its constructors
/// see to that, so no allocator has to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    size: usize,
    align: usize,
    zeroed: bool,
}

impl Request {
    /// `size` bytes of any content; zero is served as one.
    #[inline]
    pub const fn bytes(size: usize) -> Self {
        Self { size: if size == 0 { 1 } else { size }, align: DEFAULT_ALIGN, zeroed: false }
    }

    /// `size` bytes that read zero.
    #[inline]
    pub const fn zeroed(size: usize) -> Self {
        Self { zeroed: true, ..Self::bytes(size) }
    }

    /// The same at a multiple of `align` bytes; less than [`DEFAULT_ALIGN`] gives that.
    ///
    /// # Errors
    /// Where `align` is not a power of two up to 1 GiB.
    pub fn aligned(self, align: usize) -> Result<Self, LayoutError> {
        Ok(Self { align: checked_align(align)?.max(DEFAULT_ALIGN), ..self })
    }

    /// The same for `size` bytes; zero is served as one.
    #[inline]
    pub const fn with_size(self, size: usize) -> Self {
        Self { size: Self::bytes(size).size, ..self }
    }

    /// The same, with every byte to read zero or not.
    #[inline]
    pub const fn with_zeroed(self, zeroed: bool) -> Self {
        Self { zeroed, ..self }
    }

    /// Bytes, at least one.
    #[inline]
    pub const fn size(self) -> usize {
        self.size
    }

    /// Bytes, a power of two from [`DEFAULT_ALIGN`] to [`MAX_ALIGN`](crate::layout::MAX_ALIGN).
    #[inline]
    pub const fn align(self) -> usize {
        self.align
    }

    /// Whether every byte must read zero.
    #[inline]
    pub const fn is_zeroed(self) -> bool {
        self.zeroed
    }

    /// Whether `address` has the alignment asked for.
    #[inline]
    pub fn suits(self, address: NonNull<u8>) -> bool {
        address.addr().get() & (self.align - 1) == 0
    }

    /// The error for a request that no machine can serve, or nothing.
    ///
    /// # Errors
    /// [`Limit::Size`] where the request and its alignment pass [`MAX_SIZE`].
    #[inline]
    pub const fn check(self) -> Result<(), AllocError> {
        if self.size > MAX_SIZE - self.align { Err(AllocError::new(self.size, Limit::Size)) } else { Ok(()) }
    }
}

/// Memory that was given.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Where it begins.
    pub address: NonNull<u8>,
    /// Bytes that may be used, at least those asked for.
    pub size: usize,
    /// Whether every byte that was asked for is known to be zero. It never lies; it may be too modest.
    pub zeroed: bool,
}

/// Something that gives memory and takes it back.
///
/// # Safety
/// An implementation keeps the laws: blocks have at least the size and alignment asked for and overlap no other living
/// block; a zeroed request reads zero; a block stays valid until it is given back, whatever else happens; any thread
/// may give a block back; giving back never fails and never panics.
pub unsafe trait Allocator: Any + Send + Sync {
    /// What this allocator is: its name, its options, and the allocator it stands on.
    fn describe(&self) -> Description;

    /// The expression that makes this allocator, defaults shown. For people: nothing may be decided by it.
    fn expression(&self) -> String {
        self.describe().to_string()
    }

    /// Serves a request.
    ///
    /// # Errors
    /// What was asked and which limit spoke, after everything kept has been given back and tried again.
    fn allocate(&self, request: Request) -> Result<Block, AllocError>;

    /// Takes a block back.
    ///
    /// # Safety
    /// `address` came from this allocator and was not given back since; nothing uses it any more.
    unsafe fn deallocate(&self, address: NonNull<u8>);

    /// Bytes that may be used at `address`.
    ///
    /// # Safety
    /// `address` is a living block of this allocator.
    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize;

    /// Changes a block's size where it stands; `false` leaves it as it was.
    ///
    /// # Safety
    /// `address` is a living block of this allocator; where the block shrinks, nothing uses what lies above.
    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise is the same (law 4: an address knows its owner).
        size <= unsafe { self.usable_size(address) }
    }

    /// Changes a block's size and alignment, moving it where it must; content is kept up to the smaller size.
    ///
    /// # Errors
    /// As for [`Allocator::allocate`]; the old block then lives on unchanged.
    ///
    /// # Safety
    /// `address` is a living block of this allocator; after success nothing uses the old address.
    unsafe fn reallocate(&self, address: NonNull<u8>, request: Request) -> Result<Block, AllocError> {
        // SAFETY: `address` lives (caller), so its size is readable and its bytes up to that size may be copied into
        // a block that overlaps no living one; it is given back only after the copy (law 8: nothing dangles).
        unsafe {
            if request.suits(address) && self.resize_in_place(address, request.size()) {
                return Ok(Block { address, size: self.usable_size(address), zeroed: false });
            }
            let old = self.usable_size(address);
            let block = self.allocate(request.with_zeroed(false))?;
            block.address.copy_from_nonoverlapping(address, old.min(request.size()));
            self.deallocate(address);
            Ok(Block { zeroed: false, ..block })
        }
    }

    /// Gives what is kept back to the operating system now; bytes given back.
    fn trim(&self) -> usize {
        self.upstream().map_or(0, |upstream| upstream.trim())
    }

    /// What this allocator holds and did; zeros where it keeps no count.
    fn stats(&self) -> Stats {
        self.upstream().map_or_else(Stats::default, |upstream| upstream.stats())
    }

    /// Whether every block lies in firsttouch's segments, so that its owner can be found from its address alone.
    fn in_segments(&self) -> bool {
        self.upstream().is_some_and(|upstream| upstream.in_segments())
    }

    /// The allocator that this one stands on, if it is an adaptor. It answers below for an adaptor that does not.
    fn upstream(&self) -> Option<&Arc<dyn Allocator>> {
        None
    }

    /// Whether a living block of this allocator begins at `address`; nothing where it keeps no list of its blocks.
    ///
    /// Allocators that stand on others keep one: their blocks lie in the memory of somebody else, whom the address
    /// would name.
    fn owns(&self, _address: NonNull<u8>) -> Option<bool> {
        None
    }

    /// Whether blocks live that nobody could take back once this allocator is gone. Those of adaptors that pass blocks on
    /// as they are go to the upstream.
    fn must_stay(&self) -> bool {
        self.upstream().is_some_and(|upstream| upstream.must_stay())
    }

    /// Whether memory at `address` that somebody else brought in is as good as this allocator's own.
    fn accepts(&self, _address: usize) -> bool {
        false
    }

    /// Whether giving a block back may run code that is neither this library's nor the C library's. Such code may wait for
    /// other threads, so it is never run while a fork is under way; what is idle over it stays then.
    fn calls_out(&self) -> bool {
        true
    }

    /// Requests below this many bytes are better served by the program's own small allocator.
    fn small_limit(&self) -> usize {
        self.upstream().map_or(0, |upstream| upstream.small_limit())
    }
}
