//! The platform of programs that Miri interprets: memory of Rust's own allocator, so that Miri sees how it is used. All
//! else is unsupported.

use super::types::Errno;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

pub use super::unsupported::*;

/// There is memory.
pub const BACKEND: bool = true;

const PAGE: usize = 4096;

/// The mappings by their addresses.
static MAPPINGS: Mutex<BTreeMap<usize, Layout>> = Mutex::new(BTreeMap::new());

/// Maps `size` bytes.
///
/// # Errors
/// For no bytes.
pub fn map_anywhere(size: usize) -> Result<usize, Errno> {
    let layout = Layout::from_size_align(size, PAGE).map_err(|_| Errno::NO_MEMORY)?;
    if size == 0 {
        return Err(Errno::NO_MEMORY);
    }
    // SAFETY: the size is not zero.
    let address = unsafe { alloc_zeroed(layout) } as usize;
    MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner).insert(address, layout);
    Ok(address)
}

/// Unmaps a whole mapping. A part of one stays, but must not be read any more.
///
/// # Errors
/// None.
///
/// # Safety
/// The range was mapped by [`map_anywhere`], and is not used afterwards.
pub unsafe fn unmap(address: usize, size: usize) -> Result<(), Errno> {
    let mut mappings = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&layout) = mappings.get(&address).filter(|layout| layout.size() == size) {
        mappings.remove(&address);
        // SAFETY: `map_anywhere` allocated it with this layout.
        unsafe { dealloc(address as *mut u8, layout) };
        return Ok(());
    }
    // SAFETY: the range lies in a mapping, and nobody uses it. What is copied there was never initialized.
    unsafe {
        let layout = Layout::from_size_align_unchecked(size, PAGE);
        let uninitialized = alloc(layout);
        (address as *mut u8).copy_from_nonoverlapping(uninitialized, size);
        dealloc(uninitialized, layout);
    }
    Ok(())
}

/// Discards the content of a range, which reads zero afterwards.
///
/// # Errors
/// None.
///
/// # Safety
/// The range is mapped, and nobody needs its content.
pub unsafe fn discard(address: usize, size: usize) -> Result<(), Errno> {
    // SAFETY: the range is mapped, and its owner has it discarded.
    unsafe { (address as *mut u8).write_bytes(0, size) };
    Ok(())
}
