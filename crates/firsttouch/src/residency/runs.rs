//! Runs of neighbouring pages of which the same is known.

use std::ops::Range;

/// What stands behind a page. The numbers are what Python sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// Not there yet: the first touch makes it.
    Absent = 0,
    /// The kernel's zero page, which all share: it was read before it was written.
    Zero = 1,
    /// Memory, mapped by base pages.
    Small = 2,
    /// Memory, mapped by a huge page.
    Huge = 3,
    /// In swap.
    Swapped = 4,
    /// In the page cache (a file, shared memory), but this process has not touched it.
    Cached = 5,
    /// Memory, mapped by a page whose size isn't known.
    Real = 6,
    /// Memory or the shared zero page: which of them isn't known.
    Present = 7,
    /// Nothing is known.
    Unknown = 8,
}

impl State {
    /// How many there are.
    pub const COUNT: usize = 9;

    /// Whether memory of its own stands behind the page.
    pub fn is_real(self) -> bool {
        matches!(self, Self::Small | Self::Huge | Self::Real)
    }
}

/// Who said so. The numbers are what Python sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Source {
    /// Nobody.
    Nobody = 0,
    /// The ioctl PAGEMAP_SCAN.
    Scan = 1,
    /// The entries of /proc/self/pagemap.
    Pagemap = 2,
    /// move_pages.
    MovePages = 3,
    /// mincore.
    Mincore = 4,
    /// /proc/self/smaps.
    Smaps = 5,
}

/// Neighbouring pages in the same state; bounds in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Whole pages.
    pub range: Range<usize>,
    /// Their state.
    pub state: State,
    /// Who said so.
    pub source: Source,
}

/// Runs in the order of their addresses; neighbours differ.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    list: Vec<Run>,
    /// There was no memory for some of them.
    cut: bool,
}

impl Runs {
    /// Adds a run behind all others.
    #[inline]
    pub fn push(&mut self, range: Range<usize>, state: State, source: Source) {
        if range.is_empty() {
            return;
        }
        if let Some(last) = self.list.last_mut()
            && (last.range.end, last.state, last.source) == (range.start, state, source)
        {
            last.range.end = range.end;
        } else if self.list.try_reserve(1).is_ok() {
            self.list.push(Run { range, state, source });
        } else {
            self.cut = true;
        }
    }

    /// Whether there was memory for all of them. What is not complete says nothing.
    pub fn is_complete(&self) -> bool {
        !self.cut
    }

    /// The runs.
    pub fn iter(&self) -> std::slice::Iter<'_, Run> {
        self.list.iter()
    }

    /// Bytes of the pages in each state.
    pub fn bytes(&self) -> [usize; State::COUNT] {
        let mut bytes = [0; State::COUNT];
        for run in &self.list {
            bytes[run.state as usize] += run.range.len();
        }
        bytes
    }

    /// Whether any page is in a state.
    pub fn has(&self, state: State) -> bool {
        self.list.iter().any(|run| run.state == state)
    }

    /// Lets `say` replace every run in one of `states` by runs that cover the same pages.
    pub fn refine(&mut self, states: &[State], mut say: impl FnMut(&Run, &mut Self)) {
        if !self.list.iter().any(|run| states.contains(&run.state)) {
            return;
        }
        let mut refined = Self { list: Vec::new(), cut: self.cut };
        for run in std::mem::take(&mut self.list) {
            if states.contains(&run.state) {
                say(&run, &mut refined);
            } else {
                refined.push(run.range, run.state, run.source);
            }
        }
        *self = refined;
    }

    /// What of the runs lies in `ranges`, which are in order and apart.
    pub fn inside(self, ranges: &[Range<usize>]) -> Self {
        let mut left = ranges.iter().peekable();
        let mut found = Self { list: Vec::new(), cut: self.cut };
        for run in self.list {
            while let Some(range) = left.peek() {
                let (start, end) = (run.range.start.max(range.start), run.range.end.min(range.end));
                found.push(start..end.max(start), run.state, run.source);
                if range.end > run.range.end {
                    break;
                }
                left.next();
            }
        }
        found
    }
}
