//! The trace file format, version 1.
//!
//! Numbers are LEB128 varints: seven bits a byte, least significant first, with the top bit set on all but the last
//! byte. Strings are a length followed by UTF-8.
//!
//! | part | contents |
//! |---|---|
//! | magic | [`MAGIC`]; a text-mode transfer would corrupt it |
//! | version | [`VERSION`] |
//! | metadata | number of pairs; the name and the value of each |
//! | events | a tag byte and the operands of its kind, repeated up to the end mark |
//! | end mark | the tag [`END`], the seven [`Totals`](crate::Totals), metadata of the end |
//! | checksum | FNV-1a of all preceding bytes, 8 bytes, little-endian |
//!
//! The low three bits of a tag are the kind. If [`TIMED`] is set, the microseconds since the previous timestamp come
//! first. Then:
//!
//! | kind | operands |
//! |---|---|
//! | [`ALLOCATE`] | size; if [`DETAILED`], the site, the resident pages and the offset in the huge page |
//! | [`FREE`] | block; if [`DETAILED`], the resident pages |
//! | [`RESIZE`] | block, size |
//! | [`THREAD`] | the thread that all following events belong to |
//! | [`SITE`] | line, file |
//! | [`LIVE`] | block, resident pages |
//!
//! Block numbers are implicit in allocations: a block takes the most recently freed number, or else the next unused one,
//! which keeps numbers small. `BlockIds` implements that rule for both sides.

use std::fmt;

/// The first bytes of a trace.
pub const MAGIC: [u8; 8] = *b"\x89FTRC\r\n\x1a";
/// The version written, and the only version read.
pub const VERSION: u64 = 1;

/// A block is allocated.
pub const ALLOCATE: u8 = 1;
/// A block is freed.
pub const FREE: u8 = 2;
/// A block is resized.
pub const RESIZE: u8 = 3;
/// The following events belong to another thread.
pub const THREAD: u8 = 4;
/// A source line is introduced.
pub const SITE: u8 = 5;
/// A block is live at the end.
pub const LIVE: u8 = 6;
/// The end mark.
pub const END: u8 = 7;
/// The bits of a tag that hold the kind.
pub const KIND_MASK: u8 = 7;
/// Flag: a timestamp delta follows.
pub const TIMED: u8 = 8;
/// Flag: zeroed memory was requested.
pub const ZEROED: u8 = 16;
/// Flag: page counts follow.
pub const DETAILED: u8 = 32;

/// The maximum length of a varint in bytes.
pub const MAX_VARINT_LEN: usize = 10;
/// The maximum length of a string in bytes.
pub const MAX_STRING_LEN: usize = 1 << 16;
/// The maximum number of metadata pairs at either end.
pub const MAX_METADATA: u64 = 4096;

/// The FNV-1a offset basis.
pub(crate) const CHECKSUM_SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues an FNV-1a checksum (Fowler, Noll, Vo) over `bytes`.
pub(crate) fn checksum(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Encodes a varint into `out` and returns the bytes used.
pub(crate) fn varint(out: &mut [u8; MAX_VARINT_LEN], mut value: u64) -> &[u8] {
    let mut length = 0;
    while value >= 0x80 {
        out[length] = value as u8 | 0x80;
        value >>= 7;
        length += 1;
    }
    out[length] = value as u8;
    &out[..=length]
}

/// A stack of free block numbers.
pub(crate) trait IdStack {
    /// Pushes a number; returns `false` if out of memory.
    fn push(&mut self, id: u32) -> bool;
    /// Pops the number pushed last.
    fn pop(&mut self) -> Option<u32>;
}

impl IdStack for Vec<u32> {
    fn push(&mut self, id: u32) -> bool {
        Self::push(self, id);
        true
    }

    fn pop(&mut self) -> Option<u32> {
        Self::pop(self)
    }
}

/// Assigns block numbers; writer and reader run it in step, so that the file need not store them.
#[derive(Default)]
pub(crate) struct BlockIds<S> {
    free: S,
    next: u32,
}

impl<S: IdStack> BlockIds<S> {
    pub(crate) fn new(free: S) -> Self {
        Self { free, next: 0 }
    }

    /// Returns a number that no live block has.
    pub(crate) fn acquire(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Releases the number of a freed block; returns `false` if out of memory.
    pub(crate) fn release(&mut self, id: u32) -> bool {
        self.free.push(id)
    }
}

/// The error returned when a file cannot be read as a trace.
#[derive(Debug)]
pub enum TraceError {
    /// The file is empty.
    Empty,
    /// The file does not start with [`MAGIC`].
    NotATrace,
    /// The file has this unsupported version.
    Version(u64),
    /// The file ends, after this many events, before its end mark.
    Truncated(u64),
    /// The file is corrupt in the way described.
    Corrupt(&'static str),
    /// Reading the file failed.
    Io(std::io::Error),
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "the file is empty"),
            Self::NotATrace => write!(f, "the file is not a firsttouch trace"),
            Self::Version(found) => {
                write!(f, "the trace has format version {found}, but this firsttouch reads version {VERSION}")
            }
            Self::Truncated(events) => {
                write!(
                    f,
                    "the trace is cut off after {events} events: the program was killed, or the file is incomplete"
                )
            }
            Self::Corrupt(what) => write!(f, "the trace is corrupt: {what}"),
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
