//! The last failed request of the process, and its reason.

use crate::error::AllocError;
use crate::sync::lock::Lock;

/// The last failure, with the reason that its allocator added.
struct Last {
    error: AllocError,
    note: Option<Box<str>>,
}

static LAST: Lock<Option<Last>> = Lock::new(None);

/// Records `error` as the last failure of the process.
pub fn remember(error: AllocError) {
    *LAST.lock() = Some(Last { error, note: None });
}

/// Records `error` as the last failure, with a specific reason.
pub fn explain(error: AllocError, reason: String) {
    *LAST.lock() = Some(Last { error, note: Some(reason.into()) });
}

/// Records an upstream's `error` as the last failure, with the upstream's reason.
pub fn pass_on(error: AllocError) {
    let mut last = LAST.lock();
    let note = last.take().filter(|last| last.error.limit == error.limit).and_then(|last| last.note);
    *last = Some(Last { error, note });
}

/// The last failure of the process.
pub fn last() -> Option<AllocError> {
    LAST.lock().as_ref().map(|last| last.error)
}

/// The full reason of the last failure.
pub fn last_reason() -> Option<String> {
    LAST.lock().as_ref().map(|last| last.note.as_deref().map_or_else(|| last.error.to_string(), str::to_owned))
}

/// Held around forks.
pub(crate) fn hold() {
    LAST.hold();
}

/// Ends [`hold`].
///
/// # Safety
/// [`hold`] was called, as the fork handlers do.
#[allow(unsafe_code)] // Safety: releases what `hold` acquired.
pub(crate) unsafe fn release() {
    // SAFETY: `hold` acquired it, as the fork handlers (`purger`) do before they call this.
    unsafe { LAST.release() }
}
