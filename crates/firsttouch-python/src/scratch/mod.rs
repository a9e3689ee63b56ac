//! Scratch memory as Python knows it.
//!
//! From the bottom: a [`buffer`] may stand on [`storage`] of another object's; [`default_buffers`] belong to a thread or a
//! task; a [`scope`] lets NumPy use a buffer. What copies the result of a decorated function is in `buffers.py`.

pub mod buffer;
pub mod default_buffers;
pub mod scope;
pub mod storage;
