//! Clears recycled memory in the cheapest way that keeps sparse memory sparse.

use super::policy::{LOOK_MIN, RENEW_MIN, is_half_filled};
use crate::heap::growing::Span;
use crate::heap::segment::{CLEAN, FIRST_EPOCH};
use crate::layout::{round_down, round_up};
use crate::os;

/// Clears the first `size` bytes of a span, all of which may be dirty. Returns the bytes that the kernel has to fault
/// in again.
///
/// # Safety
/// The span belongs to the caller and is not in use yet.
pub(super) unsafe fn recycled(span: Span, size: usize, page: usize) -> usize {
    // SAFETY: the span is the caller's and nobody uses it yet (`Pool::allocate`).
    unsafe { clear(span, span.address(), span.address() + size, page, size >= RENEW_MIN) }
}

/// Clears the dirty units among the first `size` bytes in the same way. The ages of the span must be valid.
///
/// # Safety
/// The span belongs to the caller and is not in use yet.
pub(super) unsafe fn dirty_units(span: Span, size: usize, page: usize) -> usize {
    let (segment, end) = (span.segment, span.address() + size);
    let (mut at, mut left, mut again) = (span.start, span.len, 0);
    while left > 0 {
        let ages = segment.ages(at, left); // anew, since clearing changes them
        let clean = ages.iter().take_while(|&&age| age < FIRST_EPOCH).count();
        let dirty = ages[clean..].iter().take_while(|&&age| age >= FIRST_EPOCH).count() as u32;
        let from = segment.address(at + clean as u32).min(end);
        let to = segment.address(at + clean as u32 + dirty).min(end);
        // SAFETY: the run lies in the span, which nobody uses yet (`Pool::allocate`).
        again += unsafe { clear(span, from, to, page, size >= RENEW_MIN) };
        at += clean as u32 + dirty;
        left -= clean as u32 + dirty;
    }
    again
}

/// Clears a part of a span; returns the bytes that are discarded for that.
///
/// # Safety
/// As for [`renew`].
unsafe fn clear(span: Span, from: usize, to: usize, page: usize, all: bool) -> usize {
    // SAFETY: the part lies in the caller's span (`recycled`, `dirty_units`).
    unsafe {
        let Some((first, last)) = renew(span, from, to, page, all) else {
            fill(from, to - from);
            return 0;
        };
        fill(from, first - from);
        fill(last, to - last);
        last - first
    }
}

/// Discards the whole pages between two addresses in a span, if `all` or if most were never used; returns their bounds.
///
/// # Safety
/// The span belongs to the caller and is not in use yet. The first address is that of a unit.
unsafe fn renew(span: Span, from: usize, to: usize, page: usize, all: bool) -> Option<(usize, usize)> {
    if !all && (to - from < LOOK_MIN || is_half_filled(from, to - from)) {
        return None;
    }
    let (first, last) = (round_up(from, page)?, round_down(to, page));
    // SAFETY: the span is the caller's and nobody uses it yet (`clear`).
    if first >= last || unsafe { os::discard(first, last - first) }.is_err() {
        return None;
    }
    let unit = |at: usize| ((at - span.address()) >> span.segment.unit_shift()) as u32;
    span.segment.ages(span.start + unit(first), unit(last) - unit(first)).fill(CLEAN);
    Some((first, last))
}

/// # Safety
/// The range is writable.
unsafe fn fill(address: usize, size: usize) {
    // SAFETY: the range is writable: a part of the span that `recycled` was given.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(address).write_bytes(0, size) }
}
