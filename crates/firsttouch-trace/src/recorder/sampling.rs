//! Decides when the resident pages of a large block are queried, because a query costs as much as a sum over the block.
//!
//! At allocation, a source line whose blocks of one size were fully resident many times in a row is sampled; a skipped
//! block counts as fully resident. At the free, only blocks are queried that were not fully resident at first, or were
//! requested zeroed and may never have been written.

use super::residency::{is_middle_resident, page_count, resident_pages, resident_pages_of_new};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

/// Blocks of at least this many bytes are always queried: next to their use, the query is cheap.
const ALWAYS_QUERIED_SIZE: usize = 1 << 20;
/// Sampling begins after this many fully resident blocks in a row.
const STREAK: u8 = 16;
/// While sampling, one block in this many is queried.
const INTERVAL: u8 = 8;

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
pub(super) fn on_alloc(address: usize, size: usize, zeroed: bool, line: u32) -> u64 {
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
pub(super) fn on_free(address: usize, size: usize) -> Option<u64> {
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
