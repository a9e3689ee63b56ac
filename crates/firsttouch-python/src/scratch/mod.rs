//! Scratch memory as Python knows it.
//!
//! A [`buffer`] grows, or stands on memory of another object's. A [`scope`] lets NumPy use one: by default that of the thread or
//! the task. What copies the result of a decorated function is in `buffers.py`.

pub mod buffer;
pub mod scope;
