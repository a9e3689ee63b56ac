#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! * [`recorder`] writes a trace of every request of the process, in the compact [`format`](mod@format) of an [`Encoder`].
//! * [`Reader`] decodes a trace [event](event::Event) by event.
//! * A [`Survey`] validates a trace, and collects what another pass has to know in advance.
//! * [`replay`] performs the requests of a trace on another allocator.
//! * [`summary`] attributes requests and page faults to the lines of the program.
//! * [`profile`] counts the allocations made while a region is open; it writes no trace.

#![allow(unsafe_code)] // Safety: a ring buffer between two threads, raw mappings, and blocks owned by a replay.

mod encoder;
pub mod event;
pub mod format;
mod pool_replay;
pub mod profile;
mod reader;
pub mod recorder;
pub mod replay;
pub mod summary;
mod survey;
#[cfg(test)]
mod tests;

pub use encoder::{Encoder, Sink};
pub use event::{BlockDetail, Event, EventKind, Metadata, Totals};
pub use format::TraceError;
pub use reader::Reader;
pub use survey::Survey;
