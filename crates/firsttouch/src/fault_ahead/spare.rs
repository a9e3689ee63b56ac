//! Whether there is a processor and memory to spare: a helper that took either from the program would be none.

use crate::os;

/// Bytes that may be populated before the system is asked again.
const GRANT: usize = 32 << 20;
/// How many times as many bytes must be left then.
const LEFT: usize = 8;
/// Processors for which the container's quota must last: with fewer the helper's time is taken from the program.
const QUOTA: f64 = 2.0;

/// What may be used.
pub(super) struct Spare {
    memory: usize,
}

impl Spare {
    pub(super) const fn new() -> Self {
        Self { memory: 0 }
    }

    /// Whether `bytes` may be populated now.
    pub(super) fn allows(&mut self, bytes: usize) -> bool {
        if !a_processor_is_idle() {
            return false;
        }
        if self.memory < bytes {
            let granted = os::headroom() / LEFT >= GRANT && os::processor_quota().map_or(true, |quota| quota >= QUOTA);
            self.memory = if granted { GRANT } else { 0 };
        }
        let allowed = self.memory >= bytes;
        self.memory -= if allowed { bytes } else { 0 };
        allowed
    }
}

/// Whether a thread that runs now takes no other's processor, as far as the system tells.
fn a_processor_is_idle() -> bool {
    let usable = os::thread_processors().map_or(0, |set| set.len());
    usable >= 2 && os::runnable_threads().map_or(true, |running| running <= usable)
}
