//! Requests, blocks, and the trait that all allocators implement.

#![allow(unsafe_code)] // Safety: states the contracts of allocators and their callers; `reallocate` relies on them.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

pub use crate::description::Description;
pub use crate::error::{AllocError, Limit};
use crate::layout::{DEFAULT_ALIGN, LayoutError, MAX_SIZE, checked_align};
use crate::stats::Stats;

/// A request for memory: a size of at least one byte, and an alignment that is a power of two from [`DEFAULT_ALIGN`] to
/// [`MAX_ALIGN`](crate::layout::MAX_ALIGN). The constructors guarantee both, so allocators need not check them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    size: usize,
    align: usize,
    zeroed: bool,
    of_interpreter: bool,
}

impl Request {
    /// A request for `size` bytes of any content. A size of zero is served as one.
    #[inline]
    pub const fn bytes(size: usize) -> Self {
        Self { size: if size == 0 { 1 } else { size }, align: DEFAULT_ALIGN, zeroed: false, of_interpreter: false }
    }

    /// A request for `size` bytes that read zero.
    #[inline]
    pub const fn zeroed(size: usize) -> Self {
        Self { zeroed: true, ..Self::bytes(size) }
    }

    /// The same request with an alignment of at least `align` bytes and [`DEFAULT_ALIGN`].
    ///
    /// # Errors
    /// If `align` is not a power of two up to 1 GiB.
    pub fn aligned(self, align: usize) -> Result<Self, LayoutError> {
        Ok(Self { align: checked_align(align)?.max(DEFAULT_ALIGN), ..self })
    }

    /// The same request for `size` bytes. A size of zero is served as one.
    #[inline]
    pub const fn with_size(self, size: usize) -> Self {
        Self { size: Self::bytes(size).size, ..self }
    }

    /// The same request, for memory that must read zero or need not.
    #[inline]
    pub const fn with_zeroed(self, zeroed: bool) -> Self {
        Self { zeroed, ..self }
    }

    /// The same request, made by an interpreter for itself and not for an array. A budget serves it a little longer: the
    /// interpreter needs memory to report that the budget is used up.
    #[inline]
    pub const fn of_interpreter(self) -> Self {
        Self { of_interpreter: true, ..self }
    }

    /// Whether an interpreter asks for itself.
    pub const fn is_of_interpreter(self) -> bool {
        self.of_interpreter
    }

    /// The size in bytes, at least one.
    #[inline]
    pub const fn size(self) -> usize {
        self.size
    }

    /// The alignment in bytes, a power of two from [`DEFAULT_ALIGN`] to [`MAX_ALIGN`](crate::layout::MAX_ALIGN).
    #[inline]
    pub const fn align(self) -> usize {
        self.align
    }

    /// Whether every byte must read zero.
    #[inline]
    pub const fn is_zeroed(self) -> bool {
        self.zeroed
    }

    /// Whether `address` has the requested alignment.
    #[inline]
    pub fn suits(self, address: NonNull<u8>) -> bool {
        address.addr().get() & (self.align - 1) == 0
    }

    /// Rejects a request that no machine can serve.
    ///
    /// # Errors
    /// [`Limit::Size`] if the size and the alignment together exceed [`MAX_SIZE`].
    #[inline]
    pub const fn check(self) -> Result<(), AllocError> {
        if self.size > MAX_SIZE - self.align { Err(AllocError::new(self.size, Limit::Size)) } else { Ok(()) }
    }
}

/// A block of memory that an allocator handed out.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// The address of its first byte.
    pub address: NonNull<u8>,
    /// The usable size in bytes, at least the requested size.
    pub size: usize,
    /// Whether every requested byte is known to be zero. `false` does not mean that one is not.
    pub zeroed: bool,
}

/// A memory allocator.
///
/// # Safety
/// An implementation keeps the laws: a block has at least the requested size and alignment and overlaps no other live
/// block; a zeroed request reads zero; a block stays valid until it is deallocated, whatever else happens; any thread may
/// deallocate it; deallocation never fails and never panics.
pub unsafe trait Allocator: Any + Send + Sync {
    /// Describes this allocator: its name, its options, and its upstream.
    fn describe(&self) -> Description;

    /// The expression that creates this allocator, including defaults. It is for display; no decision may depend on it.
    fn expression(&self) -> String {
        self.describe().to_string()
    }

    /// Allocates a block.
    ///
    /// # Errors
    /// The requested size and the limit that was exceeded, after idle memory was returned and the request tried again.
    fn allocate(&self, request: Request) -> Result<Block, AllocError>;

    /// Deallocates a block.
    ///
    /// # Safety
    /// `address` is a live block of this allocator, and is not used any more.
    unsafe fn deallocate(&self, address: NonNull<u8>);

    /// The usable size of the block at `address` in bytes.
    ///
    /// # Safety
    /// `address` is a live block of this allocator.
    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize;

    /// Changes a block's size and alignment. The content is kept up to the smaller size; by default it moves.
    ///
    /// # Errors
    /// As for [`Allocator::allocate`]; the block then stays as it was.
    ///
    /// # Safety
    /// `address` is a live block of this allocator; after success the old address is not used any more.
    unsafe fn reallocate(&self, address: NonNull<u8>, request: Request) -> Result<Block, AllocError> {
        // SAFETY: `address` is live (caller), so its usable bytes may be copied into a block that overlaps no live one; it
        // is deallocated only after the copy (law 8: nothing dangles).
        unsafe {
            let old = self.usable_size(address);
            let block = self.allocate(request.with_zeroed(false))?;
            block.address.copy_from_nonoverlapping(address, old.min(request.size()));
            self.deallocate(address);
            Ok(Block { zeroed: false, ..block })
        }
    }

    /// Returns idle memory to the operating system now. Returns the number of bytes.
    fn trim(&self) -> usize {
        self.upstream().map_or(0, |upstream| upstream.trim())
    }

    /// The statistics of this allocator; zero for what it does not count.
    fn stats(&self) -> Stats {
        self.upstream().map_or_else(Stats::default, |upstream| upstream.stats())
    }

    /// The upstream, if this is an adaptor. By default an adaptor passes the queries below on to it.
    fn upstream(&self) -> Option<&Arc<dyn Allocator>> {
        None
    }

    /// The list of its live blocks, if it keeps one: nobody else could deallocate them.
    ///
    /// Adaptors keep one if their blocks lie in the upstream's memory, which the address map would name as the owner.
    fn list(&self) -> Option<&dyn BlockList> {
        None
    }

    /// Whether its memory may be part of a block of any other allocator: lent storage, or what a program's functions return.
    fn is_lent(&self) -> bool {
        false
    }

    /// Whether the background purger's thread must not call it: because a deallocation may run foreign code, which may wait for
    /// other threads, or because it uses thread-local data: glibc allocates these at a thread's first use, and ends the process if
    /// there is no memory.
    fn calls_out(&self) -> bool {
        self.upstream().is_some_and(|upstream| upstream.calls_out())
    }

    /// The size in bytes below which requests are better served by the program's own allocator.
    fn small_limit(&self) -> usize {
        self.upstream().map_or(0, |upstream| upstream.small_limit())
    }
}

/// The live blocks of an allocator.
pub trait BlockList {
    /// Whether one begins at `address`.
    fn contains(&self, address: NonNull<u8>) -> bool;
    /// Whether there are none.
    fn is_empty(&self) -> bool;
}

/// The allocator as a `T`, if it is one itself.
pub fn downcast<T: Any>(allocator: &Arc<dyn Allocator>) -> Option<&T> {
    let any: &dyn Any = allocator.as_ref();
    any.downcast_ref()
}

/// The outermost `T` in the stack that begins with `allocator`.
pub fn find<T: Any>(allocator: &Arc<dyn Allocator>) -> Option<&T> {
    downcast(allocator).or_else(|| allocator.upstream().and_then(find))
}
