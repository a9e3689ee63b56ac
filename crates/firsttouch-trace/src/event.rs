//! The contents of a trace: events, and the totals and metadata around them.

/// What happened to a block. [`Site`](Self::Site) names a source line instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A block was allocated.
    Allocate {
        /// Block number, distinct from that of every other live block.
        block: u32,
        /// Requested size in bytes.
        size: u64,
        /// Whether zeroed memory was requested.
        zeroed: bool,
        /// Recorded for large blocks only.
        detail: Option<BlockDetail>,
    },
    /// A block was freed.
    Free {
        /// Block number.
        block: u32,
        /// Resident pages just before the free, if they were queried.
        resident: Option<u64>,
    },
    /// A block was resized, and possibly moved.
    Resize {
        /// Block number.
        block: u32,
        /// New size in bytes.
        size: u64,
    },
    /// A block is still live at the end of the trace.
    Live {
        /// Block number.
        block: u32,
        /// Resident pages.
        resident: u64,
    },
    /// A source line is introduced. Sites are numbered from 1 in the order of these events; 0 means no site.
    Site {
        /// Path of the file.
        file: String,
        /// Line number.
        line: u32,
    },
}

/// What is recorded of a large block when it is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDetail {
    /// The requesting source line, or 0.
    pub site: u32,
    /// Pages that were already resident.
    pub present: u64,
    /// Offset of the first page within its huge page, in base pages.
    pub huge_offset: u64,
}

/// An event with its thread and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// Thread number; threads are numbered from 0 in order of appearance.
    pub thread: u32,
    /// Microseconds since the start of the trace. Exact for large blocks; small blocks carry the previous timestamp.
    pub micros: u64,
}

/// Name-value pairs that describe the traced run.
pub type Metadata = Vec<(String, String)>;

/// The totals of a trace, as stored in its end mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of events, sites included.
    pub events: u64,
    /// Number of blocks allocated.
    pub allocations: u64,
    /// Bytes allocated, growth by resizing included.
    pub allocated_bytes: u64,
    /// Largest number of bytes that were live at once.
    pub peak_in_use: u64,
    /// Bytes live at the end.
    pub in_use: u64,
    /// Number of threads.
    pub threads: u64,
    /// Events lost because the writer could not keep up.
    pub lost: u64,
}

impl Totals {
    /// Returns the fields in the order in which they are stored.
    pub(crate) fn to_array(self) -> [u64; 7] {
        let Self { events, allocations, allocated_bytes, peak_in_use, in_use, threads, lost } = self;
        [events, allocations, allocated_bytes, peak_in_use, in_use, threads, lost]
    }

    /// Inverts [`to_array`](Self::to_array).
    pub(crate) fn from_array(fields: [u64; 7]) -> Self {
        let [events, allocations, allocated_bytes, peak_in_use, in_use, threads, lost] = fields;
        Self { events, allocations, allocated_bytes, peak_in_use, in_use, threads, lost }
    }

    /// Counts a new block.
    pub(crate) fn on_alloc(&mut self, size: u64) {
        self.allocations += 1;
        self.on_resize(0, size);
    }

    /// Counts a change of size; freeing is a change to zero.
    pub(crate) fn on_resize(&mut self, old: u64, new: u64) {
        self.allocated_bytes = self.allocated_bytes.saturating_add(new.saturating_sub(old));
        self.in_use = self.in_use.saturating_add(new).saturating_sub(old);
        self.peak_in_use = self.peak_in_use.max(self.in_use);
    }
}
