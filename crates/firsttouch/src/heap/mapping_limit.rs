//! The limit on the number of mappings (`vm.max_map_count`).

use crate::os;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether the process has reached the limit. What is unmapped then cannot be mapped again, so pages are discarded and
/// their mappings stay.
static MAPPINGS_SHORT: AtomicBool = AtomicBool::new(false);

/// To be called when the system refused memory: checks whether the number of mappings was the reason.
pub(crate) fn look_at_mappings() {
    MAPPINGS_SHORT.store(os::mappings_are_short(), Relaxed);
}

/// To be called when the system mapped memory.
pub(crate) fn mapped() {
    if MAPPINGS_SHORT.load(Relaxed) {
        MAPPINGS_SHORT.store(false, Relaxed);
    }
}

/// Whether mappings have to be kept.
pub(crate) fn keeps_mappings() -> bool {
    MAPPINGS_SHORT.load(Relaxed)
}
