//! The library's constructor: it registers the fork handlers.
//!
//! If a first use did that, another thread could fork meanwhile, and its child would wait for ever for the end of the
//! registration, or for a lock that was taken right after it.

#![allow(unsafe_code)]

use crate::heap::purger;

#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array.00098"))]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    #[cfg(feature = "mimalloc")]
    super::mimalloc::load();
    #[cfg(feature = "jemalloc")]
    super::jemalloc::load(); // its handlers take its locks: ours, registered after it, come before it and may call it
    purger::watch_forks();
}
