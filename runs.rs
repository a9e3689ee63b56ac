//! Runs of adjacent pages in the same state.

use std::ops::Range;

/// The state of a page. The discriminants are part of the Python interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PageState {
    /// Not present: the first touch faults it in.
    Absent = 0,
    /// The kernel's shared zero page: the page was read before it was written.
    Zero = 1,
    /// Memory, on a base page.
    Small = 2,
    /// Memory, on a huge page.
    Huge = 3,
    /// In swap.
    Swapped = 4,
    /// In the page cache (of a file, or shared memory), but not touched by this process.
    Cached = 5,
    /// Memory, on a page of unknown size.
    Real = 6,
    /// Memory or the shared zero page; it is not known which.
    Present = 7,
    /// Not known.
    Unknown = 8,
}

impl PageState {
    /// The number of states.
    pub const COUNT: usize = 9;

    /// Returns whether the page is backed by memory of its own.
    pub fn is_real(self) -> bool {
        matches!(self, Self::Small | Self::Huge | Self::Real)
    }
}

/// The source of a state. The discriminants are part of the Python interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum StateSource {
    /// No source.
    None = 0,
    /// The ioctl `PAGEMAP_SCAN`.
    Scan = 1,
    /// The entries of /proc/self/pagemap.
    Pagemap = 2,
    /// `move_pages`.
    MovePages = 3,
    /// `mincore`.
    Mincore = 4,
    /// /proc/self/smaps.
    Smaps = 5,
}

impl StateSource {
    /// Returns the name of the kernel interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "not known: no source is available here",
            Self::Scan => "PAGEMAP_SCAN",
            Self::Pagemap => "/proc/self/pagemap",
            Self::MovePages => "move_pages",
            Self::Mincore => "mincore",
            Self::Smaps => "/proc/self/smaps",
        }
    }
}

impl StateSource {
    /// Returns the name of the kernel interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "not known: no source is available here",
            Self::Scan => "PAGEMAP_SCAN",
            Self::Pagemap => "/proc/self/pagemap",
            Self::MovePages => "move_pages",
            Self::Mincore => "mincore",
            Self::Smaps => "/proc/self/smaps",
        }
    }
}

/// Adjacent pages in the same state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// The addresses of the pages.
    pub range: Range<usize>,
    /// Their state.
    pub state: PageState,
    /// The source of the state.
    pub source: StateSource,
}

/// Runs in the order of their addresses. Adjacent runs differ.
#[derive(Clone, Debug, Default)]
pub struct PageRuns {
    list: Vec<PageRun>,
    /// There was no memory for some of them.
    truncated: bool,
}

impl PageRuns {
    /// Appends a run.
    #[inline]
    pub fn push(&mut self, range: Range<usize>, state: PageState, source: StateSource) {
        if range.is_empty() {
            return;
        }
        if let Some(last) = self.list.last_mut()
            && (last.range.end, last.state, last.source) == (range.start, state, source)
        {
            last.range.end = range.end;
        } else if self.list.try_reserve(1).is_ok() {
            self.list.push(PageRun { range, state, source });
        } else {
            self.truncated = true;
        }
    }

    /// Returns whether there was memory for all runs. Otherwise they say nothing.
    pub fn is_complete(&self) -> bool {
        !self.truncated
    }

    /// Iterates over the runs.
    pub fn iter(&self) -> std::slice::Iter<'_, PageRun> {
        self.list.iter()
    }

    /// Returns the bytes of the pages in each state.
    pub fn bytes(&self) -> [usize; PageState::COUNT] {
        let mut bytes = [0; PageState::COUNT];
        for run in &self.list {
            bytes[run.state as usize] += run.range.len();
        }
        bytes
    }

    /// Returns whether any page is in a state.
    pub fn has(&self, state: PageState) -> bool {
        self.list.iter().any(|run| run.state == state)
    }

    /// Replaces every run in one of `states` by the runs that `split` pushes, which must cover the same pages.
    pub fn refine(&mut self, states: &[PageState], mut split: impl FnMut(&PageRun, &mut Self)) {
        if !self.list.iter().any(|run| states.contains(&run.state)) {
            return;
        }
        let mut refined = Self { list: Vec::new(), truncated: self.truncated };
        for run in std::mem::take(&mut self.list) {
            if states.contains(&run.state) {
                split(&run, &mut refined);
            } else {
                refined.push(run.range, run.state, run.source);
            }
        }
        *self = refined;
    }

    /// Returns the parts of the runs inside `ranges`, which are sorted and disjoint.
    pub fn inside(self, ranges: &[Range<usize>]) -> Self {
        let mut ranges = ranges.iter().peekable();
        let mut found = Self { list: Vec::new(), truncated: self.truncated };
        for run in self.list {
            while let Some(range) = ranges.peek() {
                let (start, end) = (run.range.start.max(range.start), run.range.end.min(range.end));
                found.push(start..end.max(start), run.state, run.source);
                if range.end > run.range.end {
                    break;
                }
                ranges.next();
            }
        }
        found
    }
}
