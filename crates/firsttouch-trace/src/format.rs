//! The trace file, version 1: eight bytes [`MAGIC`], the version as a number, and records.
//!
//! A [`Record`] is five numbers; all numbers are of 64 bits, little-endian. Only blocks of at least [`LARGE_SIZE`] are recorded,
//! and that others are resized.
//!
//! | number | contents |
//! |---|---|
//! | 1 | the [`Kind`] in its lowest byte; 256 if zeroed memory was requested; 512 for an array; from bit 32 on, the site |
//! | 2 | microseconds since the start of the trace |
//! | 3 | the address of the block |
//! | 4 | its size in bytes |
//! | 5 | the address that it had before it was resized |
//!
//! Sites are numbered from 1 in the order in which they are introduced; 0 is for requests of no Python code.

use std::fmt;

/// The first bytes of a trace; a text-mode transfer would corrupt them.
pub const MAGIC: [u8; 8] = *b"\x89FTRC\r\n\x1a";
/// The version written, and the only version read.
pub const VERSION: u64 = 1;

/// Blocks of at least this many bytes are recorded.
pub const LARGE_SIZE: u64 = 64 << 10;
/// The maximum length of a text in bytes.
pub const MAX_TEXT: usize = 1 << 16;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A block is allocated.
    Allocate = 1,
    /// A block is freed.
    Free,
    /// A block is about to be resized: another may get its address.
    Resize,
    /// The block that was at the fifth number was resized, and lies at the third one; zero there if that failed.
    Resized,
    /// A source line; its number in place of the address. So many bytes of text as the size says follow: the file, a zero, and
    /// the line of a library through which it made its first request, or nothing.
    Site,
    /// What describes the traced run. Text follows: a name, a zero, and a value.
    Fact,
    /// The end mark. In place of the size it has the number of events that were lost.
    End,
}

const KINDS: [Kind; 7] = [Kind::Allocate, Kind::Free, Kind::Resize, Kind::Resized, Kind::Site, Kind::Fact, Kind::End];
const ZEROED: u64 = 1 << 8;
const ARRAY: u64 = 1 << 9;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What happened.
    pub kind: Kind,
    /// Whether zeroed memory was requested.
    pub zeroed: bool,
    /// Whether it is for an array of NumPy's, and not for a buffer of Python's, as `bytes` are.
    pub is_array: bool,
    /// The requesting source line.
    pub site: u32,
    /// Microseconds since the start of the trace.
    pub micros: u64,
    /// The address of the block.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The address that it had.
    pub old: u64,
}

impl Record {
    /// The bytes of a record.
    pub const BYTES: usize = 40;

    /// A record of this kind.
    pub fn of(kind: Kind, address: u64, size: u64) -> Self {
        Self { kind, zeroed: false, is_array: false, site: 0, micros: 0, address, size, old: 0 }
    }

    /// Appends the record, and text.
    pub fn write(&self, out: &mut Vec<u8>, text: &[u8]) {
        let flags = if self.zeroed { ZEROED } else { 0 } | if self.is_array { ARRAY } else { 0 };
        let first = self.kind as u64 | flags | u64::from(self.site) << 32;
        for number in [first, self.micros, self.address, self.size, self.old] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(text);
    }

    /// The record that these bytes are, if it is one.
    pub fn read(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (numbers, _) = bytes.as_chunks();
        let [first, micros, address, size, old] = std::array::from_fn(|at| u64::from_le_bytes(numbers[at]));
        let kind = *KINDS.get(usize::from(first as u8).checked_sub(1)?)?;
        let (zeroed, is_array, site) = (first & ZEROED != 0, first & ARRAY != 0, (first >> 32) as u32);
        Some(Self { kind, zeroed, is_array, site, micros, address, size, old })
    }
}

/// Name-value pairs that describe the traced run.
pub type Metadata = Vec<(String, String)>;

/// Appends what describes the run.
pub fn write_facts(out: &mut Vec<u8>, facts: &[(String, String)]) {
    for (name, value) in facts {
        let text = format!("{name}\0{value}");
        let text = &text.as_bytes()[..text.len().min(MAX_TEXT)];
        Record::of(Kind::Fact, 0, text.len() as u64).write(out, text);
    }
}

/// The error returned when a file cannot be read as a trace.
#[derive(Debug)]
pub enum TraceError {
    /// The file does not start with [`MAGIC`].
    NotATrace,
    /// The file has this unsupported version.
    Version(u64),
    /// The file ends, after this many records, before its end mark.
    Truncated(u64),
    /// The file is corrupt.
    Corrupt,
    /// Reading the file failed.
    Io(std::io::Error),
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATrace => write!(f, "the file is not a firsttouch trace"),
            Self::Version(found) => {
                write!(f, "the trace has format version {found}, but this firsttouch reads version {VERSION}")
            }
            Self::Truncated(records) => write!(
                f,
                "the trace is cut off after {records} events: the program was killed, or the file is incomplete"
            ),
            Self::Corrupt => write!(f, "the trace is corrupt"),
            Self::Io(error) => write!(f, "cannot read the trace: {error}"),
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}
