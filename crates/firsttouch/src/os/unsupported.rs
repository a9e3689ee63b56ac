//! A platform that is not supported yet: every call fails, and callers fall back to other allocators.

use super::types::{Errno, Fault, Mapping, MemoryBound, Mode, Nodes, PageRegion, Processors, Usage};
use crate::error::Limit;
use std::ffi::{CStr, c_void};
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// The platform is not supported.
pub const BACKEND: bool = false;

/// Defines functions that always fail.
macro_rules! unsupported {
    ($($name:ident($($type:ty),*) -> $output:ty;)*) => { $(
        /// Fails.
        ///
        /// # Errors
        /// Always [`Errno::UNSUPPORTED`].
        pub fn $name($(_: $type),*) -> Result<$output, Errno> {
            Err(Errno::UNSUPPORTED)
        }
    )* };
}

unsupported! {
    reserve(usize, usize) -> ();
    commit(usize, usize) -> usize;
    map_aligned(usize, usize) -> usize;
    map_anywhere(usize) -> usize;
    advise_huge(usize, usize) -> ();
    resident_pages(usize, usize) -> usize;
    watch_faults(fn(&Fault)) -> ();
    spawn(extern "C" fn(*mut c_void) -> *mut c_void, &'static AtomicU32) -> Thread;
    map_huge(usize, usize) -> usize;
    populate(usize, usize, bool) -> ();
    collapse(usize, usize) -> ();
    lock(usize, usize) -> ();
    bind(usize, usize, Mode, &Nodes, bool) -> ();
    thread_policy() -> ThreadPolicy;
    allowed_nodes() -> Nodes;
    move_pages(&[usize], Option<&[i32]>, &mut [i32]) -> ();
    thread_processors() -> Processors;
    explicit_huge_pages() -> Vec<usize>;
    run_on_processors(&Processors) -> ();
    nodes_of(&[usize], &mut [i32]) -> ();
    in_memory(usize, &mut [u8]) -> ();
    mappings(&Range<usize>, bool) -> Vec<Mapping>;
    memory_file(&str, usize, Option<usize>) -> File;
    open_memory_file(u32, i32, bool) -> File;
    file_name(u32, i32) -> String;
    map_file(&File, usize, usize, bool) -> usize;
    write_file_at(&File, &[u8], usize) -> ();
    read_file_at(&File, &mut [u8], usize) -> ();
    file_size(&File) -> usize;
    file_identity(&File) -> (u64, u64);
}

/// Defines functions that know nothing.
macro_rules! not_known {
    ($($name:ident($($type:ty),*) -> $output:ty = $answer:expr;)*) => { $(
        /// Not known.
        pub fn $name($(_: $type),*) -> $output {
            $answer
        }
    )* };
}

not_known! {
    huge_page_size() -> Option<usize> = None;
    address_space_limit() -> Option<usize> = None;
    data_limit() -> Option<usize> = None;
    file_limit() -> Option<usize> = None;
    mappings_are_short() -> bool = false;
    mapping_limit() -> Option<usize> = None;
    memory_total() -> usize = usize::MAX;
    resident() -> usize = 0;
    is_shared(usize) -> bool = false;
    free_memory_of(usize) -> Option<(usize, usize)> = None;
    free_huge_pages(usize, Option<usize>) -> Option<usize> = None;
    transparent_huge_pages() -> bool = false;
    lock_limit() -> Option<usize> = None;
    locks_memory() -> Option<bool> = None;
    may_ask_for_cache(&str, u64) -> bool = false;
    file_number(&File) -> i32 = -1;
    process_exists(u32) -> bool = false;
    transparent_huge_pages_shared() -> bool = false;
    only_node() -> Option<usize> = None;
    headroom() -> usize = usize::MAX;
}

/// A thread that [`help`] never starts.
pub struct Helper;

macro_rules! unsupported_unsafe {
    ($($name:ident($($type:ty),*) -> $output:ty;)*) => { $(
        /// Fails.
        ///
        /// # Safety
        /// No requirements.
        pub unsafe fn $name($(_: $type),*) -> Result<$output, Errno> {
            Err(Errno::UNSUPPORTED)
        }
    )* };
}

unsupported_unsafe! {
    help(extern "C" fn(*mut c_void) -> *mut c_void, *mut c_void) -> Helper;
    unmap(usize, usize) -> ();
    decommit(usize, usize) -> ();
    discard(usize, usize) -> ();
    map_anew(usize, usize) -> ();
    remap(usize, usize, usize) -> ();
    protect(usize, usize, bool) -> ();
}

/// Counts nothing.
pub fn usage() -> Usage {
    Usage::default()
}

/// Knows nothing.
pub fn resident_and_peak() -> Option<(usize, usize)> {
    None
}

/// Does nothing.
pub fn ask_nothing() {}

/// Does nothing.
pub fn split_huge(_address: usize, _size: usize) {}

/// Does nothing.
pub fn unadvise_huge(_address: usize, _size: usize) {}

/// Does nothing.
pub fn write_in_handler(_file: i32, _bytes: &[u8]) {}

/// Returns the most common page size.
pub fn page_size() -> usize {
    4096
}

/// Returns 1.
pub fn processors() -> usize {
    1
}

/// Returns 0.
pub fn current_processor() -> usize {
    0
}

/// Yields.
pub fn wait(_word: &AtomicU32, _value: u32, _timeout: Option<Duration>) {
    std::thread::yield_now();
}

/// Does nothing.
pub fn wake(_word: &AtomicU32) {}

/// Never constructed.
pub struct Thread(());

/// Does nothing.
pub fn name_thread(_name: &CStr, _task: &AtomicU32) {}

impl Thread {
    /// Does nothing.
    pub fn join(self) {}
}

/// Does nothing.
pub fn at_fork(_prepare: extern "C" fn(), _parent: extern "C" fn(), _child: extern "C" fn()) {}

/// Returns 0.
pub fn seed() -> usize {
    0
}

/// As without a limit.
pub fn address_space_left() -> usize {
    usize::MAX
}

/// Returns [`Limit::Unsupported`].
pub fn why_refused(_size: usize, _error: Errno) -> Limit {
    Limit::Unsupported
}

/// None are known.
pub fn memory_bounds() -> [Option<MemoryBound>; 4] {
    [None; 4]
}

/// Never constructed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadPolicy(());

impl ThreadPolicy {
    /// Returns `true`.
    pub fn leads_to(&self, _near: &Nodes) -> bool {
        true
    }

    /// Not known.
    pub fn bounds(&self) -> Option<Nodes> {
        None
    }
}

/// Returns 0.
pub fn current_node() -> usize {
    0
}

/// No requirements.
pub fn stop_reading_files() {}

/// Never constructed.
pub fn system_file(_path: &str) -> Option<String> {
    None
}

/// Never constructed.
pub struct PageTable(());

impl PageTable {
    /// Fails.
    pub fn open() -> Result<Self, Errno> {
        Err(Errno::UNSUPPORTED)
    }

    /// Fails.
    pub fn scan(&self, _start: usize, _end: usize, _found: &mut [PageRegion]) -> Result<(usize, usize), Errno> {
        Err(Errno::UNSUPPORTED)
    }

    /// Fails.
    pub fn entries(&self, _start: usize, _seen: &mut [u64]) -> Result<(), Errno> {
        Err(Errno::UNSUPPORTED)
    }
}

/// Does nothing.
///
/// # Safety
/// No requirements.
pub unsafe fn release(_address: usize) {}

/// No requirements.
pub fn random() -> [u8; 16] {
    [0; 16]
}
