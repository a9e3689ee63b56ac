//! mimalloc on memory from our segments: it never maps memory itself.

#![allow(unsafe_code)]

use super::embedded::{Embedded, Library};
use crate::allocator::Request;
use crate::os::Errno;
use crate::sync::first::First;
use libmimalloc_sys as mi;
use std::ffi::{c_int, c_long, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// mimalloc as a source.
pub type Mimalloc = Embedded<Mi>;

/// See the module.
pub struct Mi;

/// The size of mimalloc's slices, and the largest alignment that it serves inside an arena.
const SLICE: usize = 64 << 10;
/// The smallest arena that it accepts.
const ARENA_STEP: usize = 32 << 20;
/// The largest arena, and the first one where address space costs nothing.
const ARENA_MAX: usize = 8 << 30;
const ARENA_CLAIMED: usize = 1 << 30;

type Commit = unsafe extern "C" fn(bool, *mut c_void, usize, *mut bool, *mut c_void) -> bool;

// The options of version 3.3, which the bindings lack; the version is pinned for this reason.
const SHOW_STATS: c_int = 1;
const VERBOSE: c_int = 2;
const RESERVE_HUGE_OS_PAGES: c_int = 7;
const RESERVE_OS_MEMORY: c_int = 9;
const PURGE_DELAY: c_int = 15;
const DISALLOW_OS_ALLOC: c_int = 17;
const DESTROY_ON_EXIT: c_int = 22;
const ARENA_PURGE_MULT: c_int = 24;
const DISALLOW_ARENA_ALLOC: c_int = 26;
const MAX_VABITS: c_int = 38;
const PAGE_COMMIT_ON_DEMAND: c_int = 40;
const ALLOW_THP: c_int = 43;
const ARENA_MAX_OBJECT_SIZE: c_int = 45;

const _: () = assert!(mi::_mi_option_last == 47, "mimalloc's options have changed: check the numbers above");

unsafe extern "C" {
    fn _mi_prim_thread_associate_default_theap(theap: *mut c_void);
    fn mi_manage_memory(
        start: *mut c_void,
        size: usize,
        is_committed: bool,
        is_pinned: bool,
        is_zero: bool,
        numa_node: c_int,
        exclusive: bool,
        commit: Commit,
        argument: *mut c_void,
        arena: *mut *mut c_void,
    ) -> bool;
}

/// Ends a thread's use of mimalloc behind the gate, because it acquires locks that must not be held during a fork. (By
/// itself mimalloc would do so after all thread-local values are gone.)
struct Leaves;

impl Drop for Leaves {
    fn drop(&mut self) {
        if let Some(source) = Mi::one().get() {
            // SAFETY: both may be called at any time; if the thread uses mimalloc again, it is initialized anew. The
            // second call keeps mimalloc from ending the thread itself later, with state that is gone.
            source.apart_from_forks(|| unsafe {
                mi::mi_thread_done();
                _mi_prim_thread_associate_default_theap(null_mut());
            });
        }
    }
}

thread_local! {
    static LEAVES: Leaves = const { Leaves };
}

/// The number of arenas given to mimalloc.
static ARENAS: AtomicUsize = AtomicUsize::new(0);

/// Commits or decommits a part of an arena. Memory that is not entirely fresh is never reported as zero, because
/// slices that were in use before are then marked as such (law 2).
unsafe extern "C" fn commit(open: bool, at: *mut c_void, size: usize, is_zero: *mut bool, _: *mut c_void) -> bool {
    let Some(source) = Mi::one().get() else { return false };
    if !open {
        source.space().close(at as usize, size);
        return true;
    }
    let opened = source.space().open(at as usize, size);
    // SAFETY: a non-null `is_zero` points to a variable of mimalloc's.
    if let Some(word) = unsafe { is_zero.as_mut() } {
        *word = opened == Ok(true);
    }
    opened.is_ok()
}

/// Sets the options before mimalloc's own constructor reads them. What `MIMALLOC_` variables ask for would be memory of its
/// own, which nobody could tell from the C library's, a map that is too small for our addresses, a process without
/// transparent huge pages, or statistics at its end, for which mimalloc asks a thread that it has taken leave of.
///
/// Idle memory is decommitted by our clock, which calls `mi_collect`; with a delay set, mimalloc records what can be
/// decommitted.
pub(super) fn load() {
    let options = [
        (SHOW_STATS, 0),
        (VERBOSE, 0),
        (RESERVE_HUGE_OS_PAGES, 0),
        (RESERVE_OS_MEMORY, 0),
        (DISALLOW_OS_ALLOC, 1),
        (DISALLOW_ARENA_ALLOC, 0),
        (PURGE_DELAY, c_long::from(i32::MAX)),
        (ARENA_PURGE_MULT, 1),
        (DESTROY_ON_EXIT, 0),
        (MAX_VABITS, 0),
        (PAGE_COMMIT_ON_DEMAND, 0),
        (ALLOW_THP, 1),
        (ARENA_MAX_OBJECT_SIZE, 2 << 20), // in KiB
    ];
    for (option, value) in options {
        // SAFETY: the options are those of version 3, and setting one only writes to it.
        unsafe { mi::mi_option_set(option, value) };
    }
}

/// Gives mimalloc an arena of `bytes`.
fn add_arena(source: &'static Mimalloc, bytes: usize) -> Result<(), Errno> {
    let at = source.take(bytes, SLICE)?;
    // SAFETY: from now on the range belongs to mimalloc alone, permanently, and is aligned to its slices; nothing is
    // committed before `commit` is called, and then it reads zero.
    let taken = unsafe {
        mi_manage_memory(at as *mut c_void, bytes, false, false, true, -1, false, commit, null_mut(), &mut null_mut())
    };
    if taken {
        ARENAS.fetch_add(1, Relaxed);
        return Ok(());
    }
    Err(source.space().take_refusal().unwrap_or(Errno::NO_MEMORY))
}

// SAFETY: mimalloc keeps the laws; all its blocks lie in arenas from `add_arena`, as it may not ask the system for
// memory.
unsafe impl Library for Mi {
    const NAME: &str = "mimalloc";
    const UNIT: usize = SLICE;
    const MAX_ALIGN: usize = SLICE;

    fn one() -> &'static First<Arc<Mimalloc>> {
        static ONE: First<Arc<Mimalloc>> = First::new();
        &ONE
    }

    fn start(source: &'static Mimalloc) -> Result<(), Errno> {
        // The first arena is small, in case all of it has to be mapped at once.
        add_arena(source, ARENA_STEP)?;
        if source.space().is_claimed() {
            add_arena(source, ARENA_CLAIMED)?;
        }
        Ok(())
    }

    fn grow(source: &'static Mimalloc, bytes: usize) -> bool {
        let arenas = ARENAS.load(Relaxed);
        let usual = if source.space().is_claimed() {
            ARENA_CLAIMED << (arenas / 2).min(3)
        } else {
            ARENA_STEP << (arenas / 8).min(4)
        };
        // mimalloc's metadata occupies a part of the arena.
        let least = (bytes + bytes / 256 + ARENA_STEP).next_multiple_of(ARENA_STEP);
        let sizes = [usual.max(least).min(ARENA_MAX), least];
        sizes.into_iter().any(|size| add_arena(source, size).is_ok())
    }

    fn allocate(request: Request) -> *mut u8 {
        let (size, align, zeroed) = (request.size(), request.align(), request.is_zeroed());
        let _ = LEAVES.try_with(|_| ());
        // SAFETY: the alignment is a power of two.
        unsafe {
            let block = if zeroed { mi::mi_zalloc_aligned(size, align) } else { mi::mi_malloc_aligned(size, align) };
            block.cast()
        }
    }

    unsafe fn free(block: *mut u8) {
        // SAFETY: a live block of mimalloc that nobody uses (`Embedded::deallocate`).
        unsafe { mi::mi_free(block.cast()) }
    }

    unsafe fn usable(block: *mut u8) -> usize {
        // SAFETY: a live block of mimalloc (`Embedded::usable_size`).
        unsafe { mi::mi_usable_size(block.cast()) }
    }

    unsafe fn resize(_: *mut u8, _: usize) -> bool {
        false
    }

    fn purge() {
        // SAFETY: both may be called at any time. A thread that has requested nothing yet, such as the background purger,
        // collects nothing before it is initialized.
        unsafe {
            mi::mi_thread_init();
            mi::mi_collect(true);
        }
    }
}
