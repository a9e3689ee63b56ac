//! The limit of mappings (`vm.max_map_count`).

use crate::os;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether the process has as many mappings as it may have. What is unmapped then can't be mapped again, not even for
/// smaller requests, so pages are discarded and their mappings stay.
static MAPPINGS_SHORT: AtomicBool = AtomicBool::new(false);

/// The system refused memory: looks whether that is for the number of mappings.
pub(crate) fn look_at_mappings() {
    MAPPINGS_SHORT.store(os::mappings_are_short(), Relaxed);
}

/// The system mapped memory.
pub(crate) fn mapped() {
    if MAPPINGS_SHORT.load(Relaxed) {
        MAPPINGS_SHORT.store(false, Relaxed);
    }
}

/// Whether mappings are to be kept.
pub(crate) fn keeps_mappings() -> bool {
    MAPPINGS_SHORT.load(Relaxed)
}
