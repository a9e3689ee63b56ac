//! jemalloc on memory from our segments: all blocks come from arenas that we create with extent hooks.
//!
//! The arena that jemalloc creates when it is loaded serves only jemalloc itself.

#![allow(unsafe_code)]

use super::embedded::{Embedded, Library};
use crate::allocator::Request;
use crate::heap::segment;
use crate::layout::DEFAULT_ALIGN;
use crate::os::Errno;
use crate::sync::first::First;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tikv_jemalloc_sys as je;
use tikv_jemalloc_sys::extent_hooks_t;

/// jemalloc as a source.
pub type Jemalloc = Embedded<Je>;

/// See the module.
pub struct Je;

/// Address space is given to jemalloc in pieces of at least this size.
const PIECE: usize = 2 << 20;
/// From this size on, the system is asked beforehand whether it has the memory. jemalloc keeps 2 MiB of metadata for
/// each GiB of address space that it was ever given, and retries several times what cannot be committed.
const PROBE_MIN: usize = 32 << 20;

/// The number of our arenas. Each has its own metadata, so they are few.
const ARENAS: u32 = 4;
/// The number of our first arena; the others follow.
static FIRST: AtomicU32 = AtomicU32::new(0);
/// The number of threads that were assigned an arena.
static THREADS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// This thread's arena, counted from [`FIRST`]. Threads keep their arena, so they find their freed memory again.
    static ARENA: u32 = THREADS.fetch_add(1, Relaxed) % ARENAS;
}

/// jemalloc creates one arena itself, and none for large blocks only. Our purging clock decommits idle memory.
#[repr(transparent)]
pub struct Settings(*const c_char);
// SAFETY: it points to a constant.
unsafe impl Sync for Settings {}

/// Read by jemalloc when it is loaded.
#[unsafe(no_mangle)]
pub static _rjem_malloc_conf: Settings = Settings(
    c"narenas:1,oversize_threshold:0,dirty_decay_ms:-1,muzzy_decay_ms:0,cache_oblivious:false,retain:true".as_ptr(),
);

/// Gives jemalloc address space, committed as far as it requests.
unsafe extern "C" fn alloc(
    _: *mut extent_hooks_t,
    wanted_at: *mut c_void,
    size: usize,
    align: usize,
    zero: *mut bool,
    commit: *mut bool,
    _: c_uint,
) -> *mut c_void {
    let (Some(source), true) = (Je::one().get(), wanted_at.is_null()) else { return null_mut() };
    if size >= PROBE_MIN && source.space().probe(size).is_err() {
        return null_mut();
    }
    let Ok(at) = source.take(size, align.max(PIECE)) else { return null_mut() };
    // SAFETY: jemalloc passes pointers to two of its variables. Our memory reads zero when it is first committed.
    unsafe {
        if *commit && source.space().open(at, size).is_err() {
            return null_mut();
        }
        *zero = true;
    }
    with_exposed_provenance_mut(at)
}

/// Like all hooks, returns true to refuse. Address space stays with jemalloc permanently.
unsafe extern "C" fn dalloc(_: *mut extent_hooks_t, _: *mut c_void, _: usize, _: bool, _: c_uint) -> bool {
    true
}

unsafe extern "C" fn commit(
    _: *mut extent_hooks_t,
    at: *mut c_void,
    _: usize,
    offset: usize,
    length: usize,
    _: c_uint,
) -> bool {
    let Some(source) = Je::one().get() else { return true };
    source.space().open(at as usize + offset, length).is_err()
}

/// Decommitted memory reads zero when it is committed again, as jemalloc expects (law 2).
unsafe extern "C" fn decommit(
    _: *mut extent_hooks_t,
    at: *mut c_void,
    _: usize,
    offset: usize,
    length: usize,
    _: c_uint,
) -> bool {
    let Some(source) = Je::one().get() else { return true };
    source.space().close(at as usize + offset, length);
    false
}

/// Any two neighbors may be merged: all our address space is handed out once, to jemalloc as a whole.
unsafe extern "C" fn merge(
    _: *mut extent_hooks_t,
    low: *mut c_void,
    _: usize,
    high: *mut c_void,
    _: usize,
    _: bool,
    _: c_uint,
) -> bool {
    let segment = |at: *mut c_void| segment::find(at as usize).map(|(segment, _)| segment.base());
    segment(low) != segment(high)
}

unsafe extern "C" fn split(
    _: *mut extent_hooks_t,
    _: *mut c_void,
    _: usize,
    _: usize,
    _: usize,
    _: bool,
    _: c_uint,
) -> bool {
    false
}

/// Does what jemalloc's own constructor does, if that was not called yet.
pub(super) fn load() {
    // SAFETY: a question that allocates nothing, and any first call does the constructor's work.
    unsafe { je::nallocx(1, 0) };
}

struct Hooks(extent_hooks_t);
// SAFETY: it is never modified.
unsafe impl Sync for Hooks {}

static HOOKS: Hooks = Hooks(extent_hooks_t {
    alloc: Some(alloc),
    dalloc: Some(dalloc),
    destroy: None,
    commit: Some(commit),
    decommit: Some(decommit),
    purge_lazy: None,
    purge_forced: None,
    split: Some(split),
    merge: Some(merge),
});

/// mallctl(3), which reads into `old` and writes from `new`.
fn control<T, U>(name: &CStr, old: Option<&mut T>, new: Option<&mut U>) -> Result<(), Errno> {
    let mut size = size_of::<T>();
    let size_at = if old.is_some() { &raw mut size } else { null_mut() };
    let old = old.map_or(null_mut(), |value| std::ptr::from_mut(value).cast());
    let (new, new_size) = new.map_or((null_mut(), 0), |value| (std::ptr::from_mut(value).cast(), size_of::<U>()));
    // SAFETY: the sizes of the values are passed; jemalloc rejects other sizes.
    let result: c_int = unsafe { je::mallctl(name.as_ptr(), old, size_at, new, new_size) };
    match Errno(result) {
        Errno(0) => Ok(()),
        Errno::AGAIN => Err(Errno::NO_MEMORY), // which jemalloc means by it
        other => Err(other),
    }
}

fn flags(request: Request) -> c_int {
    let arena = FIRST.load(Relaxed) + ARENA.with(|&arena| arena);
    let zero = if request.is_zeroed() { je::MALLOCX_ZERO } else { 0 };
    je::MALLOCX_ALIGN(request.align()) | je::MALLOCX_ARENA(arena as usize) | zero
}

// SAFETY: jemalloc keeps the laws; all its arenas have our hooks, so all its blocks lie in our segments.
unsafe impl Library for Je {
    const NAME: &str = "jemalloc";
    const UNIT: usize = 4096;
    const MAX_ALIGN: usize = 2 << 20;

    fn one() -> &'static First<Arc<Jemalloc>> {
        static ONE: First<Arc<Jemalloc>> = First::new();
        &ONE
    }

    fn start(_: &'static Jemalloc) -> Result<(), Errno> {
        let mut hooks = &raw const HOOKS.0;
        for number in 0..ARENAS {
            let mut arena: c_uint = 0;
            control(c"arenas.create", Some(&mut arena), Some(&mut hooks))?;
            if number == 0 {
                FIRST.store(arena, Relaxed);
            }
            // Set even if an environment variable or another copy of jemalloc has changed the defaults.
            for (name, mut milliseconds) in [("dirty_decay_ms", -1isize), ("muzzy_decay_ms", 0)] {
                let name = CString::new(format!("arena.{arena}.{name}")).map_err(|_| Errno::UNSUPPORTED)?;
                control(&name, None::<&mut u8>, Some(&mut milliseconds))?;
            }
        }
        Ok(())
    }

    fn grow(_: &'static Jemalloc, _: usize) -> bool {
        true // jemalloc asks for address space itself
    }

    fn allocate(request: Request) -> *mut u8 {
        // SAFETY: the size is not zero, and the alignment is a power of two.
        unsafe { je::mallocx(request.size(), flags(request)).cast() }
    }

    unsafe fn free(block: *mut u8) {
        // SAFETY: a live block of jemalloc that nobody uses (`Embedded::deallocate`).
        unsafe { je::dallocx(block.cast(), 0) }
    }

    unsafe fn usable(block: *mut u8) -> usize {
        // SAFETY: a live block of jemalloc (`Embedded::usable_size`).
        unsafe { je::sallocx(block.cast(), 0) }
    }

    unsafe fn resize(block: *mut u8, size: usize) -> bool {
        // SAFETY: a live block of jemalloc (`Embedded::resize_in_place`).
        unsafe { je::xallocx(block.cast(), size, 0, je::MALLOCX_ALIGN(DEFAULT_ALIGN)) >= size }
    }

    fn purge() {
        let nothing = || (None::<&mut u8>, None::<&mut u8>);
        let (old, new) = nothing();
        let _ = control(c"thread.tcache.flush", old, new);
        let (old, new) = nothing();
        let _ = control(c"arena.4096.purge", old, new); // 4096 stands for all arenas
    }
}
