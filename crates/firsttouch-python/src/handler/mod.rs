//! NumPy's handlers (NEP 49) in front of allocators.
//!
//! Small requests go straight on to the next handler, uncounted; so does an address that is not ours. The size that
//! NumPy passes is never trusted. All kinds take blocks back in the same way, by the address's owner (`back`).

#![allow(unsafe_code)] // Safety: NumPy calls these with its own living blocks; law 4 says how an owner is found.

mod back;
mod watched;

use crate::allocator::has_slabs;
use crate::guarded_by_gil::GuardedByGil;
use crate::numpy_api::{Functions, RawAllocator, RawHandler};
use crate::owners;
use back::{free, free_owned, realloc};
use firsttouch::allocator::{Allocator, Request};
use firsttouch::scratch::Scope;
use firsttouch_trace::profile;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use watched::{calloc_watched, free_watched, malloc_watched, realloc_watched};

/// The name of a context's handler. Behind the name's end it stands in every handler, so that copies of this package
/// know each other.
pub const NAME: &str = "firsttouch";
/// The name of NumPy's default handler. The one that stands in front of it carries it too: there are programs, NumPy's
/// own tests among them, that know the default by its name.
pub const NUMPY_NAME: &str = "default_allocator";

/// Whom a handler serves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The process: blocks of any allocator that was ever installed come back to it.
    Front,
    /// A context; small requests of pools go on to NumPy.
    Context,
    /// Our constructors: what goes on goes to the C library.
    Direct,
    /// A scope; arrays too small for it go on to NumPy.
    Scope,
}

/// An allocator in charge, and its direct handler's capsule once somebody needs it.
pub struct Charge {
    pub allocator: Arc<dyn Allocator>,
    pub direct: PyOnceLock<Py<PyAny>>,
    /// Whether its arrays are to lie in slabs along an axis.
    pub slabs: bool,
}

/// A handler with what its functions need. NumPy sees only `raw`.
#[repr(C)]
pub struct Handler {
    raw: UnsafeCell<RawHandler>,
    /// Requests below this many bytes go on to `next`.
    small: AtomicUsize,
    /// The handler that small requests and foreign addresses go to.
    next: Functions,
    /// The allocator in charge, boxed; replaced ones are kept, as their blocks may live.
    charge: AtomicPtr<Charge>,
    /// The allocator in charge, where that is a scope or a buffer: it takes its own blocks back itself.
    scope: Option<Arc<Scope>>,
    /// What served before the scope: the capsule of another handler.
    before: Option<GuardedByGil<Py<PyAny>>>,
    kind: Kind,
    /// Whether blocks that are nobody else's are its allocator's, which can't tell: the C library's.
    has_rest: bool,
    /// Whether the gauge is told of every block.
    watched: AtomicBool,
}

// SAFETY: the fields that change are atomic, and allocators may be used from any thread.
unsafe impl Sync for Handler {}
// SAFETY: as above.
unsafe impl Send for Handler {}

fn charge(allocator: Arc<dyn Allocator>) -> *mut Charge {
    let slabs = has_slabs(&allocator);
    Box::into_raw(Box::new(Charge { allocator, direct: PyOnceLock::new(), slabs }))
}

impl Handler {
    /// A handler whose functions lead to `allocator`, requests below `small` bytes and foreign addresses to `next`.
    pub fn new(kind: Kind, allocator: Arc<dyn Allocator>, small: usize, next: Functions) -> Box<Self> {
        Self::build(kind, allocator, small, next, None)
    }

    /// The handler of a scope, which knows what served before it.
    pub fn of_scope(scope: Arc<Scope>, small: usize, next: Functions, before: Py<PyAny>) -> Box<Self> {
        Self::build(Kind::Scope, scope, small, next, Some(GuardedByGil::new(before)))
    }

    fn build(
        kind: Kind,
        allocator: Arc<dyn Allocator>,
        small: usize,
        next: Functions,
        before: Option<GuardedByGil<Py<PyAny>>>,
    ) -> Box<Self> {
        owners::enter(&allocator);
        let any: Arc<dyn Any + Send + Sync> = allocator.clone();
        let scope = any.downcast::<Scope>().ok();
        let has_rest = small == 0 && kind != Kind::Scope && kind != Kind::Front && !owners::can_tell(&*allocator);
        let free: Free = if has_rest { free_owned } else { free };
        let bytes = names(if kind == Kind::Front { NUMPY_NAME } else { NAME });
        let mut handler = Box::new(Self {
            raw: UnsafeCell::new(RawHandler { name: bytes, version: 1, allocator: RawAllocator::NONE }),
            small: AtomicUsize::new(small),
            next,
            charge: AtomicPtr::new(charge(allocator)),
            scope,
            before,
            kind,
            has_rest,
            watched: AtomicBool::new(false),
        });
        let ctx = std::ptr::from_mut(handler.as_mut()).cast();
        handler.raw.get_mut().allocator =
            RawAllocator { ctx, malloc: Some(malloc), calloc: Some(calloc), realloc: Some(realloc), free: Some(free) };
        handler
    }

    pub fn raw(&self) -> *const RawHandler {
        self.raw.get()
    }

    /// The functions that NumPy calls.
    pub fn functions(&self) -> RawAllocator {
        // SAFETY: a function changes only to one that takes the same blocks, and gives the same.
        unsafe { (*self.raw.get()).allocator }
    }

    /// Tells the gauge of every block from now on, or of none. For the front.
    pub fn watch(&self, on: bool) {
        self.watched.store(on, Relaxed);
        self.choose();
    }

    /// Puts the front's functions in place.
    fn choose(&self) {
        let chosen: [*mut c_void; 4] = match self.watched.load(Relaxed) {
            true => [malloc_watched as _, calloc_watched as _, realloc_watched as _, free_watched as _],
            false => [malloc as _, calloc as _, realloc as _, free as _],
        };
        // SAFETY: aligned pointers, each stored at once; any mix of these functions takes the same blocks.
        unsafe {
            let RawAllocator { malloc, calloc, realloc, free, .. } = &mut (*self.raw.get()).allocator;
            let places: [*mut *mut c_void; 4] = [
                (&raw mut *malloc).cast(),
                (&raw mut *calloc).cast(),
                (&raw mut *realloc).cast(),
                (&raw mut *free).cast(),
            ];
            places
                .iter()
                .zip(chosen)
                .for_each(|(&place, function)| AtomicPtr::from_ptr(place).store(function, Release));
        }
    }

    /// Lets another allocator serve from now on; the one before is kept for its blocks.
    pub fn replace(&self, allocator: Arc<dyn Allocator>, small: usize) {
        owners::enter(&allocator);
        self.charge.store(charge(allocator), Release);
        self.small.store(small, Relaxed);
    }

    /// Sends every request on, or only those below `small` bytes.
    pub fn set_small(&self, small: usize) {
        self.small.store(small, Relaxed);
    }

    pub fn small(&self) -> usize {
        self.small.load(Relaxed)
    }

    pub fn charge(&self) -> &Charge {
        // SAFETY: the box lives as long as the handler, or for ever where it was replaced.
        unsafe { &*self.charge.load(Acquire) }
    }

    pub fn allocator(&self) -> &Arc<dyn Allocator> {
        &self.charge().allocator
    }

    /// The scope whose handler it is, and what served before.
    pub fn scope(&self) -> Option<(&Arc<Scope>, &GuardedByGil<Py<PyAny>>)> {
        self.scope.as_ref().zip(self.before.as_ref())
    }

    /// The allocator in charge, where that is a scope, or a buffer outside all scopes.
    pub fn serving_scope(&self) -> Option<&Arc<Scope>> {
        self.scope.as_ref()
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Our handler behind NumPy's pointer, if it is one of this copy's.
    ///
    /// # Safety
    /// The pointer is a living handler.
    pub unsafe fn from_raw<'a>(raw: *const RawHandler) -> Option<&'a Self> {
        // SAFETY: `malloc` is this copy's own function, so `raw` is the first field of a Handler.
        unsafe {
            let ours = (*raw).allocator.malloc.is_some_and(|f| {
                let own: [unsafe extern "C" fn(_, _) -> _; 2] = [malloc, malloc_watched];
                own.iter().any(|&own| std::ptr::fn_addr_eq(f, own))
            });
            ours.then(|| &*raw.cast::<Self>())
        }
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: nobody uses the handler any more, and the box was made by `charge`.
        unsafe { drop(Box::from_raw(*self.charge.get_mut())) }
    }
}

/// A handler's name, with ours behind its end.
pub fn names(name: &str) -> [c_char; 127] {
    let mut bytes = [0; 127];
    for (to, from) in bytes.iter_mut().zip(name.bytes().chain([0]).chain(NAME.bytes())) {
        *to = from as c_char;
    }
    bytes
}

/// Whether a handler is a front of this package, of this copy or another.
pub fn is_front(raw: &RawHandler) -> bool {
    let bytes: Vec<u8> = raw.name.iter().map(|&c| c as u8).collect();
    let parts: Vec<&[u8]> = bytes.split(|&c| c == 0).take(2).collect();
    parts == [NUMPY_NAME.as_bytes(), NAME.as_bytes()]
}

type Free = unsafe extern "C" fn(*mut c_void, *mut c_void, usize);

/// # Safety
/// `ctx` is a living [`Handler`].
#[inline(always)]
unsafe fn handler<'a>(ctx: *mut c_void) -> &'a Handler {
    // SAFETY: the caller's promise.
    unsafe { &*ctx.cast::<Handler>() }
}

unsafe extern "C" fn malloc(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: NumPy passes the handler's own context.
    unsafe {
        let handler = handler(ctx);
        if size < handler.small.load(Relaxed) {
            return (handler.next.malloc)(handler.next.ctx, size);
        }
        serve(ctx, size)
    }
}

unsafe extern "C" fn calloc(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`.
    unsafe {
        let handler = handler(ctx);
        if size == 1 && count < handler.small.load(Relaxed) {
            return (handler.next.calloc)(handler.next.ctx, count, size); // NumPy always asks for so many single bytes
        }
        serve_zeroed(ctx, count, size)
    }
}

// The slow halves are `extern "C"` too, so that the fast ones can jump to them and need no frame.

#[inline(never)]
unsafe extern "C" fn serve(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`.
    allocate(unsafe { handler(ctx) }, Request::bytes(size))
}

#[inline(never)]
unsafe extern "C" fn serve_zeroed(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`.
    unsafe {
        let handler = handler(ctx);
        let total = count.saturating_mul(size); // so much no allocator has
        if total < handler.small.load(Relaxed) {
            return (handler.next.calloc)(handler.next.ctx, count, size);
        }
        allocate(handler, Request::zeroed(total))
    }
}

fn allocate(handler: &Handler, request: Request) -> *mut c_void {
    if profile::is_open() && handler.kind != Kind::Front {
        return watched::allocate(handler, request); // the front tells of its blocks itself
    }
    give(handler, request)
}

fn give(handler: &Handler, request: Request) -> *mut c_void {
    guarded(|| handler.allocator().allocate(request).map_or(null_mut(), |block| block.address.as_ptr().cast()))
}

/// # Safety
/// `address` is a living block of `owner`.
unsafe fn resize(owner: &dyn Allocator, address: NonNull<u8>, size: usize) -> *mut c_void {
    guarded(|| {
        // SAFETY: the caller's promise.
        let moved = unsafe { owner.reallocate(address, Request::bytes(size)) };
        moved.map_or(null_mut(), |block| block.address.as_ptr().cast())
    })
}

/// No panic crosses into NumPy (law 7); one becomes a failed request.
fn guarded(body: impl FnOnce() -> *mut c_void) -> *mut c_void {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(null_mut())
}
