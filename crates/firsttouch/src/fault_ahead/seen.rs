//! What the system tells of pages, and how many to look at.

use super::block::Pages;
use crate::os::{self, PageTable, seen};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What is looked at on base pages: a look costs as much as clearing a few of them, and who clears pages holds the lock of
/// their page table, which has 2 MiB of them. Where the kernel makes huge pages of any memory, one of those: the rest of it
/// becomes real with the first byte.
static ON_BASE_PAGES: AtomicUsize = AtomicUsize::new(1 << 20);

/// Asks the system whether base pages are what they seem.
pub(super) fn prepare() {
    if os::system_file("/sys/kernel/mm/transparent_hugepage/enabled").is_some_and(|text| text.contains("[always]")) {
        ON_BASE_PAGES.store(os::huge_page_size().unwrap_or(2 << 20), Relaxed);
    }
}

/// The bytes that are looked at together, in a block of pages of `page` bytes.
pub(super) fn granule(page: usize) -> usize {
    page.max(ON_BASE_PAGES.load(Relaxed))
}

/// The pages of this process.
pub(super) struct Own;

impl Pages for Own {
    /// What cannot be told exists: there is nothing to do.
    fn exists(&self, address: usize) -> bool {
        let mut present = [0];
        let page = os::page_size();
        os::in_memory(address / page * page, &mut present).is_err() || present[0] & 1 != 0
    }

    /// The zero page is never mapped exclusively, and memory that is shared with a forked process is not this one's. What
    /// cannot be told is not written. The first page is asked for alone, as that is faster.
    fn are_written(&self, range: Range<usize>) -> bool {
        if !self.exists(range.start) || !self.exists(range.end - 1) {
            return false;
        }
        let Ok(table) = PageTable::open() else { return false };
        let mut entries = [0; 512];
        let mut at = range.start;
        while at < range.end {
            let count = ((range.end - at) / os::page_size()).min(entries.len());
            let told = table.entries(at, &mut entries[..count]);
            if told.is_err() || entries[..count].iter().any(|entry| entry & seen::EXCLUSIVE == 0) {
                return false;
            }
            at += count * os::page_size();
        }
        true
    }
}
