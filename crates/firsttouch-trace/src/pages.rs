//! Which pages of a large block are there: asked when it is given and when it goes, so that its faults are known.

use firsttouch::os;

/// From this many bytes on a block's pages, its line and its exact times are recorded.
pub const LARGE: usize = 64 << 10;

/// At most so many pages are asked for in one call, and so many calls made for one block.
const CALL: usize = 4096;
const CALLS: usize = 64;

/// First page and number of pages of a block.
pub(super) fn span(address: usize, size: usize) -> (usize, usize) {
    let page = os::page_size();
    let first = address / page;
    (first, (address + size.max(1)).div_ceil(page) - first)
}

/// Pages of a block that are there; of a very large one, what a sample says. `None` where the system does not tell.
pub fn large_pages(address: usize, size: usize) -> Option<u64> {
    let page = os::page_size();
    let (first, pages) = span(address, size);
    let calls = pages.div_ceil(CALL);
    let every = calls.div_ceil(CALLS).max(1);
    let (mut asked, mut there) = (0, 0);
    for call in (0..calls).step_by(every) {
        let count = CALL.min(pages - call * CALL);
        there += os::resident_pages((first + call * CALL) * page, count * page).ok()? as u64;
        asked += count as u64;
    }
    Some(if asked == pages as u64 { there } else { (there as f64 / asked as f64 * pages as f64) as u64 })
}

fn is_there(page: usize) -> bool {
    let size = os::page_size();
    os::resident_pages(page * size, size).unwrap_or(1) > 0
}

/// Pages of a new block that are there already. Its end is asked for; where that is missing its beginning, and where
/// they differ the border between them: memory was kept up to some address, or is fresh, and a call costs half a
/// microsecond.
pub(super) fn present(address: usize, size: usize) -> u64 {
    let (first, pages) = span(address, size);
    // The very first page and the last may hold other blocks, or the C library's notes.
    let (mut low, mut high) = (first + 1, first + pages - 2);
    if low >= high || is_there(high) {
        return pages as u64;
    }
    if !is_there(low) {
        return 0;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_there(middle) { low = middle } else { high = middle }
    }
    (high - first) as u64
}

/// Number of pages of a block.
pub(super) fn pages_of(address: usize, size: usize) -> u64 {
    span(address, size).1 as u64
}

/// Whether the page in the middle of a block is there: one that was written as a whole has it.
pub(super) fn middle_is_there(address: usize, size: usize) -> bool {
    is_there((address + size / 2) / os::page_size())
}

/// Where a block's first page lies in its huge page, in pages.
pub(super) fn place(address: usize) -> u64 {
    let page = os::page_size();
    let huge = os::huge_page_size().unwrap_or(page).max(page);
    (address / page % (huge / page)) as u64
}
