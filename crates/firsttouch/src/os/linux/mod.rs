//! Linux. Mapping, unmapping and discarding go through the symbols of libc, so that the hooks of MPI libraries and
//! profilers see them.

mod cancellation;
mod cgroups;
mod faults;
mod helpers;
mod kernel_files;
pub mod kernel_texts;
mod limits;
mod memory_files;
mod page_table;
mod placement;
mod process;
mod residency;

pub use faults::*;
pub use helpers::*;
pub use kernel_files::ask_nothing;
pub use limits::*;
pub use memory_files::*;
pub use page_table::*;
pub use placement::*;
pub use process::*;
pub use residency::*;

/// The platform is supported.
pub const BACKEND: bool = true;
