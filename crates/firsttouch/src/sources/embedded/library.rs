//! The interface of an allocator that can be embedded.

use super::Embedded;
use crate::allocator::Request;
use crate::os::Errno;
use crate::sync::first::First;
use std::sync::Arc;

/// An allocator to embed. Its functions may be called from any thread.
///
/// # Safety
/// Implementations keep the laws of [`Allocator`], on the memory of the space that they were started with.
pub unsafe trait Library: Sized + Send + Sync + 'static {
    /// The name of the function that creates it.
    const NAME: &'static str;
    /// The granularity of committing and decommitting memory, in bytes.
    const UNIT: usize;
    /// The largest alignment that it serves.
    const MAX_ALIGN: usize;

    /// The process's only instance.
    fn one() -> &'static First<Arc<Embedded<Self>>>;
    /// Initializes it; from now on all its memory comes from `source`.
    ///
    /// # Errors
    /// If there is no memory for its metadata.
    fn start(source: &'static Embedded<Self>) -> Result<(), Errno>;
    /// Gives it address space for `bytes` more; returns whether there was any.
    fn grow(source: &'static Embedded<Self>, bytes: usize) -> bool;
    /// Allocates a block; null on failure.
    fn allocate(request: Request) -> *mut u8;
    /// Frees a block.
    ///
    /// # Safety
    /// As for [`Allocator::deallocate`].
    unsafe fn free(block: *mut u8);
    /// Returns the usable size of a block.
    ///
    /// # Safety
    /// As for [`Allocator::usable_size`].
    unsafe fn usable(block: *mut u8) -> usize;
    /// Resizes a block in place; returns whether that was possible.
    ///
    /// # Safety
    /// As for [`Allocator::resize_in_place`].
    unsafe fn resize(block: *mut u8, size: usize) -> bool;
    /// Decommits all memory that it does not use.
    fn purge();
}
