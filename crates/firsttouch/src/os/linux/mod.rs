//! Linux. Mapping, unmapping and discarding go through the symbols of libc, so that the hooks of MPI libraries and
//! profilers see them.

mod faults;
pub mod kernel_texts;
mod limits;
mod memory_files;
mod placement;
mod process;
mod residency;
mod usage;

pub use super::unsupported::node; // the files of the kernel tell more
pub use faults::*;
pub use limits::*;
pub use memory_files::*;
pub use placement::*;
pub use process::*;
pub use residency::*;
pub use usage::*;

/// The platform is supported.
pub const BACKEND: bool = true;
