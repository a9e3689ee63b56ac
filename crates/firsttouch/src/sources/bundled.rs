//! jemalloc and mimalloc, built from their C sources: each library's own heap, sizes, and rules about what it keeps. A build
//! may lack them.

use crate::factory::{Arguments, Error};
use crate::spec::{MakeResult, Spec};
#[cfg(all(feature = "jemalloc", unix))]
pub use jemalloc::Jemalloc;
#[cfg(feature = "mimalloc")]
pub(crate) use mimalloc::GATE;
#[cfg(feature = "mimalloc")]
pub use mimalloc::Mimalloc;

/// The declaration.
pub const SPECS: &[Spec] = &[
    Spec {
        name: "jemalloc",
        summary: "the process's jemalloc, the allocator of FreeBSD and Meta, built in.",
        options: &[],
        positional: 0,
        notes: "A build of firsttouch without it raises :exc:`UnsupportedError`.",
        example: "\
>>> ft.jemalloc().zeros(3)
array([0., 0., 0.])",
    },
    Spec {
        name: "mimalloc",
        summary: "the process's mimalloc, Microsoft's allocator, built in.",
        options: &[],
        positional: 0,
        notes: "A build of firsttouch without it raises :exc:`UnsupportedError`.",
        example: "\
>>> ft.mimalloc().zeros(3)
array([0., 0., 0.])",
    },
];

pub fn make(arguments: &Arguments) -> MakeResult {
    match arguments.name() {
        #[cfg(all(feature = "jemalloc", unix))]
        "jemalloc" => Ok(Jemalloc::get()),
        #[cfg(feature = "mimalloc")]
        "mimalloc" => Ok(Mimalloc::get()),
        lacks => Err(Error::Unsupported(format!("this build of firsttouch does not include {lacks}"))),
    }
}

/// Lets the libraries that handle forks themselves register their handlers.
pub(crate) fn register_fork_handlers() {
    #[cfg(all(feature = "jemalloc", unix))]
    jemalloc::initialize();
}

#[cfg(all(feature = "jemalloc", unix))]
mod jemalloc {
    use crate::allocator::{Description, Request};
    use crate::sources::library::{Library, LibraryAllocator};
    use crate::sync::OnceBox;
    use std::ffi::CStr;
    use std::ptr::null_mut;
    use std::sync::Arc;
    use tikv_jemalloc_sys as je;

    /// The library. It handles forks itself.
    pub type Jemalloc = LibraryAllocator<JemallocLibrary>;

    /// The library's functions.
    pub struct JemallocLibrary;

    /// Does what jemalloc's own constructor does, if that was not called yet: it registers jemalloc's fork handlers.
    pub fn initialize() {
        // SAFETY: nallocx(3) takes any size but zero, and only computes one.
        unsafe { je::nallocx(1, 0) };
    }

    /// mallctl(3), for commands without arguments.
    fn command(name: &CStr) {
        // SAFETY: the name ends with a zero; with null pointers mallctl(3) reads and writes no values.
        unsafe { je::mallctl(name.as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
    }

    impl Jemalloc {
        /// Returns the process's jemalloc.
        pub fn get() -> Arc<Self> {
            static ONE: OnceBox<Arc<Jemalloc>> = OnceBox::new();
            ONE.get_or_init(|| Box::new(Self::on(JemallocLibrary))).clone()
        }
    }

    // SAFETY: jemalloc's functions keep malloc's contract in any thread.
    unsafe impl Library for JemallocLibrary {
        const ALIGNS: bool = true;
        const CALLS_OUT: bool = true; // it has thread-local data

        fn describe(&self) -> Description {
            Description::of("jemalloc")
        }

        fn allocate(&self, request: Request) -> (*mut u8, bool) {
            let zero = if request.is_zeroed() { je::MALLOCX_ZERO } else { 0 };
            // SAFETY: the size is not zero, and the alignment is a power of two.
            let raw = unsafe { je::mallocx(request.size(), je::MALLOCX_ALIGN(request.align()) | zero) };
            (raw.cast(), request.is_zeroed())
        }

        unsafe fn free(&self, raw: *mut u8, _given: usize) {
            // SAFETY: a block that `allocate` or `reallocate` returned, and that nobody uses any more.
            unsafe { je::dallocx(raw.cast(), 0) }
        }

        unsafe fn reallocate(&self, raw: *mut u8, request: Request) -> *mut u8 {
            // SAFETY: a live block of jemalloc's; the size is not zero, and the alignment is a power of two.
            unsafe { je::rallocx(raw.cast(), request.size(), je::MALLOCX_ALIGN(request.align())).cast() }
        }

        unsafe fn usable_size(&self, raw: *mut u8, _given: usize) -> usize {
            // SAFETY: a live block of jemalloc's.
            unsafe { je::sallocx(raw.cast(), 0) }
        }

        fn trim(&self) {
            command(c"thread.tcache.flush");
            command(c"arena.4096.purge"); // 4096 stands for all arenas
        }
    }
}

#[cfg(feature = "mimalloc")]
mod mimalloc {
    use crate::allocator::{Description, Request};
    use crate::fork::FORKING;
    use crate::os;
    use crate::sources::library::{Library, LibraryAllocator};
    use crate::sync::OnceBox;
    use crate::sync::lock::{Lock, Padded};
    use libmimalloc_sys as mi;
    use std::ffi::{c_int, c_void};
    use std::sync::Arc;

    /// The library. It does not handle forks, so a fork waits until no thread is inside of it.
    pub type Mimalloc = LibraryAllocator<MimallocLibrary>;

    /// The library's functions.
    pub struct MimallocLibrary;

    /// A thread that is inside holds the lock of its processor, so that threads seldom wait for each other. A fork holds all.
    pub(crate) static GATE: [Padded<Lock<()>>; 64] = [const { Padded(Lock::new(())) }; 64];

    /// Runs `call`, which enters mimalloc.
    fn inside<T>(call: impl FnOnce() -> T) -> T {
        let _held = GATE[os::current_processor() % GATE.len()].0.lock();
        call()
    }

    // At the end of the process, these would have mimalloc ask the main thread, which may have left it, for statistics.
    // The bindings lack the numbers.
    const SHOW_STATS: c_int = 1;
    const VERBOSE: c_int = 2;
    const _: () = assert!(mi::_mi_option_last == 47, "mimalloc's options have changed: check the numbers above");

    #[cfg(unix)]
    unsafe extern "C" {
        /// mimalloc's key of thread-local values, whose destructor the C library calls when a thread ends.
        static mut _mi_heap_default_key: libc::pthread_key_t;
    }

    /// Ends this thread's use of mimalloc. That acquires mimalloc's locks, so it holds `GATE`: another thread may fork.
    #[cfg(unix)]
    unsafe extern "C" fn leave(_: *mut c_void) {
        // SAFETY: any thread may call it at any time; one that uses mimalloc again is initialized anew.
        inside(|| unsafe { mi::mi_thread_done() });
    }

    impl Mimalloc {
        /// Returns the process's mimalloc.
        pub fn get() -> Arc<Self> {
            static ONE: OnceBox<Arc<Mimalloc>> = OnceBox::new();
            let make = || {
                // SAFETY: these numbers are options, as checked above, and setting one only writes to it.
                [SHOW_STATS, VERBOSE].into_iter().for_each(|option| unsafe { mi::mi_option_set(option, 0) });
                // SAFETY: mimalloc's constructor has made the key. No thread uses it: all enter mimalloc through what is made here.
                #[cfg(unix)]
                unsafe {
                    libc::pthread_key_delete(_mi_heap_default_key);
                    libc::pthread_key_create(&raw mut _mi_heap_default_key, Some(leave));
                }
                Box::new(Self::on(MimallocLibrary))
            };
            let _held = FORKING.lock(); // the key is made once
            ONE.get_or_init(make).clone()
        }
    }

    // SAFETY: mimalloc's functions keep malloc's contract in any thread; a block may be freed by another thread than took it.
    unsafe impl Library for MimallocLibrary {
        const ALIGNS: bool = true;
        const CALLS_OUT: bool = true; // it has thread-local data

        fn describe(&self) -> Description {
            Description::of("mimalloc")
        }

        fn allocate(&self, request: Request) -> (*mut u8, bool) {
            let (size, align) = (request.size(), request.align());
            // SAFETY: mimalloc takes any size, and any power of two as an alignment.
            let raw = inside(|| unsafe {
                if request.is_zeroed() {
                    mi::mi_zalloc_aligned(size, align)
                } else {
                    mi::mi_malloc_aligned(size, align)
                }
            });
            (raw.cast(), request.is_zeroed())
        }

        unsafe fn free(&self, raw: *mut u8, _given: usize) {
            // SAFETY: a block that `allocate` or `reallocate` returned, and that nobody uses any more.
            inside(|| unsafe { mi::mi_free(raw.cast()) });
        }

        unsafe fn reallocate(&self, raw: *mut u8, request: Request) -> *mut u8 {
            // SAFETY: a live block of mimalloc's; the alignment is a power of two.
            inside(|| unsafe { mi::mi_realloc_aligned(raw.cast(), request.size(), request.align()) }).cast()
        }

        unsafe fn usable_size(&self, raw: *mut u8, _given: usize) -> usize {
            // SAFETY: a live block of mimalloc's.
            unsafe { mi::mi_usable_size(raw.cast()) }
        }

        fn trim(&self) {
            // SAFETY: any thread may call both at any time. The first initializes a thread that has requested nothing yet.
            inside(|| unsafe {
                mi::mi_thread_init();
                mi::mi_collect(true);
            });
        }
    }
}
