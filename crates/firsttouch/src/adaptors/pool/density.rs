//! How densely a block is used, as far as a few of its pages tell.
//!
//! `mincore` counts pages that were only read, which are the zero page: a sparse table that is scanned is sparse all the
//! same. `move_pages` without targets knows the difference, and needs no open file.

use crate::layout::round_down;
use crate::os;

/// The number of places in a block that are sampled, and of pages at each.
const PLACES: usize = 8;
const PAGES: usize = 32;
/// The pages of a place of which the kernel is asked whether there is memory behind them.
const ASKED: usize = 4;

/// Whether nearly all sampled pages were written. The end is looked at first: blocks are filled from the front.
pub(super) fn is_dense(address: usize, size: usize) -> bool {
    has_places(size) && places(address, size).rev().all(is_there) && places(address, size).all(is_written)
}

/// Whether those of three quarters of the places were.
pub(super) fn is_mostly_used(address: usize, size: usize) -> bool {
    has_places(size) && 4 * places(address, size).filter(|&at| is_there(at) && is_written(at)).count() >= 3 * PLACES
}

/// Whether nearly all pages of a small block were written.
pub(super) fn is_filled(address: usize, size: usize) -> bool {
    let there = os::resident_pages(address, size).unwrap_or(0) * os::page_size();
    8 * there >= 7 * size && is_memory(address, size)
}

/// Where base pages are large, a block may be smaller than a place.
fn has_places(size: usize) -> bool {
    size >= PAGES * os::page_size()
}

fn places(address: usize, size: usize) -> impl DoubleEndedIterator<Item = usize> {
    let page = os::page_size();
    let step = (size - PAGES * page) / (PLACES - 1);
    (0..PLACES).map(move |place| round_down(address + place * step, page))
}

fn is_there(at: usize) -> bool {
    os::resident_pages(at, PAGES * os::page_size()).unwrap_or(0) >= PAGES * 7 / 8
}

fn is_written(at: usize) -> bool {
    is_memory(at, PAGES * os::page_size())
}

/// Whether there is memory behind most of a few pages from `at` to `size` bytes on, or the kernel does not say.
pub(super) fn is_memory(at: usize, size: usize) -> bool {
    let step = round_down(size / ASKED, os::page_size());
    let pages: [usize; ASKED] = std::array::from_fn(|n| at + n * step);
    let mut nodes = [0; ASKED];
    os::nodes_of(&pages, &mut nodes).is_err() || 2 * nodes.iter().filter(|&&node| node >= 0).count() > ASKED
}
