//! Whether a processor is idle: a helper that took time from the program would be none.

use crate::os;

/// Whether a thread that runs now takes no other's processor, as far as the system tells.
pub(super) fn one_is_idle() -> bool {
    let usable = os::thread_processors().map_or(0, |set| set.len());
    usable >= 2 && os::runnable_threads().map_or(true, |running| running <= usable)
}
