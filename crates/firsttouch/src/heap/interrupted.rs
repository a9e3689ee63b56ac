//! Forks in signal handlers, which may have interrupted their own thread while it held a lock of ours.

use crate::sync::first::First;

static ASK: First<fn() -> bool> = First::new();

/// Lets a fork pass without regard to locks if `asked` returns true for its thread. The child may wait for ever if it goes on
/// using what they protect.
pub fn let_forks_pass(asked: fn() -> bool) {
    ASK.get_or_make(|| asked);
}

pub(super) fn is_interrupted() -> bool {
    ASK.get().is_some_and(|ask| ask())
}
