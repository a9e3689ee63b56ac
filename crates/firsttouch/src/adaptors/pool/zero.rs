//! Making recycled memory zero, the cheapest way that keeps what is sparse sparse.

use crate::heap::ages::CLEAN;
use crate::heap::region::Span;
use crate::layout::{round_down, round_up};
use crate::os;

/// Below this a plain memset always wins.
const LOOK_MIN: usize = 256 << 10;
/// From here on blocks are whole huge pages, and dirty ones are given back instead of cleared: the kernel zeroes what is
/// used, and only that.
pub(super) const RENEW_MIN: usize = 32 << 20;
/// Pages looked at to guess whether a block was used: asking costs, and arrays are mostly used evenly or from the front.
const LOOK_PAGES: usize = 64;

/// Makes the first `size` bytes of a span zero, all of which may be dirty; bytes that the kernel has to make real again.
///
/// # Safety
/// The span is the caller's and nobody uses it yet.
pub(super) unsafe fn recycled(span: Span, size: usize, page: usize) -> usize {
    let address = span.address();
    // SAFETY: the caller's promise.
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

/// Gives back the whole pages in the first `size` bytes of a span, if most were never touched; their bounds.
///
/// # Safety
/// The span is the caller's and nobody uses it yet.
pub(super) unsafe fn renew(span: Span, size: usize, page: usize) -> Option<(usize, usize)> {
    let address = span.address();
    if size < LOOK_MIN || !middle_is_absent(address, size) {
        return None;
    }
    let (from, to) = (round_up(address, page)?, round_down(address + size, page));
    // SAFETY: the caller's promise.
    if from >= to || unsafe { os::discard(from, to - from) }.is_err() {
        return None;
    }
    let unit = |at: usize| ((at - address) >> span.segment.unit_shift()) as u32;
    span.segment.empty(span.start + unit(from), unit(to) - unit(from), CLEAN);
    Some((from, to))
}

/// Makes the dirty units among the first `size` bytes zero; the ages of the span must be true.
///
/// # Safety
/// The span is the caller's and nobody uses it yet.
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

/// Whether the pages in the middle are not there. Only a hint: both ways of zeroing are right whatever it says.
fn middle_is_absent(address: usize, size: usize) -> bool {
    let page = os::page_size();
    let middle = round_down(address + size / 2, page);
    let pages = ((address + size - middle) / page).min(LOOK_PAGES);
    os::resident_pages(middle, pages * page).is_ok_and(|there| there < pages / 2)
}

/// # Safety
/// The range may be written.
unsafe fn fill(address: usize, size: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(address).write_bytes(0, size) }
}
