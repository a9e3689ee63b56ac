//! The last failed request of the process, and its reason.

use crate::error::AllocError;
use crate::sync::lock::Lock;

/// The last failure, with the reason that its allocator added.
struct Last {
    error: AllocError,
    note: Option<Box<str>>,
}

/// The last failure, and the one before it, for [`retract`].
struct Failures {
    last: Option<Last>,
    before: Option<Last>,
}

impl Failures {
    fn put(&mut self, error: AllocError, note: Option<Box<str>>) {
        self.before = self.last.replace(Last { error, note });
    }
}

static FAILURES: Lock<Failures> = Lock::new(Failures { last: None, before: None });

/// Records `error` as the last failure of the process.
pub fn remember(error: AllocError) {
    FAILURES.lock().put(error, None);
}

/// Records `error` as the last failure, with a specific reason.
pub fn explain(error: AllocError, reason: String) {
    FAILURES.lock().put(error, Some(reason.into()));
}

/// Takes back what an upstream recorded for `error`, because its request is tried again.
pub fn retract(error: AllocError) {
    let failures = &mut *FAILURES.lock();
    if failures.last.as_ref().is_some_and(|last| last.error.limit == error.limit) {
        failures.last = failures.before.take();
    }
}

/// Records an upstream's `error` as the last failure, with the upstream's reason.
pub fn pass_on(error: AllocError) {
    let last = &mut FAILURES.lock().last;
    let note = last.take().filter(|last| last.error.limit == error.limit).and_then(|last| last.note);
    *last = Some(Last { error, note });
}

/// The last failure of the process.
pub fn last() -> Option<AllocError> {
    FAILURES.lock().last.as_ref().map(|last| last.error)
}

/// The full reason of the last failure.
pub fn last_reason() -> Option<String> {
    FAILURES.lock().last.as_ref().map(|last| last.note.as_deref().map_or_else(|| last.error.to_string(), str::to_owned))
}

/// Held around forks.
pub(crate) fn hold() {
    FAILURES.hold();
}

/// Ends [`hold`].
///
/// # Safety
/// [`hold`] was called, as the fork handlers do.
#[allow(unsafe_code)] // Safety: releases what `hold` acquired.
pub(crate) unsafe fn release() {
    // SAFETY: `hold` acquired it, as the fork handlers (`purger`) do before they call this.
    unsafe { FAILURES.release() }
}
