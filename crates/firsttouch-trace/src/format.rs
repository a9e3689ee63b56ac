//! The file, version 1. Numbers are varints: seven bits a byte, the lowest first, the top bit on all but the last.
//!
//! | part | bytes |
//! |---|---|
//! | magic | [`MAGIC`], which a transfer as text would spoil |
//! | version | a varint, [`VERSION`] |
//! | facts of the start | their count; of each its name and its value, as length and UTF-8 |
//! | events | a tag, then what its kind says; until the end mark |
//! | end mark | the tag [`END`]; [`Totals`](super::Totals), each a varint; facts of the end, as those of the start |
//! | check | FNV-1a of all bytes before it, 8 bytes, the lowest first |
//!
//! A tag's low three bits are the kind. [`TIMED`]: microseconds since the last stamp follow. Then:
//!
//! | kind | follows |
//! |---|---|
//! | [`ALLOCATE`] | bytes; with [`DETAILED`] the site, pages that were there already, the first page's place in its huge page |
//! | [`FREE`] | the block; with [`DETAILED`] the pages that were there in the end, plus one |
//! | [`RESIZE`] | the block, bytes |
//! | [`THREAD`] | the thread that all that follows belongs to, from 0 on |
//! | [`SITE`] | line, file as length and UTF-8: a line of the program, numbered from 1 on as they come |
//! | [`SEEN`] | a living block, pages of it that are there: before the end mark |
//!
//! A block has no number in the file where it is allocated: it gets the number that became free last, or else the next
//! one, so that numbers stay small. Stamps are exact for large blocks; small ones carry the last that there was.

use std::fmt;

/// How a trace begins.
pub const MAGIC: [u8; 8] = *b"\x89FTRC\r\n\x1a";
/// The version that is written, and the only one that is read.
pub const VERSION: u64 = 1;

/// A block was given.
pub const ALLOCATE: u8 = 1;
/// A block was given back.
pub const FREE: u8 = 2;
/// A block has another size, here or elsewhere.
pub const RESIZE: u8 = 3;
/// Another thread goes on.
pub const THREAD: u8 = 4;
/// A line of the program is named.
pub const SITE: u8 = 5;
/// How much of a living block is there.
pub const SEEN: u8 = 6;
/// The end.
pub const END: u8 = 7;
/// The bits of a tag that are its kind.
pub const KIND: u8 = 7;
/// A stamp follows.
pub const TIMED: u8 = 8;
/// The block reads zero.
pub const ZEROED: u8 = 16;
/// Pages follow.
pub const DETAILED: u8 = 32;

/// The most bytes that a varint takes.
pub const LONGEST: usize = 10;
/// The most bytes of a text.
pub const TEXT: usize = 1 << 16;
/// The most facts at either end.
pub const FACTS: u64 = 4096;

/// Where the check begins.
pub(super) const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a (Fowler, Noll, Vo) over more bytes.
pub(super) fn hashed(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Writes a varint; its bytes.
pub(super) fn varint(out: &mut [u8; LONGEST], mut value: u64) -> &[u8] {
    let mut length = 0;
    while value >= 0x80 {
        out[length] = value as u8 | 0x80;
        value >>= 7;
        length += 1;
    }
    out[length] = value as u8;
    &out[..=length]
}

/// Why a file can't be read as a trace.
#[derive(Debug)]
pub enum TraceError {
    /// It has no bytes.
    Empty,
    /// It begins otherwise.
    NotATrace,
    /// It is of this version.
    Version(u64),
    /// It ends before its end mark; after so many events.
    CutOff(u64),
    /// What it says can't be, and what that is.
    Damaged(&'static str),
    /// The system failed to read it.
    Reading(std::io::Error),
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "it is empty"),
            Self::NotATrace => write!(f, "it is not a trace of firsttouch"),
            Self::Version(found) => {
                write!(f, "it is of version {found} of the format, and this firsttouch reads version {VERSION}")
            }
            Self::CutOff(events) => {
                write!(f, "it is cut off after {events} events: the program was killed, or the file is not whole")
            }
            Self::Damaged(what) => write!(f, "it is damaged: {what}"),
            Self::Reading(error) => write!(f, "it can't be read: {error}"),
        }
    }
}

impl std::error::Error for TraceError {}
