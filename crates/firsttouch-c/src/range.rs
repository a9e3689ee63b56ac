//! Ranges of memory as C programs give them.

use crate::error::{Status, fail};
use firsttouch::os::{self, Errno};
use firsttouch::pages::migration::whole_pages;
use std::ffi::c_void;

/// Up to here programs have addresses wherever processors have 47 bits of them or more.
const EVERYWHERE: usize = (1 << 47) - (1 << 16);

/// Whether a page at an address could belong to a program: the kernel tells who asks for it.
fn is_address(page: usize) -> bool {
    match os::map_at(page, os::page_size()) {
        // SAFETY: the mapping was made here, and has no other user.
        Ok(page) => unsafe { os::unmap(page, os::page_size()) }.is_ok(),
        Err(error) => error == Errno::EXISTS,
    }
}

/// The whole pages that `size` bytes at `address` lie on: their address and bytes.
pub fn range(address: *const c_void, size: usize) -> Result<(usize, usize), Status> {
    let address = address.addr();
    if address.checked_add(size).is_none_or(|end| end > isize::MAX as usize) {
        return Err(fail(
            Status::Invalid,
            format_args!("{size} bytes at {address:#x} extend beyond the end of the address space"),
        ));
    }
    let (start, bytes) = whole_pages(address, size);
    if start + bytes > EVERYWHERE && !is_address(start + bytes - os::page_size()) {
        return Err(fail(
            Status::Invalid,
            format_args!("{size} bytes at {address:#x} lie where no program of this system has memory"),
        ));
    }
    Ok((start, bytes))
}
