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
pub struct Runs(Vec<Run>);

impl Runs {
    /// Adds a run behind all others.
    #[inline]
    pub fn push(&mut self, range: Range<usize>, state: State, source: Source) {
        if range.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(last) if last.range.end == range.start && last.state == state && last.source == source => {
                last.range.end = range.end;
            }
            _ => self.0.push(Run { range, state, source }),
        }
    }

    /// The runs.
    pub fn iter(&self) -> std::slice::Iter<'_, Run> {
        self.0.iter()
    }

    /// Bytes of the pages in each state.
    pub fn bytes(&self) -> [usize; State::COUNT] {
        let mut bytes = [0; State::COUNT];
        for run in &self.0 {
            bytes[run.state as usize] += run.range.len();
        }
        bytes
    }

    /// Whether any page is in a state.
    pub fn has(&self, state: State) -> bool {
        self.0.iter().any(|run| run.state == state)
    }

    /// Lets `say` replace every run in one of `states` by runs that cover the same pages.
    pub fn refine(&mut self, states: &[State], mut say: impl FnMut(&Run, &mut Self)) {
        if !self.0.iter().any(|run| states.contains(&run.state)) {
            return;
        }
        let mut refined = Self(Vec::with_capacity(self.0.len()));
        for run in std::mem::take(&mut self.0) {
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
        let mut found = Self::default();
        for run in self.0 {
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
