//! A handler of NumPy's (NEP 49) in front of an allocator, and the four functions that NumPy calls.
//!
//! Small requests go straight to the next handler, uncounted. Blocks are freed and resized by their owners, found by their
//! addresses: an owner may be another allocator, as arrays exchange their data and keep their handlers where f2py swaps
//! them (`intent(inplace)`), and allocators come and go behind the front of the process.

#![allow(unsafe_code)] // Safety: NumPy passes each function its handler's own context, and its own live blocks.

use crate::allocators::queries;
use crate::handlers::{capsules, front, observed, raw};
use crate::numpy::{Functions, RawAllocator, RawHandler};
use crate::python::gil::Guarded;
use crate::scratch::scope::Opening;
use firsttouch::address_map;
use firsttouch::allocator::{Allocator, Request};
use firsttouch::glibc;
use firsttouch::owners::{self, Owner};
use firsttouch::scratch::Buffer;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Release};

/// The name of NumPy's default handler. The front carries it too: there are programs, NumPy's own tests among them, that
/// know the default by its name.
pub const NUMPYS_NAME: &str = "default_allocator";
const NAME: &str = "firsttouch";

/// Whom a handler serves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The process's arrays: blocks of any allocator that was ever installed come back to it.
    Front,
    /// What else the process's Python code asks for (`raw.rs`).
    Raw,
    /// A context, or constructors that name an allocator.
    Context,
    /// A context or constructors that chose NumPy's own: every request goes on to NumPy, and large ones to CPython's own
    /// functions.
    NumPy,
    /// A scope; arrays too small for it go on to NumPy.
    Scope,
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
    charge: AtomicPtr<Arc<dyn Allocator>>,
    /// The scratch buffer that it serves from, if it does: that takes its own blocks back itself.
    buffer: Option<Arc<Buffer>>,
    /// Of a scope's handler: whom it serves, and the capsule of what served before.
    scope: Option<(Arc<Opening>, Guarded<Py<PyAny>>)>,
    pub kind: Kind,
    /// Whether blocks that are nobody else's are its allocator's, which can't tell: the C library's.
    has_rest: bool,
}

// SAFETY: the fields that change are atomic, and allocators may be used from any thread.
unsafe impl Sync for Handler {}
// SAFETY: as above.
unsafe impl Send for Handler {}

impl Handler {
    /// A handler that serves from `allocator`; requests below `small` bytes and foreign addresses go to `next`.
    pub fn new(kind: Kind, allocator: Arc<dyn Allocator>, small: usize, next: Functions) -> Box<Self> {
        Self::make(kind, allocator, small, next, None)
    }

    /// The handler of a scope, which knows what served before it.
    pub fn of_scope(
        buffer: Arc<Buffer>,
        opening: Arc<Opening>,
        small: usize,
        next: Functions,
        before: Py<PyAny>,
    ) -> Box<Self> {
        Self::make(Kind::Scope, buffer, small, next, Some((opening, Guarded::new(before))))
    }

    fn make(
        kind: Kind,
        allocator: Arc<dyn Allocator>,
        small: usize,
        next: Functions,
        scope: Option<(Arc<Opening>, Guarded<Py<PyAny>>)>,
    ) -> Box<Self> {
        if kind != Kind::Scope {
            queries::register_owner(&allocator); // a buffer is registered once
        }
        let any: Arc<dyn Any + Send + Sync> = allocator.clone();
        let buffer = any.downcast::<Buffer>().ok();
        let has_rest = kind == Kind::Context && small == 0 && !queries::can_tell(&*allocator);
        let mut name = [0; 127];
        let text = if matches!(kind, Kind::Front | Kind::NumPy) { NUMPYS_NAME } else { NAME };
        name.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from as c_char);
        let mut handler = Box::new(Self {
            raw: UnsafeCell::new(RawHandler { name, version: 1, allocator: RawAllocator::NONE }),
            small: AtomicUsize::new(small),
            next,
            charge: AtomicPtr::new(Box::into_raw(Box::new(allocator))),
            buffer,
            scope,
            kind,
            has_rest,
        });
        let ctx = std::ptr::from_mut(&mut *handler).cast();
        let free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) = if has_rest { free_owned } else { free };
        let (malloc, calloc, realloc, free) = (Some(malloc as _), Some(calloc as _), Some(realloc as _), Some(free));
        handler.raw.get_mut().allocator = RawAllocator { ctx, malloc, calloc, realloc, free };
        handler
    }

    /// Tells profiles and traces of every call of this handler from now on, or of none. NumPy may call it meanwhile.
    pub fn set_observed(&self, on: bool) {
        let functions: [*mut c_void; 4] = match on {
            true => [observed::malloc as _, observed::calloc as _, observed::realloc as _, observed::free as _],
            false => [malloc as _, calloc as _, realloc as _, free as _],
        };
        // SAFETY: aligned pointers, each stored at once; any mix of the two sets works, as the observed ones pass all
        // blocks on to the plain ones.
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
                .zip(functions)
                .for_each(|(&place, function)| AtomicPtr::from_ptr(place).store(function, Release));
        }
    }

    /// Our handler behind NumPy's pointer, if it is one of ours.
    ///
    /// # Safety
    /// The pointer is a living handler.
    pub unsafe fn from_raw<'a>(raw: *const RawHandler) -> Option<&'a Self> {
        // SAFETY: `malloc` is this module's own function, so `raw` is the first field of a Handler.
        unsafe {
            let ours = RawHandler::load_allocator(raw).malloc.is_some_and(|f| {
                let own: [unsafe extern "C" fn(_, _) -> _; 2] = [malloc, observed::malloc];
                own.iter().any(|&own| std::ptr::fn_addr_eq(f, own))
            });
            ours.then(|| &*raw.cast::<Self>())
        }
    }

    pub fn raw(&self) -> *const RawHandler {
        self.raw.get()
    }

    /// The functions that NumPy calls.
    pub fn functions(&self) -> Option<Functions> {
        // SAFETY: a function changes only to one that takes the same blocks, and gives the same.
        unsafe { RawHandler::load_allocator(self.raw.get()) }.functions()
    }

    /// Lets another allocator serve from now on, with a handler that lives for ever. The one before is kept for its blocks.
    pub fn replace(&'static self, allocator: &'static Arc<dyn Allocator>, small: usize) {
        queries::register_owner(allocator);
        self.charge.store(std::ptr::from_ref(allocator).cast_mut(), Release);
        self.set_small(small);
    }

    /// Sends every request on, or only those below `small` bytes.
    pub fn set_small(&self, small: usize) {
        self.small.store(small, Release); // after the door was set up, which whoever sees it then sees
    }

    #[inline(always)]
    pub fn small(&self) -> usize {
        self.small.load(Acquire)
    }

    /// The handler that small requests and foreign addresses go to.
    pub fn next(&self) -> &Functions {
        &self.next
    }

    #[inline]
    pub fn allocator(&self) -> &Arc<dyn Allocator> {
        // SAFETY: the box lives as long as the handler, or for ever where it was replaced.
        unsafe { &*self.charge.load(Acquire) }
    }

    /// Whether its allocator may be unused once it is gone: where it is a scope's, as the last reference beside the registry.
    pub fn is_last(&self) -> bool {
        self.kind != Kind::Scope || Arc::strong_count(self.allocator()) <= 3
    }

    /// Of a scope's handler: whom it serves, and what served before.
    pub fn scope(&self) -> Option<(&Opening, &Guarded<Py<PyAny>>)> {
        self.scope.as_ref().map(|(opening, before)| (&**opening, before))
    }

    fn allocate(&self, request: Request) -> *mut c_void {
        match (self.kind, self.scope()) {
            (Kind::NumPy, _) => raw::passing(|| self.ask_next(request)),
            (Kind::Raw, _) if raw::passes() => self.ask_next(request),
            (Kind::Front | Kind::Raw, _) => {
                // SAFETY: nobody uses the block, if there is one.
                glibc::follow(|size| unsafe { libc::free(std::hint::black_box(libc::malloc(size))) });
                let block = give(&**self.allocator(), request); // observed as a whole
                glibc::allocated(block as usize, request.size(), self.kind == Kind::Front);
                if self.kind == Kind::Raw {
                    observed::gave_buffer(block, request.size());
                }
                block
            }
            (_, Some((opening, before))) if !opening.serves() => self.pass_on(before, request),
            _ => observed::allocate(request.size(), || give(&**self.allocator(), request)),
        }
    }

    fn ask_next(&self, request: Request) -> *mut c_void {
        // SAFETY: the functions that stood here before this handler, with their context.
        unsafe {
            match request.is_zeroed() {
                true => (self.next.calloc)(self.next.ctx, request.size(), 1),
                false => (self.next.malloc)(self.next.ctx, request.size()),
            }
        }
    }

    /// A request of a context that knows a scope which has ended, or is another thread's: the nearest open scope around it
    /// gets it, or whoever served before them all.
    #[cold]
    fn pass_on(&self, before: &Guarded<Py<PyAny>>, request: Request) -> *mut c_void {
        let around = Python::try_attach(|py| {
            let before = before.lock(py).clone_ref(py);
            capsules::who_serves(before.into_bound(py)).ok().flatten()
        });
        if let Some(allocator) = around.flatten() {
            return give(&*allocator, request);
        }
        if let Some(front) = front::serving().filter(|front| request.size() >= front.small()) {
            return front.allocate(request);
        }
        self.ask_next(request)
    }

    /// # Safety
    /// `address` is a live block of `owner`.
    unsafe fn reallocate(&self, owner: &dyn Allocator, address: NonNull<u8>, size: usize) -> *mut c_void {
        self.resize(address, size, || {
            // SAFETY: `address` is a live block of `owner` (`realloc` below, for NumPy).
            let moved = unsafe { owner.reallocate(address, Request::bytes(size)) };
            moved.map_or(null_mut(), |block| block.address.as_ptr().cast())
        })
    }

    /// Moves a block of `old` bytes that came through somebody else's handler, or whose maker is gone, to the handler's own
    /// allocator, unless it `stays`.
    ///
    /// # Safety
    /// The block lives, has that size, and `free` takes it back.
    unsafe fn move_out(
        &self,
        (address, old): (NonNull<u8>, usize),
        size: usize,
        stays: impl FnOnce() -> bool,
        free: impl FnOnce(),
    ) -> *mut c_void {
        self.resize(address, size, || {
            if stays() {
                return address.as_ptr().cast();
            }
            let Ok(block) = self.allocator().allocate(Request::bytes(size)) else { return null_mut() };
            // SAFETY: the block is live and has that size (`realloc` below, for NumPy); the new one overlaps no living
            // block, and the old one goes after the copy.
            unsafe { block.address.copy_from_nonoverlapping(address, old.min(size)) };
            free();
            block.address.as_ptr().cast()
        })
    }

    fn resize(&self, address: NonNull<u8>, size: usize, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
        match self.kind {
            Kind::Front => followed(address, size, resize),
            Kind::Raw => observed::resize_buffer(address, size, || followed(address, size, resize)),
            _ => observed::resize(address, size, || guarded(resize)),
        }
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: nobody uses the handler any more, and the box was made by `make`: what `replace` was called for lives for ever.
        unsafe { drop(Box::from_raw(*self.charge.get_mut())) }
    }
}

/// A block of an allocator, or null.
#[inline]
fn give(allocator: &dyn Allocator, request: Request) -> *mut c_void {
    guarded(|| allocator.allocate(request).map_or(null_mut(), |block| block.address.as_ptr().cast()))
}

/// Resizes a block, and tells what follows glibc's heap.
fn followed(address: NonNull<u8>, size: usize, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let old = owners::left_behind(address);
    let moved = guarded(resize);
    if !moved.is_null() {
        glibc::resized((address.as_ptr() as usize, old), (moved as usize, size));
    }
    moved
}

/// No panic crosses into NumPy (law 7); one becomes a failed request.
fn guarded(body: impl FnOnce() -> *mut c_void) -> *mut c_void {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(null_mut())
}

/// # Safety
/// `ctx` is a living [`Handler`].
#[inline(always)]
pub unsafe fn handler<'a>(ctx: *mut c_void) -> &'a Handler {
    // SAFETY: `ctx` is a living `Handler`: NumPy passes what its functions were given with.
    unsafe { &*ctx.cast::<Handler>() }
}

pub unsafe extern "C" fn malloc(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: NumPy passes the handler's own context.
    unsafe {
        let handler = handler(ctx);
        if size < handler.small() {
            return (handler.next.malloc)(handler.next.ctx, size);
        }
        serve(ctx, size)
    }
}

pub unsafe extern "C" fn calloc(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`.
    unsafe {
        let handler = handler(ctx);
        if size == 1 && count < handler.small() {
            return (handler.next.calloc)(handler.next.ctx, count, size); // NumPy always asks for so many single bytes
        }
        serve_zeroed(ctx, count, size)
    }
}

// The slow halves are `extern "C"` too, so that the fast ones can jump to them and need no frame.

#[inline(never)]
unsafe extern "C" fn serve(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`.
    unsafe { handler(ctx) }.allocate(Request::bytes(size))
}

#[inline(never)]
unsafe extern "C" fn serve_zeroed(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`.
    unsafe {
        let handler = handler(ctx);
        let total = count.saturating_mul(size); // so much no allocator has
        if total < handler.small() {
            return (handler.next.calloc)(handler.next.ctx, count, size);
        }
        handler.allocate(Request::zeroed(total))
    }
}

pub unsafe extern "C" fn free(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: NumPy gives back a live block, and passes the handler's own context.
    unsafe {
        if address_map::is_foreign(pointer as usize) {
            let next = &handler(ctx).next;
            return (next.free)(next.ctx, pointer, size);
        }
        free_owned(ctx, pointer, size)
    }
}

/// For handlers to whose allocator all blocks belong that are nobody else's, and addresses in foreign slots, too.
#[inline(never)]
unsafe extern "C" fn free_owned(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: as for `free`; each block goes to who made it.
    unsafe {
        let handler = handler(ctx);
        let Some(address) = NonNull::new(pointer.cast::<u8>()) else { return };
        match handler.kind {
            Kind::Front => glibc::freed(pointer as usize, size),
            Kind::Raw => {
                glibc::freed(pointer as usize, owners::left_behind(address));
                observed::freed_buffer(pointer);
            }
            _ => observed::freed(pointer),
        }
        if let Some(buffer) = handler.buffer.as_ref().filter(|_| !owners::is_unlisted(address))
            && buffer.try_deallocate(address)
        {
            return;
        }
        match owners::find(address) {
            Owner::Segment(owner) => owner.deallocate(address),
            Owner::Keeper(owner) => owner.deallocate(address),
            Owner::Gone => {}
            Owner::Nobody if handler.has_rest => handler.allocator().deallocate(address),
            Owner::Nobody => (handler.next.free)(handler.next.ctx, pointer, size),
        }
    }
}

pub unsafe extern "C" fn realloc(ctx: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as for `free`.
    unsafe {
        let handler = handler(ctx);
        let Some(address) = NonNull::new(pointer.cast::<u8>()) else { return malloc(ctx, size) };
        if let Some(buffer) = handler.buffer.as_ref().filter(|buffer| buffer.owns(address) == Some(true)) {
            return handler.reallocate(&**buffer, address, size);
        }
        match owners::find(address) {
            // The handler's allocator may align more than the owner, which was not told.
            Owner::Segment(owner) if handler.has_rest => {
                let stays = || owner.resize_in_place(address, size);
                handler.move_out((address, owner.usable_size(address)), size, stays, || owner.deallocate(address))
            }
            Owner::Segment(owner) => handler.reallocate(owner, address, size),
            Owner::Keeper(owner) => handler.reallocate(&*owner, address, size),
            Owner::Gone => match owners::left_behind(address) {
                0 => null_mut(), // how much of it may be read nobody knows
                old => handler.move_out((address, old), size, || false, || ()),
            },
            Owner::Nobody if handler.has_rest => handler.reallocate(&**handler.allocator(), address, size),
            Owner::Nobody if handler.kind == Kind::NumPy => {
                raw::passing(|| (handler.next.realloc)(handler.next.ctx, pointer, size))
            }
            Owner::Nobody => (handler.next.realloc)(handler.next.ctx, pointer, size),
        }
    }
}
