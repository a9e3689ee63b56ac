//! Queries which pages of a large block are resident, when it is allocated and when it is freed: the difference is what
//! it cost in page faults.

use firsttouch::os;

/// Blocks of at least this many bytes are recorded with their source line, exact time and resident pages.
pub const LARGE_SIZE: usize = 64 << 10;

/// The maximum number of pages queried by one system call.
const PAGES_PER_CALL: usize = 4096;
/// The maximum number of system calls for one block; larger blocks are sampled.
const MAX_CALLS: usize = 64;

/// Returns the number of the first page of a block, and the number of its pages.
fn page_range(address: usize, size: usize) -> (usize, usize) {
    let page = os::page_size();
    let first = address / page;
    (first, (address + size.max(1)).div_ceil(page) - first)
}

/// Returns the number of pages that a block lies on.
pub(super) fn page_count(address: usize, size: usize) -> u64 {
    page_range(address, size).1 as u64
}

/// Returns the number of resident pages of a block, extrapolated from a sample for very large ones, or `None` where the
/// system does not tell.
pub(super) fn resident_pages(address: usize, size: usize) -> Option<u64> {
    let page = os::page_size();
    let (first, pages) = page_range(address, size);
    let calls = pages.div_ceil(PAGES_PER_CALL);
    let step = calls.div_ceil(MAX_CALLS).max(1);
    let (mut queried, mut resident) = (0, 0);
    for call in (0..calls).step_by(step) {
        let count = PAGES_PER_CALL.min(pages - call * PAGES_PER_CALL);
        resident += os::resident_pages((first + call * PAGES_PER_CALL) * page, count * page).ok()? as u64;
        queried += count as u64;
    }
    if queried == pages as u64 {
        return Some(resident);
    }
    Some((resident as f64 / queried as f64 * pages as f64) as u64)
}

fn is_resident(page: usize) -> bool {
    let size = os::page_size();
    os::resident_pages(page * size, size).unwrap_or(1) > 0
}

/// Returns the number of pages of a new block that are already resident.
///
/// A call takes half a microsecond, so only the last page is queried, then the first; where they differ, a binary search
/// finds the border: either all memory below some address was kept, or none is.
pub(super) fn resident_pages_of_new(address: usize, size: usize) -> u64 {
    let (first, pages) = page_range(address, size);
    // The outermost pages may be shared with other blocks, or hold metadata of the C library.
    let (mut low, mut high) = (first + 1, first + pages - 2);
    if low >= high || is_resident(high) {
        return pages as u64;
    }
    if !is_resident(low) {
        return 0;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_resident(middle) { low = middle } else { high = middle }
    }
    (high - first) as u64
}

/// Returns the offset of the first page of a block within its huge page, in base pages.
pub(super) fn huge_page_offset(address: usize) -> u64 {
    let page = os::page_size();
    let huge = os::huge_page_size().unwrap_or(page).max(page);
    (address / page % (huge / page)) as u64
}
