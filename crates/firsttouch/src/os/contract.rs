//! The contract: every function that a platform implements, with the answer where it does not.
//!
//! A platform is a module that has these functions, under these names and with these types, and two types: `Thread` and
//! `PageTable`. One that lacks some begins with `pub use super::unsupported::*`, which is made from this list; what it defines
//! itself takes precedence, and its comments say only what is particular to it. All other code calls the functions that are
//! made here; a test can make those fail that have a [`Call`] in brackets.
//!
//! The unsafe functions demand that the range was mapped by one of these, and that nobody uses it meanwhile; what is unmapped
//! or discarded is needed no more.

#![allow(clippy::missing_safety_doc)] // as above

use super::inject::{Call, injected};
use super::platform::{self, Thread};
use super::types::{Errno, Fault, MemoryBound, Mode, Nodes, Processors, Usage};
use crate::error::Limit;
use std::ffi::{CStr, c_void};
use std::fs::File;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Hands the list to a macro.
macro_rules! contract {
    ($take:ident) => {
        $take! {
            // ---- Mapping: private memory that reads zero and can be read and written ----

            /// Keeps address space free of other mappings.
            fn reserve(address: usize, size: usize) -> Result<(), Errno> = Err(Errno::UNSUPPORTED);
            /// Ends a reservation, in which nothing is committed any more.
            unsafe fn release(address: usize) -> () = ();
            /// Maps a part of a reservation: at exactly that address or not at all, and never over an existing mapping.
            [Map] fn commit(address: usize, size: usize) -> Result<usize, Errno> = Err(Errno::UNSUPPORTED);
            /// Unmaps a part of a reservation or of another mapping.
            [Unmap] unsafe fn decommit(address: usize, size: usize) -> Result<(), Errno> = Err(Errno::UNSUPPORTED);
            /// Maps memory at a multiple of `align`, at least that of a page. The node is for systems that [`bind`] nothing afterwards.
            [Map] fn map_aligned(size: usize, align: usize, node: Option<usize>) -> Result<usize, Errno> = Err(Errno::UNSUPPORTED);
            /// Unmaps the whole of what [`map_aligned`], [`map_huge`] or [`map_file`] mapped.
            [Unmap] unsafe fn unmap(address: usize, size: usize) -> Result<(), Errno> = Err(Errno::UNSUPPORTED);
            /// Gives the pages of a range back. It stays mapped, and reads zero afterwards.
            [Discard] unsafe fn discard(address: usize, size: usize) -> Result<(), Errno> = Err(Errno::UNSUPPORTED);
            /// Maps a range anew: it reads zero, and has no advice, protection or locks any more.
            [Map] unsafe fn map_anew(address: usize, size: usize) -> Result<(), Errno> = Err(Errno::UNSUPPORTED);
            /// Moves pages to a range where nothing is mapped. The range that they leave stays mapped and reads zero. If it is
            /// refused, all pages are where they were, and nothing is mapped in the other range.
            unsafe fn remap(from: usize, to: usize, size: usize) -> Result<(), Errno> = Err(Errno::UNSUPPORTED);
            /// Makes pages inaccessible, or accessible again with their content.
            [Protect] unsafe fn protect(address: usize, size: usize, accessible: bool) -> Result<(), Errno> = Err(Errno::UNSUPPORTED);
            /// Prepares parts of huge pages to be discarded: the kernel then splits these.
            fn split_huge(address: usize, size: usize) -> () = ();

            // ---- Placement: any of it may be refused, which callers report in their receipts ----

            /// Asks for huge pages. A refusal is harmless.
            [AdviseHuge] fn advise_huge(address: usize, size: usize) -> Result<(), Errno> = Err(Errno::UNSUPPORTED);
            /// Asks for no huge pages from now on.
            fn unadvise_huge(address: usize, size: usize) -> () = ();
            /// Maps explicit huge pages of `page` bytes; [`Errno::INVALID`] if the machine has none of this size.
            [Map] fn map_huge(size: usize, page: usize, node: Option<usize>) -> Result<usize, Errno> = Err(Errno::UNSUPPORTED);
            /// Makes the pages of a range present.
            fn populate(address: usize, size: usize, write: bool) -> Result<(), Errno> = Err(Errno::UNSUPPORTED);
            /// Locks a range into memory.
            fn lock(address: usize, size: usize) -> Result<(), Errno> = Err(Errno::UNSUPPORTED);
            /// Says from which nodes absent pages come.
            fn bind(address: usize, size: usize, mode: Mode, nodes: &Nodes) -> Result<(), Errno> = Err(Errno::UNSUPPORTED);
            /// Moves each page to its node or, without nodes, only asks. The status of a page is its node, or a negative error
            /// number.
            fn move_pages(pages: &[usize], nodes: Option<&[i32]>, status: &mut [i32]) -> Result<(), Errno>
                = Err(Errno::UNSUPPORTED);
            /// The nodes to which this thread's policy is restricted, if it is.
            fn policy_bounds() -> Option<Nodes> = None;
            /// The nodes that this thread may use.
            fn allowed_nodes() -> Result<Nodes, Errno> = Err(Errno::UNSUPPORTED);
            /// The node of the processor that runs this thread.
            fn current_node() -> usize = 0;
            /// The processors of a node and its free bytes, where no file tells.
            fn node(number: usize) -> Option<(Processors, usize)> = None;

            // ---- Residency: nothing here touches a page ----

            /// Estimates how many pages of a range, of at most 4096, are resident. Correctness must never depend on it.
            [Resident] fn resident_pages(address: usize, size: usize) -> Result<usize, Errno> = Err(Errno::UNSUPPORTED);
            /// The node of the page at each address. A negative error number stands for none: `NOTHING_THERE` where no page is
            /// present, `BAD_ADDRESS` for the zero page.
            [NodesOfPages] fn nodes_of(addresses: &[usize], nodes: &mut [i32]) -> Result<(), Errno> = Err(Errno::UNSUPPORTED);
            /// Whether forked children would write to the same memory; `false` where that is not known.
            fn is_shared(address: usize) -> bool = false;
            /// The bytes on huge pages, on base pages, and absent in the mappings that overlap a range. Explicit huge pages are
            /// all counted as there.
            fn sizes_of_pages(range: &Range<usize>) -> Option<[usize; 3]> = None;

            // ---- The machine, and the limits of the process and of its container ----

            /// The size of a base page.
            fn page_size() -> usize = 4096;
            /// The size of a transparent huge page.
            fn huge_page_size() -> Option<usize> = None;
            /// The same, unless transparent huge pages were switched off at the first call: memory that asks for them may get them.
            fn available_huge_page_size() -> Option<usize> = None;
            /// Whether this thread is the first of the process.
            fn is_main_thread() -> bool = false;
            /// The number of processors.
            fn processors() -> usize = 1;
            /// The processor that runs this thread.
            fn current_processor() -> usize = 0;
            /// The memory of the machine or of the container.
            fn memory_total() -> usize = usize::MAX;
            /// The memory that is available to the process.
            fn headroom() -> usize = usize::MAX;
            /// Everything that bounds the memory of the process, with its use.
            fn memory_bounds() -> [Option<MemoryBound>; 4] = [None; 4];
            /// The limit on the address space of the process.
            fn address_space_limit() -> Option<usize> = None;
            /// The limit on its mappings.
            fn mapping_limit() -> Option<usize> = None;
            /// The limit on its open files.
            fn file_limit() -> Option<usize> = None;
            /// Which limit explains that memory was refused; with [`Errno::AGAIN`], that it was not locked.
            fn why_refused(size: usize, error: Errno) -> Limit = Limit::Errno(error.0);
            /// The resident memory of the process.
            fn resident() -> usize = 0;
            /// The resident memory of the process, now and at its peak.
            fn resident_and_peak() -> Option<(usize, usize)> = None;
            /// What the process has used.
            fn usage() -> Usage = Usage::default();
            /// From now on no function of the contract opens a file.
            fn stop_reading_files() -> () = ();
            /// From now on no function of the contract makes a system call that `malloc` would not make.
            fn ask_nothing() -> () = ();
            /// Unpredictable bytes.
            fn random() -> Result<[u8; 16], Errno> = Err(Errno::UNSUPPORTED);

            // ---- Threads and forks ----

            /// Sleeps while a word has a value; it may return early.
            fn wait(word: &AtomicU32, value: u32, timeout: Option<Duration>) -> () = std::thread::yield_now();
            /// Wakes a thread that sleeps on a word by [`wait`].
            fn wake(word: &AtomicU32) -> () = ();
            /// Starts a thread that blocks all signals, and needs no allocator and no memory of the C library. It may write its
            /// number to `task` by [`name_thread`].
            [Spawn] unsafe fn spawn(body: extern "C" fn(*mut c_void) -> *mut c_void, argument: *mut c_void, task: &'static AtomicU32)
                -> Result<Thread, Errno> = Err(Errno::UNSUPPORTED);
            /// Names the calling thread.
            fn name_thread(name: &CStr, task: &AtomicU32) -> () = ();
            /// Registers what is called before every fork, and after it in the parent and in the child.
            fn at_fork(prepare: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) -> () = ();
            /// Whether the process's first thread has ended before others.
            fn first_thread_has_ended() -> bool = false;
            /// Whether a process has ended, waited for or not, and has no memory any more; `false` where that is not known.
            fn has_ended(process: u32) -> bool = false;
            /// Lets the kernel kill this process when the thread of `parent` ends that started it.
            fn end_with(parent: u32) -> () = ();
            /// Reports the first memory fault, in a signal handler, before it ends the process.
            fn watch_faults(report: fn(&Fault)) -> Result<(), Errno> = Err(Errno::UNSUPPORTED);
            /// Writes to a file, in the signal handler of [`watch_faults`].
            fn write_in_handler(file: i32, bytes: &[u8]) -> () = ();

            // ---- Memory files: memory that other processes can map ----

            /// Makes a memory file of `size` zero bytes, under a number beyond those of the standard streams.
            fn memory_file(name: &str, size: usize) -> Result<File, Errno> = Err(Errno::UNSUPPORTED);
            /// Opens the memory file of that name that a process has open under a number.
            fn find_memory_file(process: u32, number: i32, name: &str) -> Result<File, Errno> = Err(Errno::UNSUPPORTED);
            /// The number by which other processes find a file of this one.
            fn file_number(file: &File) -> i32 = -1;
            /// The function or variable of that name in the libraries that are loaded.
            fn symbol(name: &CStr) -> Option<NonNull<c_void>> = None;
            /// Where the library lies that holds a function; null where that is not known.
            fn library_of(function: *const c_void) -> *const c_void = std::ptr::null();
            /// Maps a part of a file, from a multiple of 64 KiB on, shared; [`Errno::INVALID`] if the file is smaller.
            fn map_file(file: &File, from: usize, size: usize, write: bool) -> Result<usize, Errno> = Err(Errno::UNSUPPORTED);
        }
    };
}

macro_rules! call {
    ($($(#[$doc:meta])* $([$call:ident])? $(unsafe $($never:block)?)? fn $name:ident($($argument:ident: $type:ty),*) -> $output:ty = $answer:expr;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            #[allow(unused_unsafe)]
            pub $(unsafe $($never)?)? fn $name($($argument: $type),*) -> $output {
                $(if injected(Call::$call) {
                    return Err(Errno::NO_MEMORY);
                })?
                // SAFETY: the caller's promise, as the platform demands the same.
                unsafe { platform::$name($($argument),*) }
            }
        )*
    };
}
contract!(call);

/// The answers of a platform that does not implement a function: callers do without, or report that nothing is known.
#[allow(dead_code)] // Linux implements nearly all
#[allow(unused_variables, clippy::missing_errors_doc, clippy::missing_safety_doc)] // made from a list
pub(super) mod unsupported {
    use super::*;

    macro_rules! define {
        ($($(#[$doc:meta])* $([$call:ident])? $(unsafe $($never:block)?)? fn $name:ident($($argument:ident: $type:ty),*) -> $output:ty = $answer:expr;)*) => {
            $($(#[$doc])* pub $(unsafe $($never)?)? fn $name($($argument: $type),*) -> $output { $answer })*
        };
    }
    contract!(define);

    /// A thread that [`spawn`] never starts.
    pub struct Thread(());
}
