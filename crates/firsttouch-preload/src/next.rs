//! The C library's functions behind ours, whether we may stand before them, and memory for this library's own code.

use crate::life;
use firsttouch::os;
use libc::{c_int, c_void, size_t};
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{CStr, c_char, c_uint, c_ulong};
use std::mem::{MaybeUninit, transmute};
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

unsafe extern "C" {
    fn __libc_malloc(size: size_t) -> *mut c_void;
    fn __libc_calloc(count: size_t, size: size_t) -> *mut c_void;
    fn __libc_memalign(align: size_t, size: size_t) -> *mut c_void;
    fn __libc_free(address: *mut c_void);
    fn dladdr1(address: *const c_void, found: *mut libc::Dl_info, more: *mut *mut c_void, flags: c_int) -> c_int;
    fn gnu_get_libc_version() -> *const c_char;
}

/// Declares the functions that we define, whose next definition serves all other requests: a name for each, and a function that
/// calls that definition.
///
/// Each is looked up by its name alone. So a library behind ours gets calls of all that it defines and of nothing else, as without
/// us: a program with an allocator of its own may leave out some of these names.
macro_rules! functions {
    ($($(unsafe $($never:block)?)? fn $name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        #[derive(Clone, Copy)]
        #[allow(non_camel_case_types)]
        pub enum Name { $($name),* }

        /// Their names, in the same order.
        const NAMES: &[&CStr] = &[$(
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            }
        ),*];

        $(
            #[inline(always)]
            pub $(unsafe $($never)?)? fn $name($($argument: $type),*) -> $output {
                type Function = $(unsafe $($never)?)? extern "C" fn($($type),*) -> $output;
                // SAFETY: the function of that name, and what it demands of its callers.
                #[allow(unused_unsafe)]
                unsafe { transmute::<*mut c_void, Function>(next(Name::$name))($($argument),*) }
            }
        )*
    };
}

functions! {
    fn malloc(size: usize) -> *mut c_void;
    fn calloc(count: usize, size: usize) -> *mut c_void;
    unsafe fn realloc(address: *mut c_void, size: usize) -> *mut c_void;
    unsafe fn free(address: *mut c_void) -> ();
    unsafe fn posix_memalign(result: *mut *mut c_void, align: usize, size: usize) -> c_int;
    fn aligned_alloc(align: usize, size: usize) -> *mut c_void;
    fn memalign(align: usize, size: usize) -> *mut c_void;
    unsafe fn malloc_usable_size(address: *mut c_void) -> usize;
    fn malloc_trim(pad: usize) -> c_int;
    unsafe fn madvise(address: *mut c_void, size: usize, advice: c_int) -> c_int;
    unsafe fn mprotect(address: *mut c_void, size: usize, access: c_int) -> c_int;
    unsafe fn pkey_mprotect(address: *mut c_void, size: usize, access: c_int, key: c_int) -> c_int;
    unsafe fn mlock(address: *const c_void, size: usize) -> c_int;
    unsafe fn mlock2(address: *const c_void, size: usize, flags: c_uint) -> c_int;
    unsafe fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int;
    fn exit(status: c_int) -> !;
    unsafe fn __libc_start_main(
        main: Main,
        count: c_int,
        words: *mut *mut c_char,
        first: *mut c_void,
        last: *mut c_void,
        of_loader: *mut c_void,
        stack: *mut c_void
    ) -> c_int;
}

/// The `main` of a program.
pub type Main = extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

/// How many of them are an allocator's.
const OF_ALLOCATORS: usize = Name::malloc_trim as usize + 1;

static NEXT: [AtomicPtr<c_void>; NAMES.len()] = [const { AtomicPtr::new(null_mut()) }; NAMES.len()];

/// The next definition of a function.
#[inline(always)]
pub fn next(name: Name) -> *mut c_void {
    let found = NEXT[name as usize].load(Relaxed);
    if found.is_null() { first(name) } else { found }
}

/// The first call of all, which may precede the constructor's. Looking names up may call `calloc` (glibc before 2.34).
#[cold]
#[inline(never)]
fn first(name: Name) -> *mut c_void {
    /// The thread that looks names up. (Where a function of the loader's calls, there is no thread-local data yet.)
    static LOOKING: AtomicUsize = AtomicUsize::new(0);
    let this = life::this_thread();
    let found = if LOOKING.swap(this, Relaxed) == this {
        match name {
            Name::malloc => __libc_malloc as *mut c_void,
            Name::calloc => __libc_calloc as *mut c_void,
            Name::free => __libc_free as *mut c_void,
            _ => null_mut(), // to look a name up, the loader needs none of the others
        }
    } else {
        look_up_names();
        LOOKING.store(0, Relaxed);
        NEXT[name as usize].load(Relaxed)
    };
    if found.is_null() {
        // SAFETY: abort has no preconditions. Without a C library the process cannot go on.
        unsafe { libc::abort() };
    }
    found
}

/// Looks all names up. To be called while the program is loaded: later, dlsym(3) may wait for another thread's dlopen(3),
/// and forgets the error that dlerror(3) would tell.
pub fn look_up_names() {
    for (function, &name) in NEXT.iter().zip(NAMES) {
        function.store(look_up(name), Relaxed);
    }
}

/// The next definition of a symbol behind ours; null where there is none.
pub fn look_up(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// The file of an allocator that is not the C library's, if the program has one: before ours, where ours is called for some
/// names only, or behind it. It may have functions that know its own blocks alone (jemalloc's `sdallocx`), and a sanitizer
/// has to see every block, so all of them are its own.
pub fn rival() -> Option<&'static CStr> {
    let (ours, _) = object(rival as *const c_void)?;
    let (of_libc, _) = object(gnu_get_libc_version as *const c_void)?;
    NAMES.iter().zip(&NEXT).take(OF_ALLOCATORS).find_map(|(name, next)| {
        // SAFETY: the name is a C string.
        let first = object(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) });
        let behind = object(next.load(Relaxed));
        let (_, file) =
            first.filter(|(base, _)| *base != ours).or_else(|| behind.filter(|(base, _)| *base != of_libc))?;
        Some(file)
    })
}

/// The address and the name of the file whose definition lies at an address; nothing where a program at a fixed address
/// only has an entry that stands for another's definition.
fn object(address: *const c_void) -> Option<(usize, &'static CStr)> {
    /// Begins as the symbol of a 64-bit file does.
    #[repr(C)]
    struct Symbol {
        name: c_uint,
        info: u8,
        other: u8,
        section: u16,
    }
    const WITH_SYMBOL: c_int = 1;
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    let mut symbol = null_mut();
    // SAFETY: the loader writes both, and its answer is a file that it does not unload: ours, the program, or one that
    // was loaded with it. Its symbol is null or begins as above.
    unsafe {
        if dladdr1(address, found.as_mut_ptr(), &raw mut symbol, WITH_SYMBOL) == 0 {
            return None;
        }
        let found = found.assume_init();
        let is_entry = symbol.cast::<Symbol>().as_ref().is_some_and(|symbol| symbol.section == 0);
        (!is_entry).then(|| (found.dli_fbase as usize, CStr::from_ptr(found.dli_fname)))
    }
}

/// Keeps errno over a call that has no business to change it.
pub fn keeping_errno<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: `__errno_location` has no preconditions.
    let place: *mut c_int = unsafe { libc::__errno_location() };
    // SAFETY: this thread's errno lies there as long as the thread runs.
    let before = unsafe { *place };
    let result = body();
    // SAFETY: this thread's errno still lies there, and nobody else uses it.
    unsafe { *place = before };
    result
}

/// Sets errno as an allocation that failed does.
pub fn out_of_memory() -> *mut c_void {
    // SAFETY: errno's place is this thread's.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    null_mut()
}

/// Memory for this library's own code where the C library's may be in the middle of a call: its top, and its end.
static APART: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Takes memory for this library's own code from elsewhere from now on, and frees none; whether there is some. Only for a
/// process that is about to end.
pub fn allocate_apart() -> bool {
    const ROOM: usize = 16 << 20;
    let Ok(start) = os::map_aligned(ROOM, os::page_size(), None) else { return false };
    APART[1].store(start + ROOM, Relaxed);
    APART[0].store(start, Relaxed);
    true
}

#[cold]
fn apart(layout: Layout) -> *mut u8 {
    let start = APART[0].fetch_add(layout.size() + layout.align(), Relaxed).next_multiple_of(layout.align());
    if start + layout.size() > APART[1].load(Relaxed) { null_mut() } else { with_exposed_provenance_mut(start) }
}

/// The C library's own allocator, for Rust.
pub struct CLibrary;

// SAFETY: the C library's allocator keeps Rust's contract; more than its alignment is asked of memalign.
unsafe impl GlobalAlloc for CLibrary {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        const ALIGN: usize = 16;
        if APART[0].load(Relaxed) != 0 {
            return apart(layout);
        }
        // SAFETY: memalign takes any power of two.
        let address = unsafe {
            match layout.align() <= ALIGN {
                true => __libc_malloc(layout.size()),
                false => __libc_memalign(layout.align(), layout.size()),
            }
        };
        address.cast()
    }

    unsafe fn dealloc(&self, address: *mut u8, _: Layout) {
        if APART[0].load(Relaxed) == 0 {
            // SAFETY: it came from `alloc`.
            unsafe { __libc_free(address.cast()) }
        }
    }
}
