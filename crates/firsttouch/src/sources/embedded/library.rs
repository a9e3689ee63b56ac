//! What is asked of an allocator that is to be embedded.

use super::Embedded;
use crate::allocator::Request;
use crate::os::Errno;
use crate::sync::first::First;
use std::sync::Arc;

/// The allocator that is embedded. Its functions may be called from any thread.
///
/// # Safety
/// An implementation keeps the laws of [`Allocator`], on memory of the space that it was started with.
pub unsafe trait Library: Sized + Send + Sync + 'static {
    /// The function that makes it.
    const NAME: &'static str;
    /// Bytes that are opened and closed together.
    const UNIT: usize;
    /// The largest alignment that it serves on its memory.
    const MAX_ALIGN: usize;

    /// The one of the process.
    fn one() -> &'static First<Arc<Embedded<Self>>>;
    /// Prepares it: from now on all its memory comes from `source`.
    ///
    /// # Errors
    /// Where there is no memory for its books.
    fn start(source: &'static Embedded<Self>) -> Result<(), Errno>;
    /// Gives it room for `bytes` more; whether there was any.
    fn grow(source: &'static Embedded<Self>, bytes: usize) -> bool;
    /// A block, or null.
    fn allocate(request: Request) -> *mut u8;
    /// Takes a block back.
    ///
    /// # Safety
    /// As for [`Allocator::deallocate`].
    unsafe fn free(block: *mut u8);
    /// Bytes that may be used.
    ///
    /// # Safety
    /// As for [`Allocator::usable_size`].
    unsafe fn usable(block: *mut u8) -> usize;
    /// Changes a block's size where it stands; whether that could be.
    ///
    /// # Safety
    /// As for [`Allocator::resize_in_place`].
    unsafe fn resize(block: *mut u8, size: usize) -> bool;
    /// Closes all memory that it does not use.
    fn purge();
}
