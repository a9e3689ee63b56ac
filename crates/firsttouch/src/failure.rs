//! The last failed request of the process, and its reason.

use crate::error::AllocError;
use crate::sync::lock::Lock;

/// The last failure, with the reason that its allocator added.
struct Last {
    error: AllocError,
    note: Option<Box<str>>,
}

/// The last failure, and the one before it, for [`retract`].
pub(crate) struct Failures {
    last: Option<Last>,
    before: Option<Last>,
}

impl Failures {
    fn put(&mut self, error: AllocError, note: Option<Box<str>>) {
        self.before = self.last.replace(Last { error, note });
    }
}

pub(crate) static FAILURES: Lock<Failures> = Lock::new(Failures { last: None, before: None });

/// Records `error` as the last failure of the process.
pub fn remember(error: AllocError) {
    FAILURES.lock().put(error, None);
}

/// Records `error` as the last failure, with a specific reason.
pub fn explain(error: AllocError, reason: String) {
    FAILURES.lock().put(error, Some(reason.into()));
}

/// Takes an upstream's `error` back, because the request is tried again. After another failure it stays.
pub fn retract(error: AllocError) {
    let failures = &mut *FAILURES.lock();
    if failures.last.as_ref().is_some_and(|last| last.error == error) {
        failures.last = failures.before.take();
    }
}

/// Records an upstream's `error` as the last failure, with the upstream's reason.
pub fn pass_on(error: AllocError) {
    let failures = &mut *FAILURES.lock();
    match &mut failures.last {
        Some(last) if last.error.limit == error.limit => last.error = error,
        _ => failures.put(error, None),
    }
}

/// The last failure of the process.
pub fn last() -> Option<AllocError> {
    FAILURES.lock().last.as_ref().map(|last| last.error)
}

/// The full reason of the last failure.
pub fn last_reason() -> Option<String> {
    FAILURES.lock().last.as_ref().map(|last| last.note.as_deref().map_or_else(|| last.error.to_string(), str::to_owned))
}
