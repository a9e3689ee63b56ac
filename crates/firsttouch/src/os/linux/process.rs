//! Memory mappings, threads and forks.

use super::limits::asks_nothing;
use crate::os::inject::{Call, injected};
use crate::os::types::Errno;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::time::Duration;

fn check(result: i32) -> Result<(), Errno> {
    if result == 0 { Ok(()) } else { Err(Errno::last()) }
}

fn map(hint: usize, size: usize, flags: i32) -> Result<usize, Errno> {
    if injected(Call::Map) {
        return Err(Errno::NO_MEMORY);
    }
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: without MAP_FIXED, a new mapping replaces no other.
    let at = unsafe { libc::mmap(hint as *mut c_void, size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(at as usize) }
}

/// Linux needs no reservation: nothing else comes to lie in the slots of a claim.
pub fn reserve(_address: usize, _size: usize) -> Result<(), Errno> {
    Ok(())
}

pub unsafe fn release(_address: usize) {}

/// mmap(2) with `MAP_FIXED_NOREPLACE`. Kernels before 4.17 treat the address as a hint.
pub fn commit(address: usize, size: usize) -> Result<usize, Errno> {
    let at = map(address, size, libc::MAP_FIXED_NOREPLACE)?;
    if at == address {
        return Ok(at);
    }
    // SAFETY: the mapping was made here, and has no other user.
    unsafe { libc::munmap(at as *mut c_void, size) };
    Err(Errno::EXISTS)
}

pub fn map_anywhere(size: usize) -> Result<usize, Errno> {
    map(0, size, 0)
}

pub fn map_aligned(size: usize, align: usize, _node: Option<usize>) -> Result<usize, Errno> {
    let spare = align - page_size();
    let at = map_anywhere(size.checked_add(spare).ok_or(Errno::NO_MEMORY)?)?;
    let start = at.next_multiple_of(align);
    // SAFETY: the edges were just mapped and are not in use. If they cannot be unmapped, they stay unused.
    unsafe {
        if start > at {
            let _ = unmap(at, start - at);
        }
        if start < at + spare {
            let _ = unmap(start + size, at + spare - start);
        }
    }
    Ok(start)
}

pub unsafe fn decommit(address: usize, size: usize) -> Result<(), Errno> {
    // SAFETY: as demanded.
    unsafe { unmap(address, size) }
}

/// munmap(2), which the kernel may refuse where a mapping would be split.
pub unsafe fn unmap(address: usize, size: usize) -> Result<(), Errno> {
    if injected(Call::Unmap) {
        return Err(Errno::NO_MEMORY);
    }
    // SAFETY: this module mapped the range, and its owner uses it no more (heap, pages, arenas, shared memory).
    check(unsafe { libc::munmap(address as *mut c_void, size) })
}

/// mmap(2) with `MAP_FIXED`. Where the kernel refuses, the range is as it was.
pub unsafe fn map_anew(address: usize, size: usize) -> Result<(), Errno> {
    map(address, size, libc::MAP_FIXED).map(drop) // over what this module mapped, whose owner uses it no more
}

/// mremap(2) with `MREMAP_DONTUNMAP`, from Linux 5.7 on; of pages in several mappings from 6.17 on. Nothing may be mapped at
/// `to`, neither before nor where the kernel refuses.
pub unsafe fn remap(from: usize, to: usize, size: usize) -> Result<(), Errno> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    // SAFETY: this module mapped the first range, and nobody uses either (`Heap::carry`).
    unsafe {
        let is_refused = injected(Call::Map)
            || libc::mremap(from as *mut c_void, size, size, flags, to as *mut c_void) == libc::MAP_FAILED;
        if !is_refused {
            return Ok(());
        }
        let error = Errno::last();
        // One mapping is moved after the other, and the last ones may have been refused: what is mapped was moved.
        let pages = (0..size).step_by(page_size());
        for at in pages.take_while(|at| libc::madvise((to + at) as *mut c_void, page_size(), libc::MADV_NORMAL) == 0) {
            std::ptr::copy_nonoverlapping((to + at) as *const u8, (from + at) as *mut u8, page_size());
        }
        libc::munmap(to as *mut c_void, size);
        Err(error)
    }
}

/// madvise(2) with `MADV_COLD`. Without it the kernel keeps them whole until memory runs short.
pub fn split_huge(address: usize, size: usize) {
    // SAFETY: the advice changes no content, whatever is mapped there.
    unsafe { libc::madvise(address as *mut c_void, size, libc::MADV_COLD) };
}

/// madvise(2) with `MADV_DONTNEED`, which locked memory refuses.
pub unsafe fn discard(address: usize, size: usize) -> Result<(), Errno> {
    if injected(Call::Discard) {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: this module mapped the range, and its content is not needed (heap, pool, placed pages).
    check(unsafe { libc::madvise(address as *mut c_void, size, libc::MADV_DONTNEED) })
}

/// mprotect(2), which fails where there are too many mappings.
pub unsafe fn protect(address: usize, size: usize, accessible: bool) -> Result<(), Errno> {
    if injected(Call::Protect) {
        return Err(Errno::NO_MEMORY);
    }
    let access = if accessible { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
    // SAFETY: this module mapped the range, which is the caller's and not used meanwhile (`guarded`).
    check(unsafe { libc::mprotect(address as *mut c_void, size, access) })
}

/// madvise(2) with `MADV_HUGEPAGE`.
pub fn advise_huge(address: usize, size: usize) -> Result<(), Errno> {
    if injected(Call::AdviseHuge) {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: the advice changes page sizes, never content.
    check(unsafe { libc::madvise(address as *mut c_void, size, libc::MADV_HUGEPAGE) })
}

/// madvise(2) with `MADV_NOHUGEPAGE`. The huge pages that are there stay.
pub fn unadvise_huge(address: usize, size: usize) {
    // SAFETY: the advice changes page sizes, never content, whatever is mapped there.
    unsafe { libc::madvise(address as *mut c_void, size, libc::MADV_NOHUGEPAGE) };
}

/// mincore(2). Swapped pages may not be counted.
pub fn resident_pages(address: usize, size: usize) -> Result<usize, Errno> {
    const AT_A_TIME: usize = 256; // a thread that frees may have a small stack
    if size.div_ceil(page_size()) > 4096 || injected(Call::Resident) || asks_nothing() {
        return Err(Errno(libc::EINVAL));
    }
    let (step, mut there) = (AT_A_TIME * page_size(), 0);
    for from in (0..size).step_by(step) {
        let mut seen = [0u8; AT_A_TIME];
        let part = step.min(size - from);
        // SAFETY: the kernel writes one byte for each page, at most as many as there is room for.
        check(unsafe { libc::mincore((address + from) as *mut c_void, part, seen.as_mut_ptr()) })?;
        there += seen.iter().map(|&byte| usize::from(byte & 1)).sum::<usize>();
    }
    Ok(there)
}

#[inline]
pub fn page_size() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    match SIZE.load(Relaxed) {
        0 => {
            // SAFETY: sysconf has no preconditions.
            let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
            SIZE.store(size, Relaxed);
            size
        }
        size => size,
    }
}

pub fn processors() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0); // the C library reads a file for each answer
    if COUNT.load(Relaxed) == 0 {
        // SAFETY: returns a number.
        COUNT.store(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }.max(1) as usize, Relaxed);
    }
    COUNT.load(Relaxed)
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

/// A thread started by `spawn`.
pub struct Thread(libc::pthread_t, i32, &'static AtomicU32);

// SAFETY: a pthread_t, which is a pointer in musl, names the thread in the whole process; it is only passed to libc.
unsafe impl Send for Thread {}

/// A small stack. glibc would reserve an arena of 64 MiB of address space for a thread that allocates.
pub fn spawn(body: extern "C" fn(*mut c_void) -> *mut c_void, task: &'static AtomicU32) -> Result<Thread, Errno> {
    if injected(Call::Spawn) {
        return Err(Errno(libc::EAGAIN));
    }
    task.store(0, Relaxed);
    // SAFETY: getpid has no preconditions.
    start(body, null_mut()).map(|thread| Thread(thread, unsafe { libc::getpid() }, task))
}

/// Starts a thread that runs `body` on `argument`, with all signals blocked.
pub(super) fn start(
    body: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> Result<libc::pthread_t, Errno> {
    const STACK: usize = 256 << 10; // it also holds the static TLS of the program's libraries
    // SAFETY: the attributes and signal sets are initialized before they are used and live on this stack; what `body`
    // may be called with is the callers' matter.
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
        if result == 0 { Ok(thread.assume_init()) } else { Err(Errno(result)) }
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

/// The number is for [`Thread::join`].
pub fn name_thread(name: &std::ffi::CStr, task: &AtomicU32) {
    // SAFETY: the name is a C string; gettid has no preconditions.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        task.store(libc::syscall(libc::SYS_gettid) as u32, Relaxed);
    }
}

impl Thread {
    /// Waits until the thread has ended and the kernel no longer counts it. Does nothing in a forked child.
    pub fn join(self) {
        // SAFETY: the thread was created by `spawn` in this process, and is joined once. tgkill with signal 0 only tests
        // whether it still exists: Python counts threads right after a fork, and warns.
        unsafe {
            let process = libc::getpid();
            if process != self.1 {
                return;
            }
            join(self.0);
            let task = self.2.load(Relaxed);
            for _ in 0..10_000 {
                if libc::syscall(libc::SYS_tgkill, process, task, 0) != 0 {
                    break;
                }
                libc::sched_yield();
            }
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

pub fn is_main_thread() -> bool {
    // SAFETY: neither has preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) }
}

pub fn seed() -> usize {
    let mut bytes = [0u8; size_of::<usize>()];
    // SAFETY: the kernel writes at most the length of the buffer.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK) };
    usize::from_ne_bytes(bytes)
}

/// A thread started by `help`. Dropping it waits until the thread has ended.
pub struct Helper(libc::pthread_t);

/// A thread of the standard library needs memory of the C library when it begins, for thread-local data, and glibc ends
/// the process where there is none. This one needs none, as long as `body` allocates nothing and uses no thread-local
/// data of this library.
pub unsafe fn help(body: extern "C" fn(*mut c_void) -> *mut c_void, work: *mut c_void) -> Result<Helper, Errno> {
    if injected(Call::Spawn) {
        return Err(Errno(libc::EAGAIN));
    }
    start(body, work).map(Helper)
}

impl Drop for Helper {
    fn drop(&mut self) {
        // SAFETY: the thread was created by `help`, and is joined once.
        unsafe { join(self.0) };
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
    // SAFETY: as above.
    unsafe { pthread_setcancelstate(before, &mut before) };
    result
}

/// Waits for the end of a thread.
///
/// # Safety
/// It is joined once.
pub(super) unsafe fn join(thread: libc::pthread_t) {
    // SAFETY: as demanded.
    uncancelled(|| unsafe { libc::pthread_join(thread, null_mut()) });
}
