//! The progress of one block: what to look at, and what to populate.

use std::ops::Range;
use std::time::Duration;

/// How far the helper runs ahead of the program at most.
const AHEAD: usize = 8 << 20;
/// One granule in so many is left to the program, as both of them clear memory about equally fast. It is a marker, too: once
/// it is written, the program has come that far.
const SHARE: usize = 3;
/// Of granules that fill a cache (L2) the helper clears every second, one at a time: the program gets what was cleared last
/// from that cache, a third sooner than from memory.
const CACHE: usize = 2 << 20;
/// Larger pages are left to the program: they would be too much for one that stops.
const LARGEST: usize = 16 << 20;
/// Granules that have to be written in a row before anything is populated.
const IN_A_ROW: usize = 2;
/// A smaller block of such granules, a program writes as fast alone, out of its own caches,
const LARGE: usize = 192 << 20;
/// unless one takes the system this long, for want of contiguous memory or of the host's.
const SLOW: Duration = Duration::from_millis(1);
/// The fewest of them that are worth a try.
const FEWEST: usize = 16;

/// What can be seen of pages.
pub(super) trait Pages {
    /// Whether the page at an address exists, be it the shared zero page.
    fn exists(&self, address: usize) -> bool;
    /// Whether all pages of a range were written, by this process. A program that only reads, or goes through a column of
    /// wide rows, leaves most of a block without memory, and so does the helper.
    fn are_written(&self, range: Range<usize>) -> bool;
}

/// What comes next for a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Populate this range.
    Populate(Range<usize>),
    /// Look again later.
    Wait,
    /// Nothing is left to do.
    Done,
}

/// Where a walk through the block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Start,
    End,
}

/// How far program and helper have come, in granules counted from where the walk began.
#[derive(Clone, Copy, Debug)]
struct Walk {
    from: From,
    /// The first granule left to the program that it was not seen to have written.
    marker: usize,
    /// The granule that the helper comes to next.
    next: usize,
}

impl Walk {
    /// A walk whose program works on the granule before `at`, or has come to it.
    fn begin(from: From, at: usize) -> Self {
        Self { from, marker: at, next: at + 1 }
    }
}

/// A fresh block, in granules: huge pages, or as many base pages as are worth a look.
#[derive(Clone, Debug)]
pub(super) struct Block {
    range: Range<usize>,
    granule: usize,
    walk: Option<Walk>,
}

impl Block {
    /// The whole granules in `range`.
    pub(super) fn new(range: Range<usize>, granule: usize) -> Self {
        let range = range.start.next_multiple_of(granule)..range.end / granule * granule;
        Self { range, granule, walk: None }
    }

    /// Whether a program may gain by help.
    pub(super) fn is_worth_a_try(&self) -> bool {
        let fewest = if self.granule < CACHE { IN_A_ROW + 2 } else { FEWEST };
        self.granules() >= fewest && self.granule <= LARGEST
    }

    /// Whether it gains, where a granule took so long to populate.
    pub(super) fn is_worth_more(&self, took: Duration) -> bool {
        self.granule < CACHE || self.range.len() >= LARGE || took >= SLOW
    }

    /// What comes next.
    pub(super) fn turn(&mut self, pages: &dyn Pages) -> Turn {
        let (ahead, share) = if self.granule < CACHE { (AHEAD / self.granule, SHARE) } else { (1, 2) };
        let Some(mut walk) = self.walk.or_else(|| self.begin(pages)) else { return Turn::Wait };
        let turn = loop {
            while walk.marker < walk.next && self.is_written(walk.from, walk.marker..walk.marker + 1, pages) {
                walk.marker += share;
            }
            if walk.next >= self.granules() {
                break Turn::Done;
            }
            if walk.next > walk.marker + ahead {
                break Turn::Wait;
            }
            if walk.next % share == walk.marker % share {
                walk.next += 1;
            } else if pages.exists(self.first_page(walk.from, walk.next)) {
                walk = Walk::begin(walk.from, walk.next + 1); // the program has overtaken the helper
            } else {
                walk.next += 1;
                break Turn::Populate(self.addresses(walk.from, walk.next - 1..walk.next));
            }
        };
        self.walk = Some(walk);
        turn
    }

    /// The start of a walk, once a program walks in from either end.
    fn begin(&self, pages: &dyn Pages) -> Option<Walk> {
        let arrived = |from| self.is_written(from, 0..IN_A_ROW, pages);
        let from = [From::Start, From::End].into_iter().find(|&from| arrived(from))?;
        Some(Walk::begin(from, IN_A_ROW))
    }

    fn is_written(&self, from: From, granules: Range<usize>, pages: &dyn Pages) -> bool {
        granules.end <= self.granules() && pages.are_written(self.addresses(from, granules))
    }

    fn granules(&self) -> usize {
        self.range.len() / self.granule
    }

    /// The page of a granule that a walk touches first.
    fn first_page(&self, from: From, at: usize) -> usize {
        match from {
            From::Start => self.range.start + at * self.granule,
            From::End => self.range.end - at * self.granule - 1,
        }
    }

    fn addresses(&self, from: From, granules: Range<usize>) -> Range<usize> {
        let (near, far) = (granules.start * self.granule, granules.end * self.granule);
        match from {
            From::Start => self.range.start + near..self.range.start + far,
            From::End => self.range.end - far..self.range.end - near,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const HUGE: usize = 2 << 20;
    const BASE: usize = 1 << 20;
    const BLOCK: Range<usize> = 64 * HUGE..576 * HUGE; // 1 GiB

    /// A program that touches granules, and what is populated for it.
    struct Run {
        block: Block,
        granule: usize,
        real: BTreeSet<usize>,
        populated: usize,
    }

    struct Seen<'a> {
        granule: usize,
        real: &'a BTreeSet<usize>,
    }

    impl Pages for Seen<'_> {
        fn exists(&self, address: usize) -> bool {
            self.real.contains(&(address / self.granule))
        }

        fn are_written(&self, range: Range<usize>) -> bool {
            range.step_by(self.granule).all(|address| self.exists(address))
        }
    }

    impl Run {
        fn new(granule: usize) -> Self {
            Self { block: Block::new(BLOCK, granule), granule, real: BTreeSet::new(), populated: 0 }
        }

        fn touch(&mut self, address: usize) {
            self.real.insert(address / self.granule);
        }

        /// Takes turns until there is nothing to do; whether the block is done.
        fn settle(&mut self) -> bool {
            for _ in 0..100_000 {
                match self.block.turn(&Seen { granule: self.granule, real: &self.real }) {
                    Turn::Populate(range) => {
                        assert!(BLOCK.start <= range.start && range.end <= BLOCK.end);
                        assert_eq!(range.len(), self.granule);
                        for address in range.step_by(self.granule) {
                            assert!(self.real.insert(address / self.granule), "populated twice");
                            self.populated += self.granule;
                        }
                    }
                    Turn::Wait => return false,
                    Turn::Done => return true,
                }
            }
            panic!("it never settles");
        }
    }

    #[test]
    fn nothing_is_populated_before_the_program_walks() {
        for granule in [HUGE, BASE] {
            let mut run = Run::new(granule);
            assert!(!run.settle());
            for address in [BLOCK.start, BLOCK.end - 1, BLOCK.start + 7 * granule, BLOCK.start + 100 * granule] {
                run.touch(address);
                assert!(!run.settle());
            }
            assert_eq!(run.populated, 0);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "minutes, without unsafe code")]
    fn a_walk_from_either_end_is_met_ahead() {
        for granule in [HUGE, BASE, 8 << 20] {
            for backward in [false, true] {
                let mut run = Run::new(granule);
                let (mut faults, mut done) = (0, false);
                let granules = BLOCK.len() / granule;
                for at in 0..granules {
                    let address = if backward { BLOCK.end - 1 - at * granule } else { BLOCK.start + at * granule };
                    faults += usize::from(!run.real.contains(&(address / granule)));
                    run.touch(address);
                    done = done || run.settle();
                }
                assert!(done);
                assert!(faults <= granules / 2 + 3, "{faults} faults, granule {granule}, backward {backward}");
            }
        }
    }

    #[test]
    fn a_program_that_stops_has_cost_at_most_what_lies_ahead() {
        for granule in [HUGE, BASE] {
            let mut run = Run::new(granule);
            for at in 0..40 {
                run.touch(BLOCK.start + at * granule);
                run.settle();
                assert!(run.real.len() <= at + 2 + AHEAD / granule, "{} granules", run.real.len());
            }
            assert!(run.populated > 0);
        }
    }

    #[test]
    fn a_program_that_overtakes_is_met_again() {
        let mut run = Run::new(HUGE);
        for part in 0..4 {
            for at in part * 100..(part + 1) * 100 {
                run.touch(BLOCK.start + at * HUGE);
            }
            let before = run.populated;
            run.settle();
            assert!(run.populated > before, "part {part}");
        }
    }

    #[test]
    fn a_program_that_is_faster_is_left_alone() {
        let mut run = Run::new(HUGE);
        for at in 0..BLOCK.len() / HUGE {
            run.touch(BLOCK.start + at * HUGE);
        }
        while !run.settle() {}
        assert_eq!(run.populated, 0);
    }

    #[test]
    fn help_is_for_blocks_that_gain_by_it() {
        for (granule, least) in [(BASE, 4 * BASE), (HUGE, FEWEST * HUGE), (LARGEST, FEWEST * LARGEST)] {
            assert!(Block::new(0..least, granule).is_worth_a_try());
            assert!(!Block::new(granule / 2..least, granule).is_worth_a_try(), "granules that are not whole count");
        }
        assert!(!Block::new(BLOCK, 2 * LARGEST).is_worth_a_try());

        let fast = SLOW / 2;
        assert!(Block::new(0..8 * BASE, BASE).is_worth_more(fast));
        assert!(Block::new(0..LARGE, HUGE).is_worth_more(fast));
        assert!(!Block::new(0..LARGE - HUGE, HUGE).is_worth_more(fast));
        assert!(Block::new(0..LARGE - HUGE, HUGE).is_worth_more(SLOW));
    }
}
