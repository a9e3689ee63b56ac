//! Where looks at pages can be spared: a line that was given blocks of one size which were all there, many times in a
//! row, is asked again only now and then. A look costs as much as a sum over such a block.
//!
//! What is spared counts as there. A line whose memory begins to fault is looked at again after a few blocks.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A block of at least this size is always looked at: next to its work that is nothing.
pub(super) const MIDDLING: usize = 1 << 20;
/// So many blocks in a row were all there.
const CALM: u8 = 16;
/// From then on one block of so many is looked at.
const EVERY: u8 = 8;

/// Counts for lines and sizes, as far as they have different places. Threads may lose each other's counts.
pub(super) struct Calm([AtomicU8; 256]);

impl Calm {
    pub const fn new() -> Self {
        Self([const { AtomicU8::new(0) }; 256])
    }

    /// Another trace begins, with lines of its own.
    pub fn forget(&self) {
        self.0.iter().for_each(|count| count.store(0, Relaxed));
    }

    fn count(&self, line: u32, size: usize) -> &AtomicU8 {
        &self.0[(line as usize * 31 + (size >> 12)) % self.0.len()]
    }

    /// Whether a block of that size, given to that line, need not be looked at.
    #[inline]
    pub fn spares(&self, line: u32, size: usize) -> bool {
        let (count, most) = (self.count(line, size), CALM + EVERY - 1);
        let so_far = count.load(Relaxed);
        if size >= MIDDLING || so_far < CALM {
            return false;
        }
        count.store(if so_far < most { so_far + 1 } else { CALM }, Relaxed);
        so_far < most
    }

    /// A block was looked at; whether all of it was there.
    #[inline]
    pub fn saw(&self, line: u32, size: usize, all: bool) {
        let count = self.count(line, size);
        let so_far = count.load(Relaxed);
        if !all {
            count.store(0, Relaxed);
        } else if so_far < CALM {
            count.store(so_far + 1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CALM, Calm, EVERY, MIDDLING};

    /// Which of so many blocks are looked at, where all are there.
    fn looks(calm: &Calm, size: usize, blocks: usize) -> Vec<usize> {
        let mut looks = Vec::new();
        for n in 0..blocks {
            if !calm.spares(7, size) {
                calm.saw(7, size, true);
                looks.push(n);
            }
        }
        looks
    }

    #[test]
    fn calm_lines_are_looked_at_now_and_then() {
        let (calm, row) = (Calm::new(), usize::from(CALM));
        let after: Vec<_> = looks(&calm, 100_000, 200).split_off(row);
        let every = usize::from(EVERY);
        assert_eq!(after, (row + every - 1..200).step_by(every).collect::<Vec<_>>());
        assert!(!calm.spares(8, 100_000) && !calm.spares(7, 200_000), "another line, another size");
        assert_eq!(looks(&calm, MIDDLING, 100).len(), 100, "large ones always");
    }

    #[test]
    fn a_line_that_faults_is_looked_at_again() {
        let calm = Calm::new();
        assert!(looks(&calm, 100_000, 100).len() < 40);
        while calm.spares(7, 100_000) {}
        calm.saw(7, 100_000, false);
        assert_eq!(looks(&calm, 100_000, usize::from(CALM)).len(), usize::from(CALM));
        let mut spared = 0;
        for n in 0..1000 {
            if calm.spares(7, 300_000) { spared += 1 } else { calm.saw(7, 300_000, n % 10 > 0) }
        }
        assert_eq!(spared, 0, "one of ten is missing: all are looked at");
        calm.forget();
        assert_eq!(looks(&calm, 100_000, usize::from(CALM)).len(), usize::from(CALM));
    }
}
