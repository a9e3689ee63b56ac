//! The front for what is no array, in the place of CPython's allocator of the raw domain, to which `bytes`, `bytearray`, the
//! buffers of lists, dictionaries and strings come once they are too large for CPython's own arenas.
//!
//! CPython lets an extension wrap this allocator at any time, and threads call it meanwhile, without the GIL and in any
//! interpreter of the process. So:
//!
//! - The functions take nothing from their context, which is null as that of CPython's own: while the five words of the
//!   allocator are replaced, a thread may read some of either. Nothing is served until all of them are in place, and whoever
//!   sees the limit from which on it is served sees them, too.
//! - They stay for ever, as blocks of ours do: uninstalling only stops new ones. Whoever wraps them later calls them, and
//!   puts them back at its end. Whoever wrapped CPython's functions before would put those back, which cannot free our
//!   blocks: then nothing is wrapped. So does a program that initializes Python again, from 3.12 on: nothing is served once
//!   the interpreter has ended.
//! - They call no Python.
//!
//! Arrays of NumPy 2.5 and newer would come this way, too. They keep NumPy's default capsule: behind this one, NumPy would
//! advise huge pages on blocks of ours, and traces and profiles would miss its small arrays.

#![allow(unsafe_code)] // Safety: CPython's documented structure, checked before it is wrapped; blocks go to their makers.

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

/// A block of CPython's own that is smaller than this moves to the pool when it grows. A larger one was made before, and stays
/// where it is: `malloc` may have its pages moved where we would copy them.
const MOVED: usize = 8 * SMALL_LIMIT;

/// The handler that the functions below use, once they stand there.
static FRONT: AtomicPtr<Handler> = AtomicPtr::new(null_mut());
/// CPython's own `free`.
static FREE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// Whether CPython's own functions are those of `malloc`, which knows the size of a block. It is known up to this version.
const LAST_ON_MALLOC: (u8, u8) = (3, 14);
static IS_MALLOC: AtomicBool = AtomicBool::new(false);

/// The handler behind the raw domain, if it stands there.
pub fn front() -> Option<&'static Handler> {
    // SAFETY: null, or a handler that was leaked.
    unsafe { FRONT.load(Acquire).as_ref() }
}

/// Puts the handler there, or says why not. It serves nothing until an allocator replaces its own. The caller sees to it
/// that this is not called twice at a time.
pub fn put(py: Python<'_>) -> Result<&'static Handler, &'static str> {
    if let Some(front) = front() {
        return Ok(front);
    }
    // SAFETY: they have had these types since CPython 3.5.
    let found: (Option<Exchange>, Option<Exchange>) =
        unsafe { (symbol(c"PyMem_GetAllocator"), symbol(c"PyMem_SetAllocator")) };
    let (Some(get), Some(set)) = found else { return Err("this Python has no PyMem_SetAllocator") };
    let mut own = RawDomain { ctx: null_mut(), malloc: None, calloc: None, realloc: None, free: None };
    // SAFETY: CPython's own functions, with a structure of theirs.
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
    // SAFETY: the functions may be called by any thread from now on, beside those that were there, with either's context.
    unsafe { set(RAW, &mut ours) };
    // SAFETY: a function that runs no Python. Where there is no room for it, a second interpreter has blocks of ours.
    unsafe { ffi::Py_AtExit(Some(close)) };
    Ok(front)
}

/// Leaves all requests to CPython from now on.
pub extern "C" fn close() {
    if let Some(front) = front() {
        front.set_small(usize::MAX);
    }
}

thread_local! {
    static PASSING: Cell<bool> = const { Cell::new(false) };
}

/// Calls NumPy's own functions, whose requests then go on to CPython's.
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
    // SAFETY: the handler's own context.
    handler::traced(unsafe { handler::malloc(ctx(), size) }, size, false, false)
}

unsafe extern "C" fn calloc(_: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: as above.
    handler::traced(unsafe { handler::calloc(ctx(), count, size) }, count.saturating_mul(size), true, false)
}

unsafe extern "C" fn free(_: *mut c_void, pointer: *mut c_void) {
    // SAFETY: a live block of ours or of CPython's own function.
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

/// At least the bytes that were asked for a live block; the largest number where that is not known.
///
/// # Safety
/// It lives, or is null.
unsafe fn used(pointer: *mut c_void) -> usize {
    let Some(address) = NonNull::new(pointer.cast::<u8>()) else { return 0 };
    // SAFETY: as demanded.
    unsafe {
        let ours = if address_map::is_foreign(pointer as usize) { None } else { usable(address) };
        ours.or_else(|| used_behind(pointer)).unwrap_or(usize::MAX)
    }
}

/// The usable bytes of a block of ours; `None` of CPython's own, which may lie in a slot that has blocks of ours, too.
///
/// # Safety
/// It lives.
#[inline(always)]
unsafe fn usable(address: NonNull<u8>) -> Option<usize> {
    // SAFETY: as demanded; the owner is asked of its own block.
    unsafe {
        match owners::find(address) {
            Owner::Nobody => None,
            Owner::Segment(owner) => Some(owner.usable_size(address)),
            Owner::Keeper(owner) => Some(owner.usable_size(address)),
            Owner::Gone => Some(0), // never: what was installed stays
        }
    }
}

/// The usable bytes of a block of CPython's own functions, where those are `malloc`'s, which tells.
///
/// # Safety
/// It lives.
unsafe fn used_behind(pointer: *mut c_void) -> Option<usize> {
    // SAFETY: as demanded.
    IS_MALLOC.load(Relaxed).then(|| unsafe { os::c_usable(pointer) })
}

unsafe extern "C" fn free_behind(_: *mut c_void, pointer: *mut c_void, _: usize) {
    // SAFETY: CPython's own function, which was stored before any that calls this, and one of its blocks.
    unsafe { transmute::<*mut c_void, Free>(FREE.load(Relaxed))(null_mut(), pointer) }
}

unsafe extern "C" fn realloc(_: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as for `free`.
    unsafe {
        if trace::is_on() {
            return handler::traced_resize(pointer, used(pointer), size, false, || resize(pointer, size));
        }
        resize(pointer, size)
    }
}

/// # Safety
/// As for `realloc`.
#[inline(always)]
unsafe fn resize(pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as demanded.
    unsafe {
        let (ctx, next) = (ctx(), handler::handler(ctx()).next());
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

/// A block of CPython's own functions that grows over the border, or beyond it.
///
/// # Safety
/// It lives.
unsafe fn grow(address: NonNull<u8>, size: usize) -> *mut c_void {
    // SAFETY: as demanded; the blocks do not overlap, and the old one goes after the copy.
    unsafe {
        let (front, pointer) = (handler::handler(ctx()), address.as_ptr().cast());
        let next = front.next();
        let moves = size >= front.small() && !passes();
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
