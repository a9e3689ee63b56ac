//! mimalloc, built from its C sources: the library's own heap, sizes, and rules about what it keeps.
//!
//! mimalloc does not handle forks, so a fork waits until no thread is inside of it.

use super::listed::{Library, Listed};
use crate::allocator::{Description, Request};
use crate::os;
use crate::sync::first::First;
use crate::sync::lock::{Lock, Padded};
use libmimalloc_sys as mi;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// See the module.
pub type Mimalloc = Listed<MimallocLibrary>;

/// The library's functions.
pub struct MimallocLibrary;

/// Held by each thread that is inside: one of them for each processor, so that threads seldom wait for each other.
/// A fork holds all of them.
pub(crate) static GATE: [Padded<Lock<()>>; 64] = [const { Padded(Lock::new(())) }; 64];

/// Runs `call`, which enters mimalloc.
fn inside<T>(call: impl FnOnce() -> T) -> T {
    let _held = GATE[os::current_processor() % GATE.len()].0.lock();
    call()
}

// At the end of the process, these would have mimalloc ask the main thread, which has left it (`Leaves`), for statistics.
// The bindings lack the numbers.
const SHOW_STATS: c_int = 1;
const VERBOSE: c_int = 2;
const _: () = assert!(mi::_mi_option_last == 47, "mimalloc's options have changed: check the numbers above");

unsafe extern "C" {
    fn _mi_prim_thread_associate_default_theap(theap: *mut c_void);
}

/// Ends a thread's use of mimalloc, which acquires mimalloc's locks, inside of the gate. By itself mimalloc would do so
/// after all thread-local values are gone, while another thread may fork. On Windows, which has no forks, it does.
struct Leaves;

impl Drop for Leaves {
    fn drop(&mut self) {
        // SAFETY: both may be called at any time; a thread that uses mimalloc again is initialized anew. The second call
        // keeps mimalloc from ending the thread once more.
        inside(|| unsafe {
            mi::mi_thread_done();
            _mi_prim_thread_associate_default_theap(null_mut());
        });
    }
}

thread_local! {
    static LEAVES: Leaves = const { Leaves };
}

impl Mimalloc {
    /// Returns the process's mimalloc.
    pub fn get() -> Arc<Self> {
        static ONE: First<Arc<Mimalloc>> = First::new();
        let make = || {
            // SAFETY: these are options of version 3, and setting one only writes to it.
            [SHOW_STATS, VERBOSE].into_iter().for_each(|option| unsafe { mi::mi_option_set(option, 0) });
            Self::on(MimallocLibrary)
        };
        ONE.get_or_make(make).clone()
    }
}

// SAFETY: mimalloc does, and so does what it frees at once or later.
unsafe impl Library for MimallocLibrary {
    const ALIGNS: bool = true;

    fn describe(&self) -> Description {
        Description::of("mimalloc")
    }

    fn take(&self, request: Request) -> (*mut u8, bool) {
        let (size, align) = (request.size(), request.align());
        if cfg!(unix) {
            let _ = LEAVES.try_with(|_| ());
        }
        // SAFETY: the alignment is a power of two.
        let raw = inside(|| unsafe {
            if request.is_zeroed() { mi::mi_zalloc_aligned(size, align) } else { mi::mi_malloc_aligned(size, align) }
        });
        (raw.cast(), request.is_zeroed())
    }

    unsafe fn give_back(&self, raw: *mut u8, _given: usize) {
        // SAFETY: as demanded.
        inside(|| unsafe { mi::mi_free(raw.cast()) });
    }

    unsafe fn usable(&self, raw: *mut u8, _given: usize) -> usize {
        // SAFETY: as demanded.
        unsafe { mi::mi_usable_size(raw.cast()) }
    }

    fn trim(&self) {
        // SAFETY: both may be called at any time; a thread that has requested nothing yet has to be initialized first.
        inside(|| unsafe {
            mi::mi_thread_init();
            mi::mi_collect(true);
        });
    }
}
