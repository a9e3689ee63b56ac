//! Programs that restrict their own system calls.
//!
//! A sandbox may allow what the C library's `malloc` needs (`mmap`, `munmap`, `mremap`, `mprotect`, `madvise`, `futex`) and
//! kill the process for any other call. From then on the pool makes no others: it asks neither what pages were used nor
//! what limits there are, and starts no thread. The report is written before.

use crate::next::{Name, next};
use crate::{idle, report};
use libc::{c_int, c_ulong, c_void};
use std::mem::transmute;

/// See prctl(2). Without more rights than others, every way to install a filter begins with one of these.
///
/// # Safety
/// As stated there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    if matches!(option, libc::PR_SET_NO_NEW_PRIVS | libc::PR_SET_SECCOMP) {
        report::write();
        idle::never_start_a_thread();
        firsttouch::os::ask_nothing();
    }
    type Function = unsafe extern "C" fn(c_int, ...) -> c_int;
    // SAFETY: the function of that name, with what prctl(2) demands of the program; what it did not give is not looked at.
    unsafe { transmute::<*mut c_void, Function>(next(Name::Prctl))(option, a, b, c, d) }
}
