//! Windows: memory is reserved and committed, and idle memory is decommitted, since what is discarded need not read zero.
//!
//! What Windows has no counterpart for is [unsupported](super::unsupported): transparent huge pages, moving pages, policies
//! of pages and threads, forks, the page cache of files.

mod c_library;
mod faults;
mod machine;
mod memory;
mod nodes;
mod residency;
mod sections;
mod threads;

pub use super::unsupported::*;
pub use c_library::{c_aligned_free, c_aligned_malloc, c_aligned_usable, c_calloc, c_free, c_usable};
pub use faults::{watch_faults, write_in_handler};
pub use machine::{
    data_limit, headroom, memory_bounds, memory_total, resident, resident_and_peak, symbol, usage, why_refused,
};
pub use memory::{
    commit, decommit, explicit_huge_pages, lock, map_aligned, map_anywhere, map_huge, protect, release, reserve, unmap,
};
pub use nodes::{current_node, node, only_node, thread_processors};
pub use residency::{PageTable, is_shared, mappings, nodes_of, populate, resident_pages};
pub use sections::{file_number, find_memory_file, map_file, memory_file, random};
pub use threads::{
    Helper, Thread, current_processor, help, name_thread, page_size, processors, seed, spawn, wait, wake,
};

/// Windows is supported.
pub const BACKEND: bool = true;
