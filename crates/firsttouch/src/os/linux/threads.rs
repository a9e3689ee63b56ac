//! Processors, threads and forks; and the first memory fault, which is reported before the signal takes its course.

use super::limits::once;
use crate::os::types::{Errno, Fault};
use once_cell::race::OnceBox;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

pub fn processors() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(usize::MAX); // the C library reads a file for each answer
    // SAFETY: sysconf has no preconditions.
    once(&COUNT, || Some(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }.max(1) as usize))
}

#[inline]
pub fn current_processor() -> usize {
    // SAFETY: sched_getcpu has no preconditions; it returns -1 on failure.
    (unsafe { libc::sched_getcpu() }).max(0) as usize
}

/// futex(2).
pub fn wait(word: &AtomicU32, value: u32, timeout: Option<Duration>) {
    let spec = timeout.map(|t| libc::timespec { tv_sec: t.as_secs() as _, tv_nsec: t.subsec_nanos() as _ });
    let spec_pointer = spec.as_ref().map_or(null(), std::ptr::from_ref);
    let op = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the timespec outlive the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, value, spec_pointer) };
}

/// futex(2).
pub fn wake(word: &AtomicU32) {
    // SAFETY: the kernel uses the address only as a key.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
}

/// A running thread; it is joined when it is dropped, but not in a forked child.
pub struct Thread {
    thread: libc::pthread_t,
    process: libc::pid_t,
    task: &'static AtomicU32,
}

// SAFETY: a pthread_t, which is a pointer in musl, names the thread in the whole process; it is only passed to libc.
unsafe impl Send for Thread {}

/// A small stack. A thread of the standard library needs memory of the C library when it begins, for thread-local data, and
/// glibc ends the process where there is none; for one that allocates it would reserve an arena of 64 MiB of address space.
pub unsafe fn spawn(
    body: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
    task: &'static AtomicU32,
) -> Result<Thread, Errno> {
    const STACK: usize = 256 << 10; // it also holds the static TLS of the program's libraries
    task.store(0, Relaxed);
    // SAFETY: the attributes and signal sets are initialized before they are used and live on this stack; what `body`
    // may be called with is the caller's matter.
    unsafe {
        let mut attributes = MaybeUninit::uninit();
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        let mut thread = MaybeUninit::uninit();
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK);
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let result = libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), body, argument);
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut());
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        if result != 0 {
            return Err(Errno(result));
        }
        Ok(Thread { thread: thread.assume_init(), process: libc::getpid(), task })
    }
}

impl Drop for Thread {
    /// Waits until the thread has ended and, if it named itself, until the kernel no longer counts it: Python counts threads
    /// right after a fork, and warns.
    fn drop(&mut self) {
        // SAFETY: the thread was created by `spawn` in this process, and is joined once. tgkill with signal 0 only tests
        // whether it still exists.
        unsafe {
            let process = libc::getpid();
            if process != self.process {
                return;
            }
            uncancelled(|| libc::pthread_join(self.thread, null_mut()));
            let task = self.task.load(Relaxed);
            for _ in 0..10_000 {
                if libc::syscall(libc::SYS_tgkill, process, task, 0) != 0 {
                    break;
                }
                libc::sched_yield();
            }
        }
    }
}

/// The number is for the join.
pub fn name_thread(name: &CStr, task: &AtomicU32) {
    // SAFETY: the name is a C string; gettid has no preconditions.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        task.store(libc::syscall(libc::SYS_gettid) as u32, Relaxed);
    }
}

const DISABLE: libc::c_int = 1;

// SAFETY: the C library's function, as pthread_setcancelstate(3) declares it.
unsafe extern "C" {
    fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
}

/// Calls `body`, in which this thread is not cancelled.
pub(super) fn uncancelled<T>(body: impl FnOnce() -> T) -> T {
    let mut before = 0;
    // SAFETY: it changes this thread alone, and writes one number.
    unsafe { pthread_setcancelstate(DISABLE, &mut before) };
    let result = body();
    // SAFETY: it puts back what was there, in this thread alone, and writes one number.
    unsafe { pthread_setcancelstate(before, &mut before) };
    result
}

/// A process that is not found in /proc may live, and be hidden from this one: `hidepid` in proc(5).
pub fn has_ended(process: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{process}/statm")) {
        Ok(sizes) => sizes.starts_with("0 "),
        // SAFETY: signal 0 is sent to nobody; for a process that lives, that may be refused.
        Err(_) => unsafe { libc::kill(process as libc::pid_t, 0) < 0 && Errno::last().0 == libc::ESRCH },
    }
}

pub fn end_with(parent: u32) {
    // SAFETY: these calls have no preconditions.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // It may have ended before. 0 is a parent in another namespace.
        if ![0, parent].contains(&(libc::getppid() as u32)) {
            libc::raise(libc::SIGKILL);
        }
    }
}

/// pthread_atfork(3).
pub fn at_fork(prepare: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) {
    // SAFETY: the library is never unloaded, so the functions stay callable.
    unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
}

/// dlsym(3).
pub fn symbol(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the name is a C string.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}

/// dladdr(3).
pub fn library_of(function: *const c_void) -> *const c_void {
    // SAFETY: an answer of zero bytes is valid; the address is looked up, and the answer written.
    unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        libc::dladdr(function, &mut found);
        found.dli_fbase
    }
}

pub fn is_main_thread() -> bool {
    // SAFETY: neither has preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) }
}

// ---- Memory faults ---------------------------------------------------------------------------------------------------

const SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];
/// Seconds after which the process is ended if the report does not return.
const TIMEOUT: u32 = 5;

static REPORT: OnceBox<fn(&Fault)> = OnceBox::new();
/// The previous signal actions.
static BEFORE: OnceBox<[libc::sigaction; 2]> = OnceBox::new();
static SEEN: AtomicBool = AtomicBool::new(false);

/// The signal then takes its previous action. Only the first call has an effect.
pub fn watch_faults(report: fn(&Fault)) -> Result<(), Errno> {
    if REPORT.set(Box::new(report)).is_err() {
        return Ok(());
    }
    let _ = BEFORE.set(Box::new(SIGNALS.map(|signal| exchange(signal, None))));
    // SAFETY: an action of zero bytes is valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_fault as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    let _ = SIGNALS.map(|signal| exchange(signal, Some(&action)));
    Ok(())
}

/// Returns the action of a signal, and sets another.
fn exchange(signal: i32, action: Option<&libc::sigaction>) -> libc::sigaction {
    // SAFETY: an action of zero bytes is valid, and the kernel writes one; those that are set are the previous ones and
    // `on_fault`, which is async-signal-safe. So is this call.
    unsafe {
        let mut old = std::mem::zeroed();
        libc::sigaction(signal, action.map_or(null(), std::ptr::from_ref), &mut old);
        old
    }
}

/// Restores the previous actions. When it returns, the instruction runs and faults again.
extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    for (signal, old) in SIGNALS.into_iter().zip(BEFORE.get().into_iter().flatten()) {
        exchange(signal, Some(old));
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
    // SAFETY: as demanded. Bit 1 of a page fault's error code stands for a write.
    let code = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_ERR as usize] };
    Some(code & 2 != 0)
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn wrote(_context: *mut c_void) -> Option<bool> {
    None
}

/// An error could not be reported.
pub fn write_in_handler(file: i32, bytes: &[u8]) {
    // SAFETY: the kernel reads at most the length of the slice.
    unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
}
