//! The tools' half of the core: traces of what a program allocates, and profiles of regions of a run.
//!
//! A [`recorder`] is told of every request; its writer thread encodes them in the compact [`format`] that a [`Reader`]
//! decodes. A [`replay`] runs a trace against any memory, a [`summary`] attributes requests and page faults to the lines
//! of a program. A [`profile`] counts what is allocated while a region is open.

#![allow(unsafe_code)] // Safety: a ring of records between two threads, and blocks that a replay owns.

mod calm;
mod encoder;
pub mod event;
pub mod format;
mod grown;
mod ids;
mod known;
mod looks;
mod output;
mod pages;
mod pool_model;
pub mod profile;
mod reader;
pub mod recorder;
pub mod replay;
mod ring;
mod scribe;
pub mod summary;
#[cfg(test)]
mod tests;

pub use encoder::Encoder;
pub use event::{Detail, Event, Kind};
pub use format::TraceError;
pub use output::Facts;
pub use pages::LARGE;
pub use reader::{Reader, Totals};
