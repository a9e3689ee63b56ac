//! The progress of one block: what to look at, and what to populate.

use std::ops::Range;

/// Bytes of the first window and of the largest.
const FIRST_WINDOW: usize = 16 << 20;
const LAST_WINDOW: usize = 128 << 20;
/// Bytes populated at once, so that whoever frees the block waits for no longer.
const STEP: usize = 2 << 20;
/// Granules that have to be written in a row before a window is populated.
const IN_A_ROW: usize = 2;
/// Granules of a block that is worth it.
const LEAST: usize = 2 * IN_A_ROW;

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

/// A window ahead of the program, in granules counted from where the walk began.
///
/// It is filled from its far end towards the program, so that the two share the work, each at its own speed, and meet
/// once: where both fault in the same page, one of them has cleared it in vain.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: From,
    start: usize,
    end: usize,
    /// What is left to fill ends here.
    left: usize,
}

impl Window {
    /// The granule that is left to the program: once it is written, the program has arrived in the window's middle.
    fn marker(&self) -> usize {
        self.start.midpoint(self.end)
    }
}

/// A fresh block, in granules: huge pages, or as many base pages as are worth a look.
#[derive(Clone, Debug)]
pub(super) struct Block {
    range: Range<usize>,
    granule: usize,
    window: Option<Window>,
}

impl Block {
    /// The whole granules in `range`.
    pub(super) fn new(range: Range<usize>, granule: usize) -> Self {
        let range = range.start.next_multiple_of(granule)..range.end / granule * granule;
        Self { range, granule, window: None }
    }

    /// What comes next.
    pub(super) fn turn(&mut self, pages: &dyn Pages) -> Turn {
        if self.granules() < LEAST {
            return Turn::Done;
        }
        let Some(mut window) = self.window.or_else(|| self.begin(pages)) else { return Turn::Wait };
        let marker = window.marker();
        if window.left <= marker && pages.are_written(self.addresses(window.from, marker..marker + 1)) {
            if window.end == self.granules() {
                return Turn::Done;
            }
            let size = (2 * (window.end - window.start)).min(self.granules_in(LAST_WINDOW));
            window = self.window(window.from, window.end, size);
        }
        self.fill(window, pages)
    }

    /// Fills a step of the window, from its end; nothing where it is full, or the program is met.
    fn fill(&mut self, mut window: Window, pages: &dyn Pages) -> Turn {
        let marker = window.marker();
        if window.left == marker + 1 {
            window.left = marker;
        }
        if window.left > window.start && pages.exists(self.first_page(window.from, window.left - 1)) {
            window.left = if window.left > marker { marker } else { window.start };
            self.window = Some(window);
            return self.turn(pages);
        }
        let floor = if window.left > marker { marker + 1 } else { window.start };
        let begin = window.left.saturating_sub((STEP / self.granule).max(1)).max(floor);
        let filled = begin..window.left;
        window.left = begin;
        self.window = Some(window);
        if filled.is_empty() { Turn::Wait } else { Turn::Populate(self.addresses(window.from, filled)) }
    }

    /// The first window, once a program walks in from either end.
    fn begin(&self, pages: &dyn Pages) -> Option<Window> {
        let arrived = |from| pages.are_written(self.addresses(from, 0..IN_A_ROW));
        let from = [From::Start, From::End].into_iter().find(|&from| arrived(from))?;
        Some(self.window(from, IN_A_ROW, self.granules_in(FIRST_WINDOW)))
    }

    fn window(&self, from: From, start: usize, size: usize) -> Window {
        let end = (start + size).min(self.granules());
        Window { from, start, end, left: end }
    }

    fn granules(&self) -> usize {
        self.range.len() / self.granule
    }

    /// The granules of a window of so many bytes: the marker and one to fill at least, as huge pages may be larger.
    fn granules_in(&self, window: usize) -> usize {
        (window / self.granule).max(2)
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
                        assert!(range.len() <= STEP.max(self.granule));
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
        for granule in [HUGE, 64 << 10] {
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
    fn a_walk_from_either_end_is_met_ahead() {
        for granule in [HUGE, 64 << 10, 32 << 20] {
            for backward in [false, true] {
                let mut run = Run::new(granule);
                let (mut faults, mut done) = (0, false);
                for at in 0..BLOCK.len() / granule {
                    let address = if backward { BLOCK.end - 1 - at * granule } else { BLOCK.start + at * granule };
                    faults += usize::from(!run.real.contains(&(address / granule)));
                    run.touch(address);
                    done = done || run.settle();
                }
                assert!(done);
                // The first granules, and a marker for each of some ten windows.
                assert!(faults < 16, "{faults} faults, granule {granule}, backward {backward}");
            }
        }
    }

    #[test]
    fn a_program_that_stops_has_cost_at_most_a_window() {
        let mut run = Run::new(HUGE);
        for at in 0..40 {
            run.touch(BLOCK.start + at * HUGE);
            run.settle();
        }
        assert!(run.real.len() < 40 + (64 << 20) / HUGE, "{} MiB", run.real.len() * 2);
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
    fn a_block_of_a_few_granules_is_done_at_once() {
        let seen = Seen { granule: HUGE, real: &BTreeSet::from([0, 1, 2]) };
        assert_eq!(Block::new(0..3 * HUGE, HUGE).turn(&seen), Turn::Done);
    }
}
