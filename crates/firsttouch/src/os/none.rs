//! A platform without a backend yet: every call says so, and the caller passes its requests on to somebody else.

use super::{Errno, Fault, MappingText, Mode, Nodes, PageRegion, Processors, SharedPart};
use crate::failure::Limit;
use std::ffi::{CStr, c_void};
use std::fs::File;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// There is none.
pub const BACKEND: bool = false;

/// Refuses.
pub fn map_at(_address: usize, _size: usize) -> Result<usize, Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn map_anywhere(_size: usize) -> Result<usize, Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
///
/// # Safety
/// None is needed.
pub unsafe fn unmap(_address: usize, _size: usize) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
///
/// # Safety
/// None is needed.
pub unsafe fn discard(_address: usize, _size: usize) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
///
/// # Safety
/// None is needed.
pub unsafe fn protect(_address: usize, _size: usize, _accessible: bool) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn advise_huge(_address: usize, _size: usize) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn resident_pages(_address: usize, _size: usize) -> Result<usize, Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn watch_faults(_note: fn(&Fault)) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Nothing is written.
pub fn write_at_start(_file: i32, _bytes: &[u8]) {}

/// The commonest.
pub fn page_size() -> usize {
    4096
}

/// One.
pub fn processors() -> usize {
    1
}

/// The first.
pub fn current_processor() -> usize {
    0
}

/// Lets others run.
pub fn wait(_word: &AtomicU32, _value: u32, _timeout: Option<Duration>) {
    std::thread::yield_now();
}

/// Nobody sleeps.
pub fn wake(_word: &AtomicU32) {}

/// Never made.
pub struct Thread(());

/// Refuses.
pub fn spawn(_body: extern "C" fn(*mut c_void) -> *mut c_void, _task: &'static AtomicU32) -> Result<Thread, Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Nothing to name.
pub fn name_thread(_name: &CStr, _task: &AtomicU32) {}

impl Thread {
    /// Nothing to wait for.
    pub fn join(self) {}
}

/// Nothing is kept, so a fork needs nothing.
pub fn at_fork(_prepare: extern "C" fn(), _parent: extern "C" fn(), _child: extern "C" fn()) {}

/// No randomness is needed.
pub fn seed() -> usize {
    0
}

/// None are known.
pub fn huge_page_size() -> Option<usize> {
    None
}

/// Not known.
pub fn address_space_limit() -> Option<usize> {
    None
}

/// Not known.
pub fn file_limit() -> Option<usize> {
    None
}

/// There is no backend.
pub fn mappings_are_short() -> bool {
    false
}

/// There is no backend.
pub fn why_refused(_size: usize, _error: Errno) -> Limit {
    Limit::Unsupported
}

/// Not known.
pub fn memory_total() -> usize {
    usize::MAX
}

/// Not known.
pub fn resident() -> usize {
    0
}

/// Not known.
pub fn headroom() -> usize {
    usize::MAX
}

/// Not known.
pub fn is_shared(_address: usize) -> bool {
    false
}

/// Not known.
pub fn shared_parts(_range: std::ops::Range<usize>) -> Vec<SharedPart> {
    Vec::new()
}

/// Refuses.
pub fn map_huge(_size: usize, _page: usize) -> Result<usize, Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn populate(_address: usize, _size: usize, _write: bool) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn collapse(_address: usize, _size: usize) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn lock(_address: usize, _size: usize) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn bind(_address: usize, _size: usize, _mode: Mode, _nodes: &Nodes, _move_pages: bool) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// There is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadPolicy(());

impl ThreadPolicy {
    /// It does not matter.
    pub fn leads_to(&self, _near: &Nodes) -> bool {
        true
    }

    /// None.
    pub fn bounds(&self) -> Option<Nodes> {
        None
    }

    /// None is known.
    pub fn name(&self) -> &'static str {
        "unknown"
    }
}

/// Refuses.
pub fn thread_policy() -> Result<ThreadPolicy, Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn prefer_node(_node: usize) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn restore_policy(_policy: &ThreadPolicy) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn allowed_nodes() -> Result<Nodes, Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn move_pages(_pages: &[usize], _nodes: Option<&[i32]>, _status: &mut [i32]) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// The first.
pub fn current_node() -> usize {
    0
}

/// Not known.
pub fn free_memory_of(_node: usize) -> Option<(usize, usize)> {
    None
}

/// Refuses.
pub fn thread_processors() -> Result<Processors, Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn run_on_processors(_set: &Processors) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// There is none.
pub fn system_file(_path: &str) -> Option<String> {
    None
}

/// None are known.
pub fn explicit_huge_pages() -> Vec<usize> {
    Vec::new()
}

/// None are known.
pub fn free_huge_pages(_page: usize, _node: Option<usize>) -> Option<usize> {
    None
}

/// None are known.
pub fn transparent_huge_pages() -> bool {
    false
}

/// Not known.
pub fn lock_limit() -> Option<usize> {
    None
}

/// Never made.
pub struct PageTable(());

impl PageTable {
    /// Refuses.
    pub fn open() -> Result<Self, Errno> {
        Err(Errno::UNSUPPORTED)
    }

    /// Refuses.
    pub fn scan(&self, _start: usize, _end: usize, _found: &mut [PageRegion]) -> Result<(usize, usize), Errno> {
        Err(Errno::UNSUPPORTED)
    }

    /// Refuses.
    pub fn entries(&self, _start: usize, _seen: &mut [u64]) -> Result<(), Errno> {
        Err(Errno::UNSUPPORTED)
    }
}

/// Refuses.
pub fn nodes_of(_addresses: &[usize], _nodes: &mut [i32]) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn in_memory(_start: usize, _there: &mut [u8]) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn mapping_lines(_text: MappingText, _visit: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Not known.
pub fn locks_memory() -> Option<bool> {
    None
}

/// Not known.
pub fn only_node() -> Option<usize> {
    None
}

/// Not known.
pub fn has_swap() -> Option<bool> {
    None
}

/// Not known.
pub fn may_ask_for_cache(_path: &str, _inode: u64) -> bool {
    false
}

/// Refuses.
pub fn memory_file(_name: &str, _size: usize, _huge: Option<usize>) -> Result<File, Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn open_memory_file(_process: u32, _number: i32, _write: bool) -> Result<File, Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn file_name(_process: u32, _number: i32) -> Result<String, Errno> {
    Err(Errno::UNSUPPORTED)
}

/// None.
pub fn file_number(_file: &File) -> i32 {
    -1
}

/// Not known.
pub fn process_exists(_process: u32) -> bool {
    false
}

/// Refuses.
pub fn map_file(_file: &File, _size: usize, _align: usize, _write: bool) -> Result<usize, Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn read_file_at(_file: &File, _bytes: &mut [u8], _offset: usize) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn file_size(_file: &File) -> Result<usize, Errno> {
    Err(Errno::UNSUPPORTED)
}

/// Refuses.
pub fn write_file_at(_file: &File, _bytes: &[u8], _offset: usize) -> Result<(), Errno> {
    Err(Errno::UNSUPPORTED)
}

/// None are known.
pub fn transparent_huge_pages_shared() -> bool {
    false
}

/// None is needed.
pub fn random() -> [u8; 16] {
    [0; 16]
}
