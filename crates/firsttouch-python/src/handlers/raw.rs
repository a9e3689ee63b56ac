//! The front for large requests that are no arrays. It takes the place of CPython's allocator of the raw domain, which serves
//! `bytes`, `bytearray`, and the buffers of lists, dictionaries and strings once they are too large for CPython's own arenas.
//!
//! CPython lets an extension replace this allocator at any time. Threads call it meanwhile, without the GIL and in any
//! interpreter of the process. So:
//!
//! - The functions use nothing of their context, which is null as it is for CPython's own: while the five words of the
//!   allocator are replaced, a thread may read some of the old and some of the new ones. Nothing is served until all five are
//!   in place, and a thread that sees the lowered small limit sees them, too.
//! - They stay for ever, as blocks of ours may: uninstalling only stops new blocks. A library that wraps them later calls
//!   them, and puts them back at its end. One that wrapped CPython's before us would put those back, which cannot free our
//!   blocks: then we replace nothing. So would a second interpreter (from 3.12 on): nothing is served once the first has ended.
//! - They call no Python, and do not let it go.
//!
//! NumPy 2.5 and newer would request arrays here, too, but is served through its default capsule: here it would advise huge
//! pages on blocks of ours, and traces and profiles would miss small arrays.

#![allow(unsafe_code)] // Safety: CPython's documented structure, checked before it is replaced; each block goes to its owner.

use crate::allocators::allocator::process_pool;
use crate::handlers::handler::{self, Handler, Kind};
use crate::numpy::Functions;
use crate::python::symbol;
use firsttouch::address_map;
use firsttouch::layout::SMALL_LIMIT;
use firsttouch::os;
use firsttouch::owners::{self, Owner};
use firsttouch_trace::trace;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

type Malloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Calloc = unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// CPython's `PyMemAllocatorEx`.
#[repr(C)]
struct RawDomain {
    ctx: *mut c_void,
    malloc: Option<Malloc>,
    calloc: Option<Calloc>,
    realloc: Option<Realloc>,
    free: Option<Free>,
}

/// `PyMem_GetAllocator` and `PyMem_SetAllocator`.
type Exchange = unsafe extern "C" fn(c_int, *mut RawDomain);
/// `PYMEM_DOMAIN_RAW`.
const RAW: c_int = 0;

/// A block of CPython's own that is smaller than this moves to the pool when it grows. A larger one is older than the pool's
/// service and stays with `malloc`, which can move its pages where we would copy them.
const MOVED: usize = 8 * SMALL_LIMIT;

/// The handler of the functions below, once these are in place.
static FRONT: AtomicPtr<Handler> = AtomicPtr::new(null_mut());
/// CPython's own `free`.
static FREE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// The last version whose own functions are known to be those of `malloc`, which knows the size of a block.
const LAST_ON_MALLOC: (u8, u8) = (3, 14);
/// Whether they are.
static IS_MALLOC: AtomicBool = AtomicBool::new(false);

/// The handler of the raw domain, if our functions are in place.
pub fn front() -> Option<&'static Handler> {
    // SAFETY: null, or a handler that was leaked.
    unsafe { FRONT.load(Acquire).as_ref() }
}

/// Puts our functions in place, or says why not. Nothing is served until an allocator is installed. No two threads may call
/// this at once.
pub fn put(py: Python<'_>) -> Result<&'static Handler, &'static str> {
    if let Some(front) = front() {
        return Ok(front);
    }
    // SAFETY: the two symbols, where they exist, have had these types since CPython 3.5.
    let found: (Option<Exchange>, Option<Exchange>) =
        unsafe { (symbol(c"PyMem_GetAllocator"), symbol(c"PyMem_SetAllocator")) };
    let (Some(get), Some(set)) = found else { return Err("this Python has no PyMem_SetAllocator") };
    let mut own = RawDomain { ctx: null_mut(), malloc: None, calloc: None, realloc: None, free: None };
    // SAFETY: CPython's own function, which fills a structure of its own type.
    unsafe { get(RAW, &mut own) };
    let RawDomain { ctx, malloc: Some(malloc), calloc: Some(calloc), realloc: Some(realloc), free: Some(free) } = own
    else {
        return Err("CPython's raw allocator lacks a function");
    };
    let python = os::library_of(get as *const c_void);
    let are_its_own =
        [malloc as *const c_void, calloc as _, realloc as _, free as _].map(|f| os::library_of(f) == python);
    if !ctx.is_null() || are_its_own.contains(&false) {
        return Err(
            "something wraps CPython's raw allocator already (tracemalloc, memray, PYTHONMALLOC=debug, or another \
                    library), and would end by taking ours away from under its blocks",
        );
    }
    FREE.store(free as *mut c_void, Relaxed);
    let version = py.version_info();
    IS_MALLOC.store((version.major, version.minor) <= LAST_ON_MALLOC, Relaxed);
    let behind = Functions { ctx, malloc, calloc, realloc, free: free_behind };
    let front: &'static Handler = Box::leak(Handler::new(Kind::Raw, process_pool().clone(), usize::MAX, behind));
    FRONT.store(std::ptr::from_ref(front).cast_mut(), Release);
    let mut ours = RawDomain {
        ctx: null_mut(),
        malloc: Some(self::malloc),
        calloc: Some(self::calloc),
        realloc: Some(self::realloc),
        free: Some(self::free),
    };
    // SAFETY: `FRONT` and `FREE`, which our functions need, are set; they may be called by any thread, with any context.
    unsafe { set(RAW, &mut ours) };
    // SAFETY: `close` runs no Python. (Where CPython has no room for it, we serve on after the interpreter has ended.)
    unsafe { ffi::Py_AtExit(Some(close)) };
    Ok(front)
}

/// Passes all requests on to CPython from now on.
pub extern "C" fn close() {
    if let Some(front) = front() {
        front.set_small_limit(usize::MAX);
    }
}

thread_local! {
    static PASSING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `call`, which calls NumPy's own functions: what they request here is passed on to CPython's.
pub fn passing<T>(call: impl FnOnce() -> T) -> T {
    let before = PASSING.replace(true);
    let result = call();
    PASSING.set(before);
    result
}

/// Whether this thread is inside of `passing`.
pub fn passes() -> bool {
    PASSING.get()
}

/// The handler, as the context of its functions.
#[inline(always)]
fn ctx() -> *mut c_void {
    FRONT.load(Relaxed).cast() // stored before the functions were
}

unsafe extern "C" fn malloc(_: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the context is our handler, which lives for ever.
    handler::traced(unsafe { handler::malloc(ctx(), size) }, size, false, false)
}

unsafe extern "C" fn calloc(_: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: the context is our handler, which lives for ever.
    handler::traced(unsafe { handler::calloc(ctx(), count, size) }, count.saturating_mul(size), true, false)
}

unsafe extern "C" fn free(_: *mut c_void, pointer: *mut c_void) {
    // SAFETY: null or a live block, as CPython demands of callers; it goes to its owner or to CPython's own `free`.
    unsafe {
        if trace::is_on() && !passes() {
            trace::on_free(pointer as usize, used(pointer));
        }
        if address_map::is_foreign(pointer as usize) {
            return free_behind(null_mut(), pointer, 0);
        }
        handler::free(ctx(), pointer, 0);
    }
}

/// The usable bytes of a block; `usize::MAX` where they are not known.
///
/// # Safety
/// It is live, or null.
unsafe fn used(pointer: *mut c_void) -> usize {
    let Some(address) = NonNull::new(pointer.cast::<u8>()) else { return 0 };
    // SAFETY: a live block, as demanded.
    unsafe {
        let ours = if address_map::is_foreign(pointer as usize) { None } else { usable(address) };
        ours.or_else(|| used_behind(pointer)).unwrap_or(usize::MAX)
    }
}

/// The usable bytes of a block if it is ours. (A slot with blocks of ours may have CPython's, too.)
///
/// # Safety
/// It is live.
#[inline(always)]
unsafe fn usable(address: NonNull<u8>) -> Option<usize> {
    // SAFETY: a live block, as demanded, of which its owner is asked.
    unsafe {
        match owners::find(address) {
            Owner::Nobody => None,
            Owner::Segment(owner) => Some((*owner).usable_size(address)),
            Owner::Keeper(owner) => Some(owner.usable_size(address)),
            Owner::Gone => Some(0), // never: what was installed stays
        }
    }
}

/// The usable bytes of a block of CPython's own functions, where `malloc` tells them.
///
/// # Safety
/// It is live.
unsafe fn used_behind(pointer: *mut c_void) -> Option<usize> {
    // SAFETY: a live block, as demanded, which is `malloc`'s.
    IS_MALLOC.load(Relaxed).then(|| unsafe { os::c_usable(pointer) })
}

unsafe extern "C" fn free_behind(_: *mut c_void, pointer: *mut c_void, _: usize) {
    // SAFETY: `FREE` has CPython's own function since before this one could be called, and the block is that function's.
    unsafe { transmute::<*mut c_void, Free>(FREE.load(Relaxed))(null_mut(), pointer) }
}

unsafe extern "C" fn realloc(_: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: null or a live block, as CPython demands of callers.
    unsafe {
        if trace::is_on() {
            return handler::traced_resize(pointer, used(pointer), size, false, || resize(pointer, size));
        }
        resize(pointer, size)
    }
}

/// # Safety
/// The block is live, or null; after success nobody uses the old address any more.
#[inline(always)]
unsafe fn resize(pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: a live block, as demanded, goes to who owns it. One that is copied has `used` bytes, and is freed afterwards.
    unsafe {
        let (ctx, next) = (ctx(), &handler::handler(ctx()).next);
        let Some(address) = NonNull::new(pointer.cast::<u8>()) else { return handler::malloc(ctx, size) };
        if address_map::is_foreign(pointer as usize) && size < SMALL_LIMIT {
            return (next.realloc)(next.ctx, pointer, size);
        }
        let Some(used) = usable(address) else { return grow(address, size) };
        if size >= SMALL_LIMIT || used == 0 {
            return handler::realloc(ctx, pointer, size);
        }
        let small = (next.malloc)(next.ctx, size);
        if !small.is_null() {
            small.copy_from_nonoverlapping(pointer, used.min(size));
            handler::free(ctx, pointer, 0);
        }
        small
    }
}

/// Resizes a block of CPython's own functions that is to have at least [`SMALL_LIMIT`] bytes: it may move to the pool.
///
/// # Safety
/// It is live; after success nobody uses the old address any more.
unsafe fn grow(address: NonNull<u8>, size: usize) -> *mut c_void {
    // SAFETY: a live block, as demanded; the new one does not overlap it, and it is freed after the copy.
    unsafe {
        let (front, pointer) = (handler::handler(ctx()), address.as_ptr().cast());
        let next = &front.next;
        let moves = size >= front.small_limit() && !passes();
        let Some(used) = used_behind(pointer).filter(|&used| moves && used < MOVED) else {
            return (next.realloc)(next.ctx, pointer, size);
        };
        let moved = handler::malloc(ctx(), size);
        if !moved.is_null() {
            moved.copy_from_nonoverlapping(pointer, used.min(size));
            (next.free)(next.ctx, pointer, 0);
        }
        moved
    }
}
