//! Queries which pages of a large block are resident, when it is allocated and when it is freed: the difference is what
//! it cost in page faults.
//!
//! A query costs as much as a sum over a block of 64 KiB: if every block were queried twice, a loop over such arrays would
//! take 2.5 times as long. At allocation, a source line whose blocks of one size were fully resident many times in a row is
//! therefore sampled; a skipped block counts as fully resident. At the free, only blocks are queried that were not fully
//! resident at first, or were requested zeroed and may never have been written.

use firsttouch::os;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

/// Blocks of at least this many bytes are recorded with their source line, exact time and resident pages.
pub const LARGE_SIZE: usize = 64 << 10;

/// The maximum number of pages queried by one system call.
const PAGES_PER_CALL: usize = 4096;
/// The maximum number of system calls for one block; larger blocks are sampled.
const MAX_CALLS: usize = 64;

/// Blocks of at least this many bytes are always queried: next to their use, the query is cheap.
const ALWAYS_QUERIED_SIZE: usize = 1 << 20;
/// Sampling begins after this many fully resident blocks in a row.
const STREAK: u8 = 16;
/// While sampling, one block in this many is queried.
const INTERVAL: u8 = 8;

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
fn resident_pages_of_new(address: usize, size: usize) -> u64 {
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

/// Returns whether the page in the middle of a block is resident, as it is if the whole block was written.
fn is_middle_resident(address: usize, size: usize) -> bool {
    is_resident((address + size / 2) / os::page_size())
}

/// Returns the offset of the first page of a block within its huge page, in base pages.
pub(super) fn huge_page_offset(address: usize) -> u64 {
    let page = os::page_size();
    let huge = os::huge_page_size().unwrap_or(page).max(page);
    (address / page % (huge / page)) as u64
}

/// Streaks of fully resident blocks, hashed by source line and size. Updates by concurrent threads may be lost.
struct Sampler([AtomicU8; 256]);

impl Sampler {
    const fn new() -> Self {
        Self([const { AtomicU8::new(0) }; 256])
    }

    fn reset(&self) {
        self.0.iter().for_each(|streak| streak.store(0, Relaxed));
    }

    fn streak(&self, line: u32, size: usize) -> &AtomicU8 {
        &self.0[(line as usize * 31 + (size >> 12)) % self.0.len()]
    }

    /// Returns whether a new block may be taken for fully resident without a query.
    #[inline]
    fn skips(&self, line: u32, size: usize) -> bool {
        let (streak, last) = (self.streak(line, size), STREAK + INTERVAL - 1);
        let current = streak.load(Relaxed);
        if size >= ALWAYS_QUERIED_SIZE || current < STREAK {
            return false;
        }
        streak.store(if current < last { current + 1 } else { STREAK }, Relaxed);
        current < last
    }

    /// Records the result of a query.
    #[inline]
    fn on_query(&self, line: u32, size: usize, fully_resident: bool) {
        let streak = self.streak(line, size);
        let current = streak.load(Relaxed);
        if !fully_resident {
            streak.store(0, Relaxed);
        } else if current < STREAK {
            streak.store(current + 1, Relaxed);
        }
    }
}

static SAMPLER: Sampler = Sampler::new();

/// Blocks to be queried when they are freed, hashed by address: those that were not fully resident, and, with the lowest
/// bit set, those requested zeroed.
static QUERY_ON_FREE: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];

fn query_on_free(address: usize) -> &'static AtomicUsize {
    &QUERY_ON_FREE[(address >> 12 ^ address >> 24) % QUERY_ON_FREE.len()]
}

/// Forgets the lines of an earlier trace.
pub(super) fn reset() {
    SAMPLER.reset();
}

/// Returns the resident pages of a block that was just allocated by a source line.
pub(super) fn of_new(address: usize, size: usize, zeroed: bool, line: u32) -> u64 {
    let pages = page_count(address, size);
    if SAMPLER.skips(line, size) {
        query_on_free(address).store(0, Relaxed);
        return pages;
    }
    let present = resident_pages_of_new(address, size);
    SAMPLER.on_query(line, size, present == pages);
    let again = zeroed || present < pages;
    query_on_free(address).store(if again { address | usize::from(zeroed) } else { 0 }, Relaxed);
    present
}

/// Returns the resident pages of a block that is about to be freed, or `None` if it counts as fully written.
pub(super) fn at_free(address: usize, size: usize) -> Option<u64> {
    let noted = query_on_free(address).load(Relaxed);
    let query = noted == address | 1 || noted == address && !is_middle_resident(address, size);
    if query { resident_pages(address, size) } else { None }
}

#[cfg(test)]
mod tests {
    use super::{ALWAYS_QUERIED_SIZE, INTERVAL, STREAK, Sampler};

    /// Returns the indices of the blocks that are queried if all are fully resident.
    fn queried(sampler: &Sampler, size: usize, blocks: usize) -> Vec<usize> {
        let mut queried = Vec::new();
        for n in 0..blocks {
            if !sampler.skips(7, size) {
                sampler.on_query(7, size, true);
                queried.push(n);
            }
        }
        queried
    }

    #[test]
    fn resident_lines_are_sampled() {
        let (sampler, streak) = (Sampler::new(), usize::from(STREAK));
        let after: Vec<_> = queried(&sampler, 100_000, 200).split_off(streak);
        let interval = usize::from(INTERVAL);
        assert_eq!(after, (streak + interval - 1..200).step_by(interval).collect::<Vec<_>>());
        assert!(!sampler.skips(8, 100_000) && !sampler.skips(7, 200_000), "another line, another size");
        assert_eq!(queried(&sampler, ALWAYS_QUERIED_SIZE, 100).len(), 100, "large blocks always");
    }

    #[test]
    fn a_line_that_faults_is_queried_again() {
        let sampler = Sampler::new();
        assert!(queried(&sampler, 100_000, 100).len() < 40);
        while sampler.skips(7, 100_000) {}
        sampler.on_query(7, 100_000, false);
        assert_eq!(queried(&sampler, 100_000, usize::from(STREAK)).len(), usize::from(STREAK));
        let mut skipped = 0;
        for n in 0..1000 {
            if sampler.skips(7, 300_000) { skipped += 1 } else { sampler.on_query(7, 300_000, n % 10 > 0) }
        }
        assert_eq!(skipped, 0, "one in ten is not resident, so all are queried");
        sampler.reset();
        assert_eq!(queried(&sampler, 100_000, usize::from(STREAK)).len(), usize::from(STREAK));
    }
}
