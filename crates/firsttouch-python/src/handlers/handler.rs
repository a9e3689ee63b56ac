//! A handler of NumPy's (NEP 49) in front of an allocator, and the four functions that NumPy calls.
//!
//! Small requests are passed on to the next handler, uncounted. A block is freed and resized by its owner, which is found by the
//! block's address and need not be the handler's allocator: f2py (`intent(inplace)`) lets two arrays exchange their data while
//! each keeps its handler, and another allocator may have been installed meanwhile.

#![allow(unsafe_code)] // Safety: NumPy passes each function its handler's own context, and its own live blocks.

use crate::allocators::allocator::{process_pool, register_owner};
use crate::handlers::raw;
use crate::numpy::{Functions, NUMPYS_NAME, RawHandler};
use crate::python::call_sites;
use crate::scratch::scope;
use firsttouch::address_map;
use firsttouch::allocator::{Allocator, Request};
use firsttouch::layout::SMALL_LIMIT;
use firsttouch::owners::{self, Owner};
use firsttouch_report::glibc;
use firsttouch_trace::trace::{self, Request as Traced};
use firsttouch_trace::{live, profile};
use pyo3::prelude::*;
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

const NAME: &str = "firsttouch";
/// Scopes leave requests below this many bytes to NumPy, which caches a few such blocks.
pub const NUMPYS_SMALL: usize = 1024;

/// Whose requests a handler serves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All arrays of the process. Blocks of any allocator that was ever installed are freed through it.
    Front,
    /// CPython's other large requests (`raw.rs`).
    Raw,
    /// Arrays in a context, or of constructors that name an allocator. A context that enters a scope gets one too: requests that
    /// the scope does not serve are passed on to the handler that the context had before.
    Context,
    /// A context or constructors that chose NumPy's own allocator: all requests are passed on to NumPy, and `raw.rs` passes on
    /// those that NumPy then makes of CPython.
    NumPy,
}

/// A handler and the data of its functions. NumPy sees only `raw`.
#[repr(C)]
pub struct Handler {
    pub raw: RawHandler,
    /// Requests below this many bytes are passed on to `next`.
    small_limit: AtomicUsize,
    /// Requests below this many bytes are passed on before anything else is looked at. This is `small_limit`, but at most
    /// [`NUMPYS_SMALL`] where scopes may serve, and 0 while profiles and traces are told of each request.
    pass_limit: AtomicUsize,
    has_scopes: AtomicBool,
    /// The number of the scopes that may serve: each thread lists its open ones by such numbers.
    scope: AtomicU64,
    /// The handler before this one, which gets small requests and foreign addresses.
    pub next: Functions,
    /// The allocator that serves, boxed. One that was replaced is kept, as blocks of it may be live.
    serving: AtomicPtr<Arc<dyn Allocator>>,
    /// Of a scope's handler: the capsule of the handler that the context had before, whose functions are `next`.
    pub behind: Option<Py<PyAny>>,
    pub kind: Kind,
    /// Whether profiles and traces are told of every call, and not only of what the allocator serves.
    observed: AtomicBool,
}

// SAFETY: the fields that change are atomic, and allocators may be used from any thread.
unsafe impl Sync for Handler {}
// SAFETY: its functions and its allocator may be called, and its reference to a capsule dropped, in any thread.
unsafe impl Send for Handler {}

impl Handler {
    /// A handler that serves from `allocator`; requests below `small` bytes and foreign addresses are passed on to `next`.
    pub fn new(kind: Kind, allocator: Arc<dyn Allocator>, small: usize, next: Functions) -> Box<Self> {
        register_owner(&allocator);
        let mut name = [0; 127];
        // Some programs, NumPy's own tests among them, tell the default handler by its name.
        let text = if matches!(kind, Kind::Front | Kind::NumPy) { NUMPYS_NAME } else { NAME };
        name.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from as c_char);
        let mut handler = Box::new(Self {
            raw: RawHandler {
                name,
                version: 1,
                allocator: Functions { ctx: null_mut(), malloc, calloc, realloc, free },
            },
            small_limit: AtomicUsize::new(small),
            pass_limit: AtomicUsize::new(small),
            has_scopes: AtomicBool::new(false),
            scope: AtomicU64::new(if kind == Kind::Front { scope::OF_FRONT } else { scope::NONE }),
            next,
            serving: AtomicPtr::new(Box::into_raw(Box::new(allocator))),
            behind: None,
            kind,
            observed: AtomicBool::new(false),
        });
        handler.raw.allocator.ctx = std::ptr::from_mut(&mut *handler).cast();
        handler
    }

    /// The handler of the context of a scope with a number.
    pub fn of_scope(scope: u64, next: Functions, behind: Py<PyAny>) -> Box<Self> {
        let mut handler = Self::new(Kind::Context, process_pool().clone(), usize::MAX, next);
        (handler.scope, handler.behind) = (AtomicU64::new(scope), Some(behind));
        handler.let_scopes();
        handler
    }

    /// From now on tells profiles and traces of every call of this handler, or only of what its allocator serves. The caller sees
    /// to it that no other thread changes the small limit meanwhile.
    pub fn set_observed(&self, on: bool) {
        self.observed.store(on, Relaxed);
        self.set_small_limit(self.small_limit());
    }

    /// Our handler behind NumPy's pointer, if it is one of ours.
    ///
    /// # Safety
    /// The pointer is a living handler.
    pub unsafe fn from_raw<'a>(raw: *const RawHandler) -> Option<&'a Self> {
        let own: unsafe extern "C" fn(_, _) -> _ = malloc;
        // SAFETY: a living handler has an address of a function; where that is this module's `malloc`, it begins a `Handler`.
        unsafe { std::ptr::fn_addr_eq((*raw).allocator.malloc, own).then(|| &*raw.cast::<Self>()) }
    }

    /// Lets another allocator serve from now on. The one before is kept for its blocks.
    pub fn replace(&'static self, allocator: &'static Arc<dyn Allocator>, small: usize) {
        register_owner(allocator);
        self.serving.store(std::ptr::from_ref(allocator).cast_mut(), Release);
        self.set_small_limit(small);
    }

    /// Passes on requests below `small` bytes from now on.
    pub fn set_small_limit(&self, small: usize) {
        let most = match (self.observed.load(Relaxed), self.has_scopes.load(Relaxed)) {
            (true, _) => 0,
            (false, true) => NUMPYS_SMALL,
            (false, false) => usize::MAX,
        };
        self.small_limit.store(small, Release); // who loads it sees what was set up before
        self.pass_limit.store(small.min(most), Release);
    }

    /// Lets scopes serve from now on. (A thread that changes the small limit at the same time may undo this, until the next scope
    /// is entered.)
    #[inline]
    pub fn let_scopes(&self) {
        if self.pass_limit.load(Relaxed) > NUMPYS_SMALL {
            self.has_scopes.store(true, Relaxed);
            self.pass_limit.fetch_min(NUMPYS_SMALL, Release);
        }
    }

    pub fn scope(&self) -> u64 {
        self.scope.load(Relaxed)
    }

    /// Lets the scopes of another number serve.
    pub fn set_scope(&self, scope: u64) {
        self.scope.store(scope, Relaxed);
    }

    /// Whether `next` is a handler of ours, which then finds the owners of blocks and tells profiles and traces.
    fn relays(&self) -> bool {
        let own: unsafe extern "C" fn(_, _) -> _ = malloc;
        std::ptr::fn_addr_eq(self.next.malloc, own)
    }

    pub fn small_limit(&self) -> usize {
        self.small_limit.load(Acquire)
    }

    #[inline(always)]
    fn passes(&self, size: usize) -> bool {
        size < self.pass_limit.load(Acquire)
    }

    #[inline]
    pub fn allocator(&self) -> &Arc<dyn Allocator> {
        // SAFETY: never null: the box that `new` made lives as long as the handler, and what `replace` got lives for ever.
        unsafe { &*self.serving.load(Acquire) }
    }

    /// Serves a request that `passes` did not pass on.
    fn serve(&self, request: Request) -> *mut c_void {
        let size = request.size();
        let block = match scope::serving(self.scope(), size) {
            Some(buffer) => self.allocate_from(&*buffer, request),
            None if size < self.small_limit() => self.pass_on(request),
            None => self.allocate(request),
        };
        if self.observed.load(Relaxed) { traced(block, size, request.is_zeroed(), true) } else { block }
    }

    fn allocate(&self, request: Request) -> *mut c_void {
        match self.kind {
            Kind::NumPy => self.pass_on(request),
            Kind::Raw if raw::passes() => self.pass_on(request),
            Kind::Front | Kind::Raw => {
                // SAFETY: `free` takes the block of this `malloc`, which nobody uses, or null.
                glibc::follow(|size| unsafe { libc::free(std::hint::black_box(libc::malloc(size))) });
                // A budget serves the interpreter a little longer than arrays.
                let request = if self.kind == Kind::Raw { request.of_interpreter() } else { request };
                let block = self.attached(|| self.allocate_from(&**self.allocator(), request));
                if !block.is_null() {
                    glibc::allocated(block as usize, request, self.kind == Kind::Front);
                }
                block
            }
            Kind::Context => self.allocate_from(&**self.allocator(), request),
        }
    }

    /// Allocates a block from an allocator; null if it has none.
    #[inline]
    fn allocate_from(&self, allocator: &dyn Allocator, request: Request) -> *mut c_void {
        let block = no_panic(|| allocator.allocate(request).map_or(null_mut(), |block| block.address.as_ptr().cast()));
        on_alloc(block, request.size(), self.kind != Kind::Raw)
    }

    /// Passes a request on to the next handler, whose requests of CPython meanwhile belong to this one.
    fn pass_on(&self, request: Request) -> *mut c_void {
        // SAFETY: functions of the handler before this one, with that handler's context; they take any size.
        let block = raw::passing(|| unsafe {
            match request.is_zeroed() {
                true => (self.next.calloc)(self.next.ctx, request.size(), 1),
                false => (self.next.malloc)(self.next.ctx, request.size()),
            }
        });
        if self.observed.load(Relaxed) { on_alloc(block, request.size(), true) } else { block }
    }

    /// Serves a request; one of the raw domain without letting the interpreter go, as CPython may hold a lock of its own.
    fn attached<T>(&self, serve: impl FnOnce() -> T) -> T {
        if self.kind == Kind::Raw { raw::passing(serve) } else { serve() }
    }

    /// # Safety
    /// `address` is a live block of `owner`.
    unsafe fn reallocate(&self, owner: &dyn Allocator, address: NonNull<u8>, size: usize) -> *mut c_void {
        let request = Request::bytes(size);
        let request = if self.kind == Kind::Raw { request.of_interpreter() } else { request };
        on_resize(address.as_ptr() as usize, size, self.kind != Kind::Raw, || {
            let followed = matches!(self.kind, Kind::Front | Kind::Raw).then(|| owners::asked(address));
            // SAFETY: a live block of `owner`, as demanded; NumPy does not use the old address after success.
            let resize = || unsafe { owner.reallocate(address, request) };
            let moved =
                self.attached(|| no_panic(|| resize().map_or(null_mut(), |block| block.address.as_ptr().cast())));
            if let Some(asked) = followed.filter(|_| !moved.is_null()) {
                glibc::resized(asked, size);
            }
            moved
        })
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: a handler that is dropped was never `replace`d, so this is the box that `new` made; nobody uses it any more.
        unsafe { drop(Box::from_raw(*self.serving.get_mut())) }
    }
}

/// No panic crosses into NumPy (law 7); one becomes a failed request.
fn no_panic(body: impl FnOnce() -> *mut c_void) -> *mut c_void {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(null_mut())
}

/// # Safety
/// `ctx` is a living [`Handler`].
#[inline(always)]
pub unsafe fn handler<'a>(ctx: *mut c_void) -> &'a Handler {
    // SAFETY: as demanded: a living `Handler`.
    unsafe { &*ctx.cast::<Handler>() }
}

pub unsafe extern "C" fn malloc(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: NumPy passes the handler's own context; the next handler's functions get theirs.
    unsafe {
        let handler = handler(ctx);
        if handler.passes(size) {
            return (handler.next.malloc)(handler.next.ctx, size);
        }
        serve(ctx, size)
    }
}

pub unsafe extern "C" fn calloc(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: NumPy passes the handler's own context; the next handler's functions get theirs.
    unsafe {
        let handler = handler(ctx);
        if size == 1 && handler.passes(count) {
            return (handler.next.calloc)(handler.next.ctx, count, size); // NumPy always asks for so many single bytes
        }
        serve_zeroed(ctx, count, size)
    }
}

// The slow halves are `extern "C"` too, so that the fast ones can jump to them and need no frame.

#[inline(never)]
unsafe extern "C" fn serve(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: `malloc` passes its own context on.
    unsafe { handler(ctx) }.serve(Request::bytes(size))
}

#[inline(never)]
unsafe extern "C" fn serve_zeroed(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let bytes = count.saturating_mul(size); // no allocator has `usize::MAX` bytes
    // SAFETY: `calloc` passes its own context on.
    unsafe { handler(ctx) }.serve(Request::zeroed(bytes))
}

pub unsafe extern "C" fn free(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: NumPy passes the handler's own context, and null or a live block that it uses no more.
    unsafe {
        let handler = handler(ctx);
        if address_map::is_foreign(pointer as usize) && handler.passes(0) {
            return (handler.next.free)(handler.next.ctx, pointer, size);
        }
        free_owned(ctx, pointer, size)
    }
}

#[inline(never)]
unsafe extern "C" fn free_owned(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: `free` passes on its own context, and null or a live block that nobody uses any more.
    unsafe {
        let handler = handler(ctx);
        let Some(address) = NonNull::new(pointer.cast::<u8>()) else { return };
        if !handler.observed.load(Relaxed) {
            return handler.free(address, size);
        }
        trace::on_free(pointer as usize, size);
        raw::passing(|| handler.free(address, size));
    }
}

pub unsafe extern "C" fn realloc(ctx: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: NumPy passes the handler's own context, and null or a live block.
    unsafe {
        let handler = handler(ctx);
        let Some(address) = NonNull::new(pointer.cast::<u8>()) else { return malloc(ctx, size) };
        if !handler.observed.load(Relaxed) || !trace::is_on() {
            return handler.realloc(address, size);
        }
        let resize = || raw::passing(|| handler.realloc(address, size));
        traced_resize(pointer, usize::MAX, size, true, resize)
    }
}

impl Handler {
    /// Has a block freed by its owner.
    ///
    /// # Safety
    /// It is live, and nobody uses it any more.
    unsafe fn free(&self, address: NonNull<u8>, size: usize) {
        let pointer = address.as_ptr().cast::<c_void>();
        if self.relays() {
            // SAFETY: a live block, as demanded, goes to the next handler's function, with that handler's context.
            return unsafe { (self.next.free)(self.next.ctx, pointer, size) };
        }
        on_free(pointer);
        // SAFETY: a live block that nobody uses any more, as demanded; it goes to its owner, or to the next handler if it has none here.
        unsafe {
            let may_be_listed = owners::may_be_listed(address);
            if may_be_listed && scope::try_deallocate(address) {
                return;
            }
            // `glibc` is not told of what scopes serve.
            let follow = || match self.kind {
                Kind::Front => glibc::freed(size),
                Kind::Raw => glibc::freed(owners::asked(address)),
                _ => {}
            };
            let found = match may_be_listed {
                true => owners::find_likely(address, self.allocator()),
                false => owners::of_segment(address),
            };
            match found {
                Owner::Segment(owner) => {
                    follow();
                    if std::ptr::addr_eq(owner, Arc::as_ptr(self.allocator())) {
                        return (*owner).deallocate(address);
                    }
                    // Perhaps only the block keeps it (`Buffer`'s drop): without a reference, another thread may drop it meanwhile.
                    Arc::increment_strong_count(owner);
                    Arc::from_raw(owner).deallocate(address);
                }
                Owner::Keeper(owner) => {
                    if Arc::ptr_eq(&owner, self.allocator()) {
                        follow();
                    }
                    owner.deallocate(address);
                    let is_unused = Arc::strong_count(&owner) == 2; // this reference, and the registry's
                    drop(owner);
                    if is_unused {
                        owners::sweep();
                    }
                }
                Owner::Gone => {}
                Owner::Nobody => (self.next.free)(self.next.ctx, pointer, size),
            }
        }
    }

    /// Has a block resized by its owner.
    ///
    /// # Safety
    /// It is live; after success nobody uses the old address any more.
    unsafe fn realloc(&self, address: NonNull<u8>, size: usize) -> *mut c_void {
        let (next, pointer) = (&self.next, address.as_ptr().cast::<c_void>());
        // SAFETY: a live block, as demanded; called only where no owner of ours has it, or the next handler finds the owner.
        let by_next = || unsafe { (next.realloc)(next.ctx, pointer, size) };
        // SAFETY: a live block, as demanded, which goes to its owner.
        unsafe {
            if self.relays() {
                return by_next();
            }
            match owners::find(address) {
                Owner::Segment(owner) => self.reallocate(&*owner, address, size),
                Owner::Keeper(owner) => self.reallocate(&*owner, address, size),
                Owner::Gone => null_mut(), // its allocator is gone: it stays as it is
                Owner::Nobody if self.kind == Kind::NumPy => raw::passing(by_next),
                Owner::Nobody if self.observed.load(Relaxed) => on_resize(pointer as usize, size, true, by_next),
                Owner::Nobody => by_next(),
            }
        }
    }
}

// ---- What handlers tell ----------------------------------------------------------------------------------------------
//
// Profiles (`measure()`), the table of live blocks (`firsttouch why`) and traces are told of the blocks that a handler serves;
// while they watch the front, also of those that it passes on to NumPy.

/// Tells profiles and the table of a block that was allocated, for an array or not.
#[inline]
fn on_alloc(block: *mut c_void, size: usize, is_array: bool) -> *mut c_void {
    if (profile::is_open() || live::is_open()) && !block.is_null() {
        if is_array {
            profile::on_alloc(block as usize, size);
        }
        live::on_alloc(block as usize, size, is_array);
    }
    block
}

/// Tells them of a block that is about to be freed.
#[inline]
fn on_free(pointer: *mut c_void) {
    profile::on_free(pointer as usize);
    live::on_free(pointer as usize);
}

/// Tells them of a block that `resize` resizes.
fn on_resize(old: usize, size: usize, is_array: bool, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if !profile::is_open() && !live::is_open() {
        return resize();
    }
    let counted = if is_array { profile::on_resize_begin(old) } else { None };
    let listed = live::on_free(old);
    let moved = resize();
    live::on_resize_end(listed, old, address(moved), size, is_array);
    if is_array {
        profile::on_resize_end(counted, old, address(moved), size);
    }
    moved
}

/// The address of a block, if there is one.
fn address(block: *mut c_void) -> Option<usize> {
    (!block.is_null()).then_some(block as usize)
}

// Traces have all large blocks, whoever serves them. What NumPy requests of CPython for an array is traced once, as an array.

/// Traces a block that was allocated.
#[inline]
pub fn traced(block: *mut c_void, size: usize, zeroed: bool, is_array: bool) -> *mut c_void {
    if size >= SMALL_LIMIT && trace::is_on() && !block.is_null() && (is_array || !raw::passes()) {
        trace::on_alloc(block as usize, Traced { size, zeroed, is_array, site: call_sites::site() as usize });
    }
    block
}

/// Traces that a block, which has at most `used` bytes, is resized.
pub fn traced_resize(
    pointer: *mut c_void,
    used: usize,
    size: usize,
    is_array: bool,
    resize: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    if size.max(used) < SMALL_LIMIT || (!is_array && raw::passes()) {
        return resize();
    }
    let before = trace::on_resize_begin(pointer as usize);
    let moved = resize();
    let site = if before.is_none() && size >= SMALL_LIMIT { call_sites::site() as usize } else { 0 };
    let request = Traced { size, zeroed: false, is_array, site };
    trace::on_resize_end(before, pointer as usize, address(moved), request);
    moved
}
