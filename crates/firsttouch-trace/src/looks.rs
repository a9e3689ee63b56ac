//! When a large block's pages are looked at: as it comes, unless its line is [calm](super::calm), and as it goes, where
//! that may tell something new.

use super::calm::Calm;
use super::pages::{large_pages, middle_is_there, pages_of, present};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static CALM: Calm = Calm::new();

/// Blocks whose pages are looked at in the end, as far as they have different places: those that were not wholly there,
/// and (odd) those that were to read zero, of which much may never be written.
static NOTED: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];

fn noted(address: usize) -> &'static AtomicUsize {
    &NOTED[(address >> 12 ^ address >> 24) % NOTED.len()]
}

/// Another trace begins.
pub(super) fn forget() {
    CALM.forget();
}

/// Pages that are there of a block that was just given to a line of the program.
pub(super) fn coming(address: usize, size: usize, zeroed: bool, line: u32) -> u64 {
    let pages = pages_of(address, size);
    if CALM.spares(line, size) {
        noted(address).store(0, Relaxed);
        return pages;
    }
    let present = present(address, size);
    CALM.saw(line, size, present == pages);
    let again = zeroed || present < pages;
    noted(address).store(if again { address | usize::from(zeroed) } else { 0 }, Relaxed);
    present
}

/// Pages of a block that is about to go; nothing where it is taken for written as a whole.
pub(super) fn going(address: usize, size: usize) -> Option<u64> {
    let noted = noted(address).load(Relaxed);
    let look = noted == address | 1 || noted == address && !middle_is_there(address, size);
    if look { large_pages(address, size) } else { None }
}
