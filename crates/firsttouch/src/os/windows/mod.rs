//! Windows: memory is reserved and committed, and idle memory is decommitted, since discarded pages need not read zero.
//!
//! What Windows has no counterpart for is [unsupported](super::unsupported): transparent huge pages, moving pages, policies
//! of pages and threads, forks, the page cache of files.

mod c_library;
mod machine;
mod memory;
mod residency;

pub use super::unsupported::*;
pub use c_library::{c_calloc, c_free, c_malloc, c_usable};
pub use machine::{
    Thread, current_processor, headroom, library_of, memory_bounds, memory_total, page_size, processors, resident,
    resident_and_peak, spawn, symbol, usage, wait, wake, watch_faults, why_refused, write_in_handler,
};
pub use memory::{
    commit, current_node, decommit, file_number, find_memory_file, lock, map_aligned, map_file, map_huge, memory_file,
    node, protect, random, release, reserve, unmap,
};
pub use residency::{PageTable, is_shared, nodes_of, populate, resident_pages};
