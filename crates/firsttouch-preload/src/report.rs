//! The report of a process at its end, where `firsttouch run` asked for one.

mod figures;
mod file;
mod json;
mod stream;
mod words;

use crate::settings::Reporting;
use crate::{inside, next, text};
use figures::{Figures, Spent, Start};
pub use file::Pattern;
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use stream::Stream;

struct Report {
    /// The process that is reported on; not a child of vfork, which shares this memory.
    process: u32,
    start: Start,
    reporting: Reporting,
    threshold: usize,
    command: Vec<String>,
}

/// What was asked; null where nothing was, and in forked children of the process that reports.
static REPORT: AtomicPtr<Report> = AtomicPtr::new(std::ptr::null_mut());
/// Where the report goes.
static SCREEN: Stream = Stream::none();
static OUTPUT: Stream = Stream::none();

/// Remembers what is to be reported at the end.
///
/// # Safety
/// `words` are as many C strings as `count` says.
pub unsafe fn begin(reporting: Reporting, threshold: usize, count: c_int, words: *const *const c_char) {
    let all = reporting.json.as_ref().is_some_and(Pattern::has_process);
    let main = reporting.process == Some(std::process::id());
    if !main && !all {
        return;
    }
    let words = (0..count.max(0) as usize).map(|at| {
        // SAFETY: `words` are as many C strings as `count` says (`start.rs`, which has them from the loader).
        unsafe { CStr::from_ptr(*words.add(at)) }.to_string_lossy().into_owned()
    });
    if main && !reporting.quiet {
        SCREEN.keep(libc::STDERR_FILENO);
    }
    if main && reporting.json.as_ref().is_some_and(Pattern::is_output) {
        OUTPUT.keep(libc::STDOUT_FILENO);
    }
    let report =
        Report { process: std::process::id(), start: Start::now(), reporting, threshold, command: words.collect() };
    REPORT.store(Box::into_raw(Box::new(report)), Relaxed);
}

/// In a forked child: the report is its parent's, or, with a file for each process, about what it does itself.
pub fn leave_to_parent() {
    SCREEN.close();
    OUTPUT.close();
    // SAFETY: null, or what `begin` made; the child has this thread only.
    if let Some(report) = unsafe { REPORT.load(Relaxed).as_mut() } {
        report.start = Start::now();
        report.process = std::process::id();
        if !report.reporting.json.as_ref().is_some_and(Pattern::has_process) {
            REPORT.store(std::ptr::null_mut(), Relaxed);
        }
    }
}

/// Leaves the report to another library of this process, which reports on the same pool.
pub extern "C" fn leave() {
    REPORT.store(std::ptr::null_mut(), Relaxed);
}

/// The report that this process has still to write.
fn take_due() -> Option<&'static Report> {
    // SAFETY: null, or what `begin` made.
    let report = unsafe { REPORT.load(Relaxed).as_ref() }?;
    if report.process != std::process::id() {
        return None;
    }
    REPORT.store(std::ptr::null_mut(), Relaxed);
    Some(report)
}

/// Writes the report at the end, if one was asked for. A signal handler that calls exit may have interrupted whoever held a
/// lock, too.
pub fn write() {
    if inside::is_inside() {
        return write_beside();
    }
    if let Some(report) = take_due() {
        compose(report, Spent::since(&report.start), true);
    }
}

/// The same for `_exit`, which runs nothing of the program's any more and may come from a signal handler that interrupted
/// whoever held a lock: a copy of the process does it, and is not waited for much longer than it takes.
pub fn write_beside() {
    const PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    let Some(report) = take_due() else { return };
    let spent = Spent::since(&report.start);
    // SAFETY: like fork(2), but no handler is called, and no signal tells of the copy's end. It only writes the report.
    unsafe {
        let copy = libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0);
        if copy == 0 {
            if next::allocate_apart() {
                compose(report, spent, false);
            }
            libc::syscall(libc::SYS_exit_group, 0);
        }
        let ended = |options| libc::waitpid(copy as libc::pid_t, std::ptr::null_mut(), options | libc::__WALL) != 0;
        if copy > 0 && !(0..1000).any(|_| ended(libc::WNOHANG) || libc::nanosleep(&PAUSE, std::ptr::null_mut()) > 0) {
            libc::kill(copy as libc::pid_t, libc::SIGKILL);
            ended(0);
        }
    }
}

fn compose(report: &Report, spent: Spent, flush: bool) {
    let process = report.process;
    let main = report.reporting.process == Some(process);
    let Some(figures) = Figures::new(spent, &report.start) else { return };
    let screen = SCREEN.get();
    if main && let Some(screen) = screen {
        text::write(screen, words::report(process, &figures, report.threshold).as_bytes());
    }
    let Some(pattern) = &report.reporting.json else { return };
    let content = json::report(process, main, &report.command, &figures, report.threshold);
    if pattern.is_output() {
        if main && let Some(output) = OUTPUT.get() {
            if flush {
                // SAFETY: flushes all streams; what the program printed comes first.
                unsafe { libc::fflush(std::ptr::null_mut()) };
            }
            text::write(output, content.as_bytes());
        }
        return;
    }
    let file = pattern.of(process);
    if let Err(error) = std::fs::write(&file, content)
        && let Some(screen) = screen
    {
        let message = format!("firsttouch: cannot write the report to {}: {error}\n", file.display());
        text::write(screen, message.as_bytes());
    }
}
