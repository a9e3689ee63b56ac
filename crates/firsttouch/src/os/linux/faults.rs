//! Reports the first memory fault of the process, then lets the signal take its course.

use crate::os::types::{Errno, Fault};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];
/// Seconds after which the process is ended if the report does not return.
const TIMEOUT: u32 = 5;

static REPORT: OnceLock<fn(&Fault)> = OnceLock::new();
/// The previous signal actions.
static BEFORE: OnceLock<[libc::sigaction; 2]> = OnceLock::new();
static SEEN: AtomicBool = AtomicBool::new(false);

/// The signal then takes its previous action. Only the first call has an effect.
pub fn watch_faults(report: fn(&Fault)) -> Result<(), Errno> {
    if REPORT.set(report).is_err() {
        return Ok(());
    }
    let mut before = [const { MaybeUninit::<libc::sigaction>::uninit() }; 2];
    for (signal, old) in SIGNALS.into_iter().zip(&mut before) {
        // SAFETY: the call fills `old`.
        if unsafe { libc::sigaction(signal, null(), old.as_mut_ptr()) } != 0 {
            return Err(Errno::last());
        }
    }
    // SAFETY: both were filled.
    let _ = BEFORE.set(before.map(|old| unsafe { old.assume_init() }));
    // SAFETY: an action of zero bytes is valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_fault as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    for signal in SIGNALS {
        // SAFETY: the handler is async-signal-safe.
        if unsafe { libc::sigaction(signal, &action, null_mut()) } != 0 {
            return Err(Errno::last());
        }
    }
    Ok(())
}

/// Restores the previous actions. When it returns, the instruction runs and faults again.
extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE.get();
    for (at, signal) in SIGNALS.into_iter().enumerate() {
        let old = before.map_or(null(), |before| &raw const before[at]);
        // SAFETY: these are the previous actions; sigaction is async-signal-safe.
        unsafe { libc::sigaction(signal, old, null_mut()) };
    }
    // SAFETY: the kernel passed it, valid while the handler runs.
    if unsafe { (*info).si_code } <= 0 {
        // Sent by a process: no instruction will raise it again.
        // SAFETY: raise is async-signal-safe.
        unsafe { libc::raise(signal) };
        return;
    }
    if SEEN.swap(true, Relaxed) {
        return;
    }
    // SAFETY: both are async-signal-safe. If `report` never returns, the alarm ends the process.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(TIMEOUT);
    }
    if let Some(report) = REPORT.get() {
        // SAFETY: the kernel passed both, valid while the handler runs; both signals carry an address.
        let (address, wrote) = unsafe { ((*info).si_addr() as usize, wrote(context)) };
        let signal = if signal == libc::SIGBUS { "SIGBUS" } else { "SIGSEGV" };
        report(&Fault { signal, address, wrote });
    }
}

/// Returns whether the instruction wrote, if the processor tells.
///
/// # Safety
/// `context` is the argument of a signal handler.
#[cfg(target_arch = "x86_64")]
unsafe fn wrote(context: *mut c_void) -> Option<bool> {
    // SAFETY: `context` is a signal handler's (`on_fault`, which the kernel calls); bit 1 of a page fault's error code
    // stands for a write.
    let code = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_ERR as usize] };
    Some(code & 2 != 0)
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn wrote(_context: *mut c_void) -> Option<bool> {
    None
}

/// An error could not be reported.
pub fn write_in_handler(file: i32, bytes: &[u8]) {
    // SAFETY: the bytes are valid.
    unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
}
