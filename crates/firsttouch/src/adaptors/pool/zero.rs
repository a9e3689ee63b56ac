//! Clears recycled memory in the cheapest way that keeps sparse memory sparse.

use crate::heap::ages::CLEAN;
use crate::heap::region::Span;
use crate::layout::{round_down, round_up};
use crate::os;

/// Below this size, `memset` is always faster.
const LOOK_MIN: usize = 256 << 10;
/// Blocks of this size and more lie on whole huge pages. Dirty ones are discarded instead of cleared: the kernel then
/// zeroes what is used, and only that.
pub(super) const RENEW_MIN: usize = 32 << 20;
/// Pages sampled to guess whether a block was used: queries are expensive, and most arrays are used evenly or from the
/// front.
const LOOK_PAGES: usize = 64;

/// Clears the first `size` bytes of a span, all of which may be dirty. Returns the bytes that the kernel has to fault
/// in again.
///
/// # Safety
/// The span belongs to the caller and is not in use yet.
pub(super) unsafe fn recycled(span: Span, size: usize, page: usize) -> usize {
    let address = span.address();
    // SAFETY: the span is the caller's and nobody uses it yet (`Pool::allocate`).
    unsafe {
        if let Some((from, to)) = renew(span, size, page) {
            fill(address, from - address);
            fill(to, address + size - to);
            return to - from;
        }
        fill(address, size);
        0
    }
}

/// Discards the whole pages in the first `size` bytes of a span, if most were never touched; returns their bounds.
///
/// # Safety
/// The span belongs to the caller and is not in use yet.
pub(super) unsafe fn renew(span: Span, size: usize, page: usize) -> Option<(usize, usize)> {
    let address = span.address();
    if size < LOOK_MIN || !middle_is_absent(address, size) {
        return None;
    }
    let (from, to) = (round_up(address, page)?, round_down(address + size, page));
    // SAFETY: the span is the caller's and nobody uses it yet (`make_local` and `recycled`).
    if from >= to || unsafe { os::discard(from, to - from) }.is_err() {
        return None;
    }
    let unit = |at: usize| ((at - address) >> span.segment.unit_shift()) as u32;
    span.segment.empty(span.start + unit(from), unit(to) - unit(from), CLEAN);
    Some((from, to))
}

/// Clears the dirty units among the first `size` bytes. The ages of the span must be valid.
///
/// # Safety
/// The span belongs to the caller and is not in use yet.
pub(super) unsafe fn dirty_units(span: Span, size: usize) {
    let unit = span.segment.unit();
    let end = span.address() + size;
    span.segment.each_dirty_run(span.start, span.len, |start, len| {
        let from = span.segment.address(start);
        let to = (from + len as usize * unit).min(end);
        // SAFETY: the run lies in the caller's span.
        unsafe { fill(from, to.saturating_sub(from)) };
    });
}

/// Whether the pages in the middle are absent. Only a hint: both ways of clearing are correct in any case.
fn middle_is_absent(address: usize, size: usize) -> bool {
    let page = os::page_size();
    let middle = round_down(address + size / 2, page);
    let pages = ((address + size - middle) / page).min(LOOK_PAGES);
    os::resident_pages(middle, pages * page).is_ok_and(|there| there < pages / 2)
}

/// # Safety
/// The range is writable.
unsafe fn fill(address: usize, size: usize) {
    // SAFETY: the range is writable: a part of the span that `recycled` was given.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(address).write_bytes(0, size) }
}
