//! The report of a process at its end, where `firsttouch run` asked for one: what a process used, when it is written, by
//! which thread, and where to. Its words are those of `firsttouch_report`.

use crate::next::{self, Main};
use crate::settings::{Pattern, Reporting};
use crate::{entry, large, life};
use firsttouch::os::{self, Usage};
use firsttouch::{Allocator, Stats};
use firsttouch_report::Report;
use firsttouch_report::glibc::{self, Plainly};
use libc::{FILE, SIGPIPE, SIGXFSZ, c_char, c_int, c_void, sigset_t, timespec};
use std::ffi::CStr;
use std::mem::{MaybeUninit, transmute};
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicI32, AtomicPtr, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

struct Asked {
    /// The process that is reported on; not a child of vfork, which shares this memory.
    process: u32,
    start: Start,
    reporting: Reporting,
    threshold: usize,
    command: Vec<String>,
    refused: Option<String>,
    /// Where the text goes, and the JSON where it does not go to a file.
    screen: Option<Stream>,
    output: Option<Stream>,
}

/// The report that was asked for; null without one, and in forked children of the process that reports.
static ASKED: AtomicPtr<Asked> = AtomicPtr::new(null_mut());

/// What this process has still to report.
fn due() -> Option<&'static Asked> {
    // SAFETY: null, or what `begin` made.
    unsafe { ASKED.load(Relaxed).as_ref() }.filter(|asked| asked.process == std::process::id())
}

/// Remembers what is to be reported at the end. `refused` says why nothing is served.
///
/// # Safety
/// `words` are as many C strings as `count` says.
pub unsafe fn begin(
    reporting: Reporting,
    threshold: usize,
    refused: Option<String>,
    (count, words): (c_int, *const *const c_char),
) {
    let all = reporting.json.as_ref().is_some_and(Pattern::has_process);
    let process = std::process::id();
    let main = reporting.process == Some(process);
    if !main && !all {
        return;
    }
    let words = (0..count.max(0) as usize).map(|at| {
        // SAFETY: `words` are as many C strings as `count` says (`life.rs`, which has them from the loader).
        unsafe { CStr::from_ptr(*words.add(at)) }.to_string_lossy().into_owned()
    });
    let screen = (main && !reporting.quiet).then(|| Stream::of(libc::STDERR_FILENO));
    let output =
        (main && reporting.json.as_ref().is_some_and(Pattern::is_output)).then(|| Stream::of(libc::STDOUT_FILENO));
    let (start, command) = (Start::now(), words.collect());
    let asked = Asked { process, start, reporting, threshold, command, refused, screen, output };
    ASKED.store(Box::into_raw(Box::new(asked)), Relaxed);
}

// SAFETY: glibc's functions, as flockfile(3) and unlocked_stdio(3) declare them.
unsafe extern "C" {
    /// The C library's stream for standard output, whatever the program made of `stdout`.
    #[link_name = "_IO_2_1_stdout_"]
    static STDOUT: [u8; 0];

    fn ftrylockfile(stream: *mut FILE) -> c_int;
    fn funlockfile(stream: *mut FILE);
    fn fflush_unlocked(stream: *mut FILE) -> c_int;
}

/// In a forked child: the report is its parent's, or, with a file for each process, about what it does itself.
pub fn leave_to_parent() {
    // SAFETY: null, or what `begin` made; the child has this thread only.
    if let Some(asked) = unsafe { ASKED.load(Relaxed).as_mut() } {
        asked.start = Start::now();
        asked.process = std::process::id();
        (asked.screen, asked.output) = (None, None);
        if !asked.reporting.json.as_ref().is_some_and(Pattern::has_process) {
            ASKED.store(null_mut(), Relaxed);
        }
    }
    WRITER.store(0, Release);
}

/// Writes the report at the end, if one was asked for; not where a signal handler ends the program in the middle of a call of
/// ours, which may hold a lock for ever.
pub fn write() {
    if life::is_inside() {
        return;
    }
    with_due(|asked| {
        without_signals(|| {
            if asked.streams().any(|stream| stream.descriptor().is_some()) {
                flush_stdout();
            }
            compose(asked);
        });
    });
}

/// The same for `_exit`, which flushes nothing of the program's, also in a signal handler that interrupted the C library's
/// allocator.
fn write_apart() {
    if !life::is_inside() {
        with_due(|asked| {
            if next::allocate_apart() {
                without_signals(|| compose(asked));
            }
        });
    }
}

impl Asked {
    fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.screen.iter().chain(&self.output)
    }
}

fn compose(asked: &Asked) {
    let process = asked.process;
    let mut pool = large::pool().map(|pool| pool.stats().since(&asked.start.pool));
    if pool.is_none() && asked.refused.is_none() {
        return;
    }
    let mut plainly = glibc::plainly().since(asked.start.plainly);
    if !entry::advises_huge() {
        plainly = plainly.on_base_pages();
    } else if let Some(pool) = &mut pool {
        // Advice that the program gives on its own blocks, it gives on the pool's as well.
        let all = plainly.all();
        let huge = (all.huge as f64 / (all.bytes() as f64).max(1.0) * pool.first_touched_small_bytes as f64) as u64;
        pool.first_touched_small_bytes -= huge;
        pool.first_touched_huge_bytes += huge;
    }
    let report = Report {
        process,
        main: asked.reporting.process == Some(process),
        command: asked.command.clone(),
        refused: asked.refused.clone(),
        used: os::usage().since(&asked.start.usage),
        resident: os::resident_and_peak(),
        from: asked.threshold,
        pool,
        plainly,
        ..Report::default()
    };
    let (text, content) = report.text_and_json();
    let screen = asked.screen.as_ref().and_then(Stream::descriptor);
    if let Some(screen) = screen {
        write_to(screen, text.as_bytes());
    }
    let Some(pattern) = &asked.reporting.json else { return };
    if pattern.is_output() {
        if let Some(output) = asked.output.as_ref().and_then(Stream::descriptor) {
            write_to(output, content.as_bytes());
        }
        return;
    }
    let file = pattern.of(process);
    if let Err(error) = std::fs::write(&file, content)
        && let Some(screen) = screen
    {
        let message = format!("firsttouch: cannot write the report to {}: {error}\n", file.display());
        write_to(screen, message.as_bytes());
    }
}

/// What was counted when the report began: an exec keeps the kernel's counters, and a fork the pool's.
struct Start {
    usage: Usage,
    pool: Stats,
    plainly: Plainly,
}

impl Start {
    fn now() -> Self {
        let pool = large::pool().map(Allocator::stats).unwrap_or_default();
        Self { usage: os::usage(), pool, plainly: glibc::plainly() }
    }
}

/// The thread that writes the report; zero where none does.
static WRITER: AtomicI32 = AtomicI32::new(0);

/// Calls `body` if this process has still to report and this thread is the first that would: several may end the program at
/// once. The others wait, as the report would end with the process, but not for what this thread was interrupted in.
fn with_due(body: impl FnOnce(&Asked)) {
    // SAFETY: gettid has no preconditions.
    let this_thread = unsafe { libc::syscall(libc::SYS_gettid) as i32 };
    if due().is_some() && WRITER.compare_exchange(0, this_thread, AcqRel, Relaxed).is_ok() {
        // SAFETY: null, or what `begin` made.
        if let Some(asked) = unsafe { ASKED.swap(null_mut(), Relaxed).as_ref() } {
            body(asked);
        }
        WRITER.store(0, Release);
    } else {
        const PAUSE: timespec = timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        // Not much longer than a report takes.
        for _ in 0..1000 {
            if [0, this_thread].contains(&WRITER.load(Acquire)) {
                break;
            }
            // SAFETY: the kernel reads a valid time, and writes none.
            unsafe { libc::nanosleep(&PAUSE, null_mut()) };
        }
    }
}

/// A standard stream that is written to at the end. Many programs close theirs before, in functions that `exit` calls; so it is
/// copied when the end begins. Not earlier: a reader of the program's output waits until all copies are closed.
struct Stream {
    number: c_int,
    /// The copy, or -1.
    copy: AtomicI32,
    /// Which file it was at the start: the program may have closed it, and got its number for a file of its own.
    identity: Option<(u64, u64)>,
}

impl Stream {
    fn of(number: c_int) -> Self {
        Self { number, copy: AtomicI32::new(-1), identity: identity(number) }
    }

    fn is_same(&self, file: c_int) -> bool {
        self.identity.is_some() && identity(file) == self.identity
    }

    /// Copies it, in a way that no program started from this one inherits.
    fn copy(&self) {
        if self.is_same(self.number) {
            // SAFETY: fcntl takes any number, and copies the descriptor if there is one.
            self.copy.store(unsafe { libc::fcntl(self.number, libc::F_DUPFD_CLOEXEC, 3) }, Relaxed);
        }
    }

    /// Where to write, if that still is the file of the start.
    fn descriptor(&self) -> Option<c_int> {
        [self.copy.load(Relaxed), self.number].into_iter().find(|&file| file >= 0 && self.is_same(file))
    }
}

fn identity(file: c_int) -> Option<(u64, u64)> {
    // SAFETY: a stat of zero bytes is valid, and the kernel writes one.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::fstat(file, &raw mut stat) == 0).then_some((stat.st_dev, stat.st_ino))
    }
}

/// The end begins: what the program registered may close the streams.
fn begin_to_end() {
    due().iter().flat_map(|asked| asked.streams()).for_each(Stream::copy);
}

#[unsafe(no_mangle)]
pub extern "C" fn exit(status: c_int) -> ! {
    begin_to_end();
    next::exit(status)
}

/// The program's own.
static MAIN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

extern "C" fn main(count: c_int, words: *mut *mut c_char, environment: *mut *mut c_char) -> c_int {
    // SAFETY: `__libc_start_main` stored the program's function, and has it called with its arguments.
    let status = unsafe { transmute::<*mut c_void, Main>(MAIN.load(Relaxed)) }(count, words, environment);
    begin_to_end();
    status
}

/// What the start of every program calls; a return from `main` calls an `exit` of the C library's that is not ours.
///
/// # Safety
/// The program's start code calls it, with what it has from the loader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_start_main(
    program: Main,
    count: c_int,
    words: *mut *mut c_char,
    first: *mut c_void,
    last: *mut c_void,
    of_loader: *mut c_void,
    stack: *mut c_void,
) -> c_int {
    MAIN.store(program as *mut c_void, Relaxed);
    // SAFETY: the C library's function of this type gets what the start code passed.
    unsafe { next::__libc_start_main(main, count, words, first, last, of_loader, stack) }
}

#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    write_apart();
    loop {
        // SAFETY: exit_group has no preconditions.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}

/// Flushes what the program printed, so that it comes first. Not of a stream that another thread uses, perhaps for ever:
/// nor of all streams, as one that a thread reads is locked.
fn flush_stdout() {
    let stream = (&raw const STDOUT).cast_mut().cast();
    // SAFETY: the C library's stream, which is never gone.
    unsafe {
        if ftrylockfile(stream) == 0 {
            fflush_unlocked(stream);
            funlockfile(stream);
        }
    }
}

/// Calls `body`, in which a write to a pipe that nobody reads, or beyond the largest size of a file, is an error but no
/// signal, which would end the program with a status that is not its own.
fn without_signals(body: impl FnOnce()) {
    const AT_ONCE: timespec = timespec { tv_sec: 0, tv_nsec: 0 };
    let mut sets = MaybeUninit::<[sigset_t; 3]>::zeroed();
    // SAFETY: the sets are initialized where they are read, or zero, which is a valid set.
    unsafe {
        let [ours, before, pending] = sets.assume_init_mut();
        libc::sigpending(pending);
        for signal in [SIGPIPE, SIGXFSZ].into_iter().filter(|&signal| libc::sigismember(pending, signal) == 0) {
            libc::sigaddset(ours, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, ours, before);
        body();
        while libc::sigtimedwait(ours, null_mut(), &AT_ONCE) > 0 {}
        libc::pthread_sigmask(libc::SIG_SETMASK, before, null_mut());
    }
}

/// Writes all of it to a descriptor, or as much as can be written.
pub fn write_to(file: libc::c_int, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the kernel reads at most the length of the slice.
        let count = unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
        let Ok(count @ 1..) = usize::try_from(count) else { return };
        bytes = &bytes[count..];
    }
}
