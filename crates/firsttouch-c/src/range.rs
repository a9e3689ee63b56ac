//! Ranges of memory as C programs give them.

use crate::error::{Status, fail};
use firsttouch::pages::migration::whole_pages;
use std::ffi::c_void;

/// The whole pages that `size` bytes at `address` lie on: their address and bytes.
pub fn range(address: *const c_void, size: usize) -> Result<(usize, usize), Status> {
    let address = address.addr();
    if address.checked_add(size).is_none_or(|end| end > isize::MAX as usize) {
        return Err(fail(
            Status::Invalid,
            format_args!("{size} bytes at {address:#x} extend beyond the end of the address space"),
        ));
    }
    Ok(whole_pages(address, size))
}
