//! Memory faults on Linux: somebody may note what happened, then things take their course.

use super::{Errno, Fault};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];
/// Seconds after which a process ends that could not say what happened.
const PATIENCE: u32 = 5;

static NOTE: OnceLock<fn(&Fault)> = OnceLock::new();
/// What the signals did before.
static BEFORE: OnceLock<[libc::sigaction; 2]> = OnceLock::new();
static SEEN: AtomicBool = AtomicBool::new(false);

/// From now on the first memory fault of this process is given to `note`, in a signal's handler; after that the signal
/// does what it did before. May be called once; calls after that change nothing.
pub fn watch_faults(note: fn(&Fault)) -> Result<(), Errno> {
    if NOTE.set(note).is_err() {
        return Ok(());
    }
    let mut before = [const { MaybeUninit::<libc::sigaction>::uninit() }; 2];
    for (signal, old) in SIGNALS.into_iter().zip(&mut before) {
        // SAFETY: `old` has room for what the call fills.
        if unsafe { libc::sigaction(signal, null(), old.as_mut_ptr()) } != 0 {
            return Err(super::linux::errno());
        }
    }
    // SAFETY: both were filled.
    let _ = BEFORE.set(before.map(|old| unsafe { old.assume_init() }));
    // SAFETY: all zero is a valid action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_fault as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    for signal in SIGNALS {
        // SAFETY: the handler may run at any time.
        if unsafe { libc::sigaction(signal, &action, null_mut()) } != 0 {
            return Err(super::linux::errno());
        }
    }
    Ok(())
}

/// The instruction runs again when this returns, and the signal then does what it did before.
extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE.get();
    for (at, signal) in SIGNALS.into_iter().enumerate() {
        let old = before.map_or(null(), |before| &raw const before[at]);
        // SAFETY: what stood there before may stand there again; sigaction may be called in a handler.
        unsafe { libc::sigaction(signal, old, null_mut()) };
    }
    // SAFETY: the kernel gave it, for as long as the handler runs.
    if unsafe { (*info).si_code } <= 0 {
        // Somebody sent the signal; no instruction will cause it again.
        // SAFETY: raise may be called in a handler.
        unsafe { libc::raise(signal) };
        return;
    }
    if SEEN.swap(true, Relaxed) {
        return;
    }
    // SAFETY: both may be called in a handler. Should `note` never return, the alarm ends the process.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(PATIENCE);
    }
    if let Some(note) = NOTE.get() {
        // SAFETY: the kernel gave both, for as long as the handler runs; both signals carry an address.
        let (address, wrote) = unsafe { ((*info).si_addr() as usize, wrote(context)) };
        note(&Fault { signal, address, wrote });
    }
}

/// Whether the instruction wrote, where the processor says so.
///
/// # Safety
/// `context` is what the kernel gave a handler.
#[cfg(target_arch = "x86_64")]
unsafe fn wrote(context: *mut c_void) -> Option<bool> {
    // SAFETY: the caller's promise; bit 1 of a page fault's error code stands for a write.
    let code = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_ERR as usize] };
    Some(code & 2 != 0)
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn wrote(_context: *mut c_void) -> Option<bool> {
    None
}

/// Writes at the beginning of a file; may be called in a signal's handler.
pub fn write_at_start(file: i32, bytes: &[u8]) {
    // SAFETY: the bytes are there; a file that is not open is an error, which nobody could hear of.
    unsafe { libc::pwrite(file, bytes.as_ptr().cast(), bytes.len(), 0) };
}
