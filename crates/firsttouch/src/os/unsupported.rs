//! What a platform answers that does not implement a function of the contract: callers fall back to other allocators, or
//! report that nothing is known.

#![allow(unused_variables, clippy::missing_errors_doc, clippy::missing_safety_doc)] // made from a list

use super::contract::contract;
use super::types::{Errno, Fault, Mapping, MemoryBound, Mode, Nodes, PageRegion, Processors, Usage};
use crate::error::Limit;
use std::ffi::{CStr, c_void};
use std::fs::File;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// The platform is not supported.
pub const BACKEND: bool = false;

macro_rules! define {
    ($($(#[$doc:meta])* $(unsafe $($never:block)?)? fn $name:ident($($argument:ident: $type:ty),*) -> $output:ty = $answer:expr;)*) => {
        $($(#[$doc])* pub $(unsafe $($never)?)? fn $name($($argument: $type),*) -> $output { $answer })*
    };
}
contract!(define);

/// A thread that [`spawn`] never starts.
pub struct Thread(());

impl Thread {
    /// Waits for its end.
    pub fn join(self) {}
}

/// A thread that [`help`] never starts.
pub struct Helper(());

/// The memory policy of a thread, which [`thread_policy`] never returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadPolicy(());

impl ThreadPolicy {
    /// The nodes that the policy is restricted to, if it is.
    pub fn bounds(&self) -> Option<Nodes> {
        None
    }
}

/// The page table of the process, which is never opened.
pub struct PageTable(());

impl PageTable {
    /// Fails.
    pub fn open() -> Result<Self, Errno> {
        Err(Errno::UNSUPPORTED)
    }

    /// Fails.
    pub fn of(process: u32) -> Result<Self, Errno> {
        Err(Errno::UNSUPPORTED)
    }

    /// Finds pages in memory or swap.
    pub fn scan(&self, start: usize, end: usize, found: &mut [PageRegion]) -> Result<(usize, usize), Errno> {
        Err(Errno::UNSUPPORTED)
    }

    /// Reads the entries of pages.
    pub fn entries(&self, start: usize, seen: &mut [u64]) -> Result<(), Errno> {
        Err(Errno::UNSUPPORTED)
    }
}
