//! The allocation functions behind ours: the C library's or, in a program that replaced those too, the next ones.

use firsttouch::os;
use libc::{c_char, c_int, c_void, size_t};
use std::alloc::{GlobalAlloc, Layout};
use std::mem::transmute;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

unsafe extern "C" {
    fn __libc_malloc(size: size_t) -> *mut c_void;
    fn __libc_calloc(count: size_t, size: size_t) -> *mut c_void;
    fn __libc_realloc(address: *mut c_void, size: size_t) -> *mut c_void;
    fn __libc_memalign(align: size_t, size: size_t) -> *mut c_void;
    fn __libc_free(address: *mut c_void);
}

static MALLOC: AtomicPtr<c_void> = AtomicPtr::new(__libc_malloc as *mut c_void);
static CALLOC: AtomicPtr<c_void> = AtomicPtr::new(__libc_calloc as *mut c_void);
static REALLOC: AtomicPtr<c_void> = AtomicPtr::new(__libc_realloc as *mut c_void);
static MEMALIGN: AtomicPtr<c_void> = AtomicPtr::new(__libc_memalign as *mut c_void);
static FREE: AtomicPtr<c_void> = AtomicPtr::new(__libc_free as *mut c_void);
/// These have no second names in glibc, so they are looked up.
static USABLE_SIZE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static TRIM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static ALIGNED_ALLOC: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

#[inline(always)]
pub fn malloc(size: usize) -> *mut c_void {
    // SAFETY: the pointer is that of a function like malloc, by its initial value or by `use_replaced`.
    unsafe { transmute::<*mut c_void, extern "C" fn(usize) -> *mut c_void>(MALLOC.load(Relaxed))(size) }
}

#[inline(always)]
pub fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`.
    unsafe { transmute::<*mut c_void, extern "C" fn(usize, usize) -> *mut c_void>(CALLOC.load(Relaxed))(count, size) }
}

/// # Safety
/// As for realloc(3).
#[inline(always)]
pub unsafe fn realloc(address: *mut c_void, size: usize) -> *mut c_void {
    type Function = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
    // SAFETY: as for `malloc`; a live block of the C library's, as realloc(3) demands (`entry.rs`, `large.rs`).
    unsafe { transmute::<*mut c_void, Function>(REALLOC.load(Relaxed))(address, size) }
}

pub fn memalign(align: usize, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`.
    unsafe { transmute::<*mut c_void, extern "C" fn(usize, usize) -> *mut c_void>(MEMALIGN.load(Relaxed))(align, size) }
}

/// # Safety
/// As for free(3).
#[inline(always)]
pub unsafe fn free(address: *mut c_void) {
    // SAFETY: as for `malloc`; a live block of the C library's, as free(3) demands (`entry.rs`, `large.rs`).
    unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(FREE.load(Relaxed))(address) }
}

/// # Safety
/// As for malloc_usable_size(3).
pub unsafe fn usable_size(address: *mut c_void) -> usize {
    let function = USABLE_SIZE.load(Relaxed);
    if function.is_null() || address.is_null() {
        return 0;
    }
    // SAFETY: the function of that name; a live block of the C library's, as malloc_usable_size(3) demands (`entry.rs`,
    // `large.rs`).
    unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> usize>(function)(address) }
}

/// aligned_alloc(3) of the C library: which alignments it refuses depends on its version.
pub fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    let function = ALIGNED_ALLOC.load(Relaxed);
    if function.is_null() {
        return memalign(align, size);
    }
    // SAFETY: the function of that name.
    unsafe { transmute::<*mut c_void, extern "C" fn(usize, usize) -> *mut c_void>(function)(align, size) }
}

/// malloc_trim(3) of the C library.
pub fn trim(pad: usize) -> c_int {
    let function = TRIM.load(Relaxed);
    if function.is_null() {
        return 0;
    }
    // SAFETY: the function of that name.
    unsafe { transmute::<*mut c_void, extern "C" fn(usize) -> c_int>(function)(pad) }
}

/// The next definition of a symbol behind ours; null where there is none.
pub fn look_up(name: *const c_char) -> *mut c_void {
    // SAFETY: the name is a C string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name) }
}

/// Looks up what has no second name. To be called while the program is loaded: later, dlsym(3) may wait for another
/// thread's dlopen(3), and forgets the error that dlerror(3) would tell.
pub fn look_up_names() {
    for (function, name) in
        [(&USABLE_SIZE, c"malloc_usable_size"), (&TRIM, c"malloc_trim"), (&ALIGNED_ALLOC, c"aligned_alloc")]
    {
        function.store(look_up(name.as_ptr()), Relaxed);
    }
}

/// Passes everything on to whoever replaced the C library's functions, instead of going around them.
pub fn use_replaced() {
    for (function, name) in
        [(&MALLOC, c"malloc"), (&CALLOC, c"calloc"), (&REALLOC, c"realloc"), (&MEMALIGN, c"memalign"), (&FREE, c"free")]
    {
        let found = look_up(name.as_ptr());
        if !found.is_null() {
            function.store(found, Relaxed);
        }
    }
}

/// Keeps errno over a call that has no business to change it.
pub fn keeping_errno<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: errno's place is this thread's.
    let place: *mut c_int = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *place };
    let result = body();
    // SAFETY: as above.
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
/// process with one thread that is about to end.
pub fn allocate_apart() -> bool {
    const ROOM: usize = 16 << 20;
    let Ok(start) = os::map_anywhere(ROOM) else { return false };
    APART[1].store(start + ROOM, Relaxed);
    APART[0].store(start, Relaxed);
    true
}

#[cold]
fn apart(layout: Layout) -> *mut u8 {
    let start = APART[0].load(Relaxed).next_multiple_of(layout.align());
    let end = start + layout.size();
    if end > APART[1].load(Relaxed) {
        return null_mut();
    }
    APART[0].store(end, Relaxed);
    with_exposed_provenance_mut(start)
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
