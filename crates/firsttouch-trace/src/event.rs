//! What a trace tells, one after the other.

/// Something that happened to a block, or a line of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Block `block` was given.
    Allocate {
        /// Its number, which nobody living has.
        block: u32,
        /// Bytes.
        size: u64,
        /// Whether it was to read zero.
        zeroed: bool,
        /// What is known of a large block.
        detail: Option<Detail>,
    },
    /// It was given back.
    Free {
        /// Its number.
        block: u32,
        /// Pages of it that were there, where somebody looked.
        resident: Option<u64>,
    },
    /// It has another size from now on, and may have moved.
    Resize {
        /// Its number.
        block: u32,
        /// Bytes.
        size: u64,
    },
    /// It lives on at the end.
    Seen {
        /// Its number.
        block: u32,
        /// Pages of it that are there.
        resident: u64,
    },
    /// Lines are numbered from 1 on as they are named; zero is none.
    Site {
        /// Its file.
        file: String,
        /// Its number in the file.
        line: u32,
    },
}

/// What is known of a large block when it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The line that asked; zero is none.
    pub site: u32,
    /// Pages of it that were there already.
    pub present: u64,
    /// Its first page's place in its huge page, in pages.
    pub place: u64,
}

/// One event, with its thread and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: Kind,
    /// In which thread, from 0 on in the order in which they came.
    pub thread: u32,
    /// Microseconds since the start; of small blocks those of the last stamp.
    pub micros: u64,
}
