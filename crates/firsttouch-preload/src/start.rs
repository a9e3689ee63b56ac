//! The constructor, which the loader calls before all others.

use crate::settings::Settings;
use crate::{forks, idle, large, next, report};
use firsttouch::adaptors::Pool;
use firsttouch::glibc;
use std::ffi::{c_char, c_int};

/// The core's constructor, which registers its fork handlers, is 98: those of [`forks`] surround them.
#[used]
#[unsafe(link_section = ".init_array.00097")]
static BEFORE_THE_CORE: extern "C" fn() = forks::watch_inside;

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: unsafe extern "C" fn(c_int, *const *const c_char, *const *const c_char) = begin;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

unsafe extern "C" fn begin(count: c_int, words: *const *const c_char, environment: *const *const c_char) {
    next::look_up_names();
    // SAFETY: asks for a number.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return; // more rights than its caller, whose settings must not count
    }
    if next::rival().is_some() {
        return;
    }
    // SAFETY: the loader hands the program's own lists over.
    let settings = unsafe { Settings::read(environment) };
    firsttouch::os::stop_reading_files();
    idle::begin(settings.thread);
    if !settings.fills {
        glibc::begin_to_raise();
    }
    large::set_pool(Pool::for_any_blocks(settings.pool));
    forks::watch_outside();
    // SAFETY: as above.
    unsafe { report::begin(settings.reporting, settings.threshold, count, words) };
    large::serve_from(settings.threshold);
}

extern "C" fn end() {
    report::write();
}
