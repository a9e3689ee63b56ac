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

/// To be called before memory goes back: checks whether the number of mappings still is at the limit.
pub(crate) fn look_again() {
    if keeps_mappings() {
        look_at_mappings();
    }
}

/// Whether mappings have to be kept.
pub(crate) fn keeps_mappings() -> bool {
    MAPPINGS_SHORT.load(Relaxed)
}
