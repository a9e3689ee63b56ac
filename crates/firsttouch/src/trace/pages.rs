//! Which pages of a large block are there: asked when it is given and when it goes, so that its faults are known.

use crate::os;

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

/// Where a block's first page lies in its huge page, in pages.
pub(super) fn place(address: usize) -> u64 {
    let page = os::page_size();
    let huge = os::huge_page_size().unwrap_or(page).max(page);
    (address / page % (huge / page)) as u64
}
