//! What a program asked for, written down and played again: the record of a run.
//!
//! A [`recorder`] is told of every request; a [`scribe`](recorder) thread of its own turns that into the compact form
//! of [`format`], which a [`Reader`] reads. A [`replay`] runs a trace against any memory; a [`summary`] says which lines
//! of a program asked for what, and what a pool would have spared.

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
