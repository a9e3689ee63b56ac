//! A foreign mapping.

#![allow(unsafe_code)] // Safety: mappings are made where nothing is and live until the process ends.

use std::ops::Range;
use std::ptr::with_exposed_provenance_mut;
use std::slice::from_raw_parts_mut;

/// Maps `size` bytes at `address` or, where that is zero, anywhere; never over something else.
pub fn foreign(address: usize, size: usize) -> Option<&'static mut [u8]> {
    let fixed = if address > 0 { libc::MAP_FIXED_NOREPLACE } else { 0 };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    // SAFETY: a new mapping replaces nothing; it has that size, reads zero and is nobody else's.
    unsafe {
        let hint = with_exposed_provenance_mut(address);
        let at = libc::mmap(hint, size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        (at != libc::MAP_FAILED).then(|| from_raw_parts_mut(at.cast(), size))
    }
}

/// Takes such a mapping away.
pub fn unmap(range: &'static mut [u8]) {
    // SAFETY: it was made by `foreign`, and the caller's is the only reference.
    assert_eq!(unsafe { libc::munmap(range.as_mut_ptr().cast(), range.len()) }, 0);
}

/// Bytes of a range that are mapped and inaccessible.
pub fn inaccessible(range: Range<usize>) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let of = |line: &str| {
        let (addresses, rest) = line.split_once(' ')?;
        let (from, to) = addresses.split_once('-')?;
        let (from, to) = (usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?);
        let overlap = to.min(range.end).saturating_sub(from.max(range.start));
        rest.starts_with("---p").then_some(overlap)
    };
    maps.lines().filter_map(of).sum()
}

/// Whether the mapping at `address` was advised huge.
pub fn is_advised_huge(address: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut here = false;
    for line in maps.lines() {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        if let Some((from, to)) = first.split_once('-') {
            let number = |text| usize::from_str_radix(text, 16).unwrap();
            here = (number(from)..number(to)).contains(&address);
        } else if here && first == "VmFlags:" {
            return rest.split_whitespace().any(|flag| flag == "hg");
        }
    }
    false
}
