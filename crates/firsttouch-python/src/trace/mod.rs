//! Traces of what NumPy asks for: a handler in front that tells the recorder, and the same requests played again.

mod front;
mod lines;
mod python;
mod target;

pub use front::{insert_behind, serving};
pub use python::register;
