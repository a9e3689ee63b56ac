//! The report of a process at its end, where `firsttouch run` asked for one.

mod figures;
mod json;
mod output;
mod stream;
mod turn;
mod words;

use crate::pattern::Pattern;
use crate::settings::Reporting;
use crate::{inside, next, text};
use figures::{Figures, Spent, Start};
use output::{flush_stdout, without_signals};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
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
static REPORT: AtomicPtr<Report> = AtomicPtr::new(null_mut());
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
    // SAFETY: a function that stays, as this library is never unloaded. It is called after all others, which come later.
    unsafe { __cxa_at_quick_exit(end_quickly, null_mut()) };
}

// SAFETY: glibc's function, as its at_quick_exit calls it.
unsafe extern "C" {
    /// What at_quick_exit(3) calls, which is not in the C library itself.
    fn __cxa_at_quick_exit(function: extern "C" fn(*mut c_void), library: *mut c_void) -> c_int;
}

extern "C" fn end_quickly(_: *mut c_void) {
    write_beside();
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
            leave();
        }
    }
    turn::end();
}

/// Leaves the report to another library of this process, which reports on the same pool.
pub extern "C" fn leave() {
    REPORT.store(null_mut(), Relaxed);
}

/// Calls `body` with the report, if this process has still to write one, and this thread is the first that would.
fn with_due(body: impl FnOnce(&Report)) {
    // SAFETY: null, or what `begin` made.
    let due = unsafe { REPORT.load(Relaxed).as_ref() }.filter(|report| report.process == std::process::id());
    if due.is_some() && turn::take() {
        // SAFETY: as above.
        if let Some(report) = unsafe { REPORT.swap(null_mut(), Relaxed).as_ref() } {
            body(report);
        }
        turn::end();
    } else {
        turn::wait();
    }
}

/// Writes the report at the end, if one was asked for. A signal handler that calls exit may have interrupted whoever held a
/// lock, too.
pub fn write() {
    if inside::is_inside() {
        return write_beside();
    }
    with_due(|report| {
        without_signals(|| {
            if SCREEN.get().or_else(|| OUTPUT.get()).is_some() {
                flush_stdout();
            }
            compose(report, Spent::since(&report.start));
        });
    });
}

/// The same for `_exit`, which runs nothing of the program's any more and may come from a signal handler that interrupted
/// whoever held a lock: a copy of the process does it, and is not waited for much longer than it takes.
pub fn write_beside() {
    with_due(|report| {
        let spent = Spent::since(&report.start);
        // SAFETY: like fork(2), but no handler is called, and no signal tells of the copy's end. It only writes the report.
        unsafe {
            let copy = libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0);
            if copy == 0 {
                if next::allocate_apart() {
                    without_signals(|| compose(report, spent));
                }
                libc::syscall(libc::SYS_exit_group, 0);
            }
            let copy = copy as libc::pid_t;
            let ended = |options| libc::waitpid(copy, null_mut(), options | libc::__WALL) != 0;
            if copy > 0 && !turn::within_a_second(|| ended(libc::WNOHANG)) {
                libc::kill(copy, libc::SIGKILL);
                ended(0);
            }
        }
    });
}

fn compose(report: &Report, spent: Spent) {
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
