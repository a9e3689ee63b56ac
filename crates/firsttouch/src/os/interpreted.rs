//! The platform of programs that Miri interprets: memory of Rust's own allocator, so that Miri sees how it is used. All
//! else is unsupported.

use super::types::Errno;
use std::alloc::{Layout, alloc_zeroed, dealloc};

pub use super::unsupported::*;

fn layout(size: usize) -> Result<Layout, Errno> {
    Layout::from_size_align(size, page_size()).ok().filter(|layout| layout.size() > 0).ok_or(Errno::NO_MEMORY)
}

pub fn map_anywhere(size: usize) -> Result<usize, Errno> {
    // SAFETY: the size is not zero.
    Ok(unsafe { alloc_zeroed(layout(size)?) } as usize)
}

/// A whole mapping.
pub unsafe fn unmap(address: usize, size: usize) -> Result<(), Errno> {
    // SAFETY: `map_anywhere` allocated it with this layout.
    unsafe { dealloc(address as *mut u8, layout(size)?) };
    Ok(())
}
