//! Linux. Mapping, unmapping and discarding go through the symbols of libc, so that the hooks of MPI libraries and
//! profilers see them.

pub mod kernel_texts;
mod limits;
mod memory;
mod residency;
mod threads;

pub use super::unsupported::node; // the files of the kernel tell more
pub use limits::*;
pub use memory::*;
pub use residency::*;
pub use threads::*;
