//! The trace file format, version 1: its events, and how they are encoded.
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
//! | end mark | the tag [`END`], the number of lost events, metadata of the end |
//!
//! The low three bits of a tag are the kind. If [`TIMED`] is set, the microseconds since the previous timestamp come
//! first. Then:
//!
//! | kind | operands |
//! |---|---|
//! | [`ALLOCATE`] | size; if that is at least [`LARGE_SIZE`], the site |
//! | [`FREE`] | block |
//! | [`RESIZE`] | block, size; if that is at least [`LARGE_SIZE`], the site |
//! | [`SITE`] | line, file, library |
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
/// A source line is introduced.
pub const SITE: u8 = 4;
/// The end mark.
pub const END: u8 = 5;
/// The bits of a tag that hold the kind.
pub const KIND_MASK: u8 = 7;
/// Flag: a timestamp delta follows.
pub const TIMED: u8 = 8;
/// Flag: zeroed memory was requested.
pub const ZEROED: u8 = 16;
/// Flag: the block is for no array of NumPy's.
pub const BUFFER: u8 = 32;

/// Blocks of at least this many bytes are recorded with their source line and exact time.
pub const LARGE_SIZE: u64 = 64 << 10;

/// The maximum length of a varint in bytes.
pub const MAX_VARINT_LEN: usize = 10;
/// The maximum length of a string in bytes.
pub const MAX_STRING_LEN: usize = 1 << 16;
/// The maximum number of metadata pairs at either end.
pub const MAX_METADATA: u64 = 4096;

/// Assigns block numbers; writer and reader run it in step, so that the file need not store them.
#[derive(Default)]
pub(crate) struct BlockIds {
    free: Vec<u32>,
    next: u32,
}

impl BlockIds {
    /// Returns a number that no live block has.
    pub(crate) fn acquire(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Releases the number of a freed block; returns `false` if out of memory.
    pub(crate) fn release(&mut self, id: u32) -> bool {
        push(&mut self.free, id)
    }
}

/// Appends an item; returns `false` if out of memory, which must not end the recorded program.
pub(crate) fn push<T>(items: &mut Vec<T>, item: T) -> bool {
    let room = items.try_reserve(1).is_ok();
    if room {
        items.push(item);
    }
    room
}

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
        /// Whether it is for an array of NumPy's, and not for a buffer of Python's, as `bytes` are.
        is_array: bool,
        /// The requesting source line; 0 for blocks smaller than [`LARGE_SIZE`], and for requests of no Python code.
        site: u32,
    },
    /// A block was freed.
    Free {
        /// Block number.
        block: u32,
    },
    /// A block was resized, and possibly moved.
    Resize {
        /// Block number.
        block: u32,
        /// New size in bytes.
        size: u64,
        /// The line that resized it, as far as that is known: so lines are known of blocks that become large.
        site: u32,
    },
    /// A source line is introduced. Sites are numbered from 1 in the order of these events; 0 means no site.
    Site {
        /// Path of the file.
        file: String,
        /// Line number.
        line: u32,
        /// The line of a library through which it made its first request; empty where it made it itself.
        library: String,
    },
}

/// An event with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// Microseconds since the start of the trace. Exact for large blocks; small blocks carry the previous timestamp.
    pub micros: u64,
}

/// Name-value pairs that describe the traced run.
pub type Metadata = Vec<(String, String)>;

/// Encodes a trace into a buffer.
#[derive(Default)]
pub struct Encoder {
    micros: u64,
    events: u64,
}

impl Encoder {
    /// Writes the header.
    pub fn begin(out: &mut Vec<u8>, metadata: &[(String, String)]) -> Self {
        out.extend(MAGIC);
        number(out, VERSION);
        pairs(out, metadata);
        Self::default()
    }

    /// Returns the number of events written.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Writes an event.
    pub fn event(&mut self, out: &mut Vec<u8>, event: &Event) {
        self.events += 1;
        let elapsed = event.micros.saturating_sub(self.micros);
        self.micros += elapsed;
        let mut tag = |kind: u8, flags: u8| {
            out.extend([kind | flags | if elapsed > 0 { TIMED } else { 0 }]);
            if elapsed > 0 {
                number(out, elapsed);
            }
        };
        match event.kind {
            EventKind::Allocate { size, zeroed, is_array, site, .. } => {
                tag(ALLOCATE, if zeroed { ZEROED } else { 0 } | if is_array { 0 } else { BUFFER });
                size_and_site(out, size, site);
            }
            EventKind::Free { block } => {
                tag(FREE, 0);
                number(out, block.into());
            }
            EventKind::Resize { block, size, site } => {
                tag(RESIZE, 0);
                number(out, block.into());
                size_and_site(out, size, site);
            }
            EventKind::Site { ref file, line, ref library } => {
                tag(SITE, 0);
                number(out, line.into());
                string(out, file.as_bytes());
                string(out, library.as_bytes());
            }
        }
    }

    /// Writes the end mark.
    pub fn end(&self, out: &mut Vec<u8>, lost: u64, metadata: &[(String, String)]) {
        out.extend([END]);
        number(out, lost);
        pairs(out, metadata);
    }
}

fn size_and_site(out: &mut Vec<u8>, size: u64, site: u32) {
    number(out, size);
    if size >= LARGE_SIZE {
        number(out, site.into());
    }
}

/// Appends a varint.
fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a string, truncated to [`MAX_STRING_LEN`] bytes.
fn string(out: &mut Vec<u8>, text: &[u8]) {
    let text = &text[..text.len().min(MAX_STRING_LEN)];
    number(out, text.len() as u64);
    out.extend(text);
}

fn pairs(out: &mut Vec<u8>, metadata: &[(String, String)]) {
    number(out, metadata.len() as u64);
    for (name, value) in metadata {
        string(out, name.as_bytes());
        string(out, value.as_bytes());
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
