//! A handler of NumPy's (NEP 49) in front of an allocator, and the four functions that NumPy calls.
//!
//! Small requests go straight to the next handler, uncounted. Blocks are freed and resized by their owners, found by their
//! addresses: an owner may be another allocator, as arrays exchange their data and keep their handlers where f2py swaps
//! them (`intent(inplace)`), and allocators come and go behind the front of the process.

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
/// Scopes leave requests below this many bytes to NumPy, which keeps a few such blocks itself.
pub const NUMPYS_SMALL: usize = 1024;

/// Whom a handler serves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The process's arrays: blocks of any allocator that was ever installed come back to it.
    Front,
    /// What else the process's Python code asks for (`raw.rs`).
    Raw,
    /// A context, or constructors that name an allocator; also a context in which a scope is open or was, where all that no scope
    /// serves goes on to who served before.
    Context,
    /// A context or constructors that chose NumPy's own: every request goes on to NumPy, and large ones to CPython's own
    /// functions.
    NumPy,
}

/// A handler with what its functions need. NumPy sees only `raw`.
#[repr(C)]
pub struct Handler {
    raw: RawHandler,
    /// Requests below this many bytes go on to `next`.
    small: AtomicUsize,
    /// Requests below this many bytes do so at once: the same, or fewer where scopes may serve them, or none while profiles and
    /// traces are told of each.
    quick: AtomicUsize,
    has_scopes: AtomicBool,
    /// The number by which threads list the scopes that serve the requests of this handler.
    scope: AtomicU64,
    /// The handler that small requests and foreign addresses go to.
    next: Functions,
    /// The allocator in charge, boxed; replaced ones are kept, as their blocks may live.
    charge: AtomicPtr<Arc<dyn Allocator>>,
    /// Of a scope's handler: the capsule of who served the context before, whose functions are `next`.
    behind: Option<Py<PyAny>>,
    pub kind: Kind,
    /// Whether profiles and traces are told of every call, and not only of what its allocator serves.
    observed: AtomicBool,
}

// SAFETY: the fields that change are atomic, and allocators may be used from any thread.
unsafe impl Sync for Handler {}
// SAFETY: as above.
unsafe impl Send for Handler {}

impl Handler {
    /// A handler that serves from `allocator`; requests below `small` bytes and foreign addresses go to `next`.
    pub fn new(kind: Kind, allocator: Arc<dyn Allocator>, small: usize, next: Functions) -> Box<Self> {
        register_owner(&allocator);
        let mut name = [0; 127];
        // There are programs, NumPy's own tests among them, that know the default by its name.
        let text = if matches!(kind, Kind::Front | Kind::NumPy) { NUMPYS_NAME } else { NAME };
        name.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from as c_char);
        let mut handler = Box::new(Self {
            raw: RawHandler {
                name,
                version: 1,
                allocator: Functions { ctx: null_mut(), malloc, calloc, realloc, free },
            },
            small: AtomicUsize::new(small),
            quick: AtomicUsize::new(small),
            has_scopes: AtomicBool::new(false),
            scope: AtomicU64::new(if kind == Kind::Front { scope::OF_FRONT } else { scope::NONE }),
            next,
            charge: AtomicPtr::new(Box::into_raw(Box::new(allocator))),
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

    /// Tells profiles and traces of every call of this handler from now on, or of none. The caller sees to it that the small
    /// limit does not change meanwhile.
    pub fn set_observed(&self, on: bool) {
        self.observed.store(on, Relaxed);
        self.set_small(self.small());
    }

    /// Our handler behind NumPy's pointer, if it is one of ours.
    ///
    /// # Safety
    /// The pointer is a living handler.
    pub unsafe fn from_raw<'a>(raw: *const RawHandler) -> Option<&'a Self> {
        let own: unsafe extern "C" fn(_, _) -> _ = malloc;
        // SAFETY: `malloc` is this module's own function, so `raw` is the first field of a Handler.
        unsafe { std::ptr::fn_addr_eq((*raw).allocator.malloc, own).then(|| &*raw.cast::<Self>()) }
    }

    pub fn raw(&self) -> *const RawHandler {
        &raw const self.raw
    }

    /// The handler, as the context of its functions.
    pub fn ctx(&self) -> *mut c_void {
        self.raw.allocator.ctx
    }

    /// Lets another allocator serve from now on, with a handler that lives for ever. The one before is kept for its blocks.
    pub fn replace(&'static self, allocator: &'static Arc<dyn Allocator>, small: usize) {
        register_owner(allocator);
        self.charge.store(std::ptr::from_ref(allocator).cast_mut(), Release);
        self.set_small(small);
    }

    /// Sends every request on, or only those below `small` bytes.
    pub fn set_small(&self, small: usize) {
        let most = match (self.observed.load(Relaxed), self.has_scopes.load(Relaxed)) {
            (true, _) => 0,
            (false, true) => NUMPYS_SMALL,
            (false, false) => usize::MAX,
        };
        self.small.store(small, Release); // who loads it sees what was set up before
        self.quick.store(small.min(most), Release);
    }

    /// Has requests that scopes may serve looked at from now on. (A thread that changes the small limit at the same time may
    /// undo this, until the next scope is entered.)
    #[inline]
    pub fn let_scopes(&self) {
        if self.quick.load(Relaxed) > NUMPYS_SMALL {
            self.has_scopes.store(true, Relaxed);
            self.quick.fetch_min(NUMPYS_SMALL, Release);
        }
    }

    /// The number of the scopes that serve its requests.
    pub fn scope(&self) -> u64 {
        self.scope.load(Relaxed)
    }

    /// Lets the scopes of another number serve.
    pub fn set_scope(&self, scope: u64) {
        self.scope.store(scope, Relaxed);
    }

    /// Of a scope's handler: the capsule of who served the context before.
    pub fn behind(&self) -> Option<&Py<PyAny>> {
        self.behind.as_ref()
    }

    /// Whether `next` is a handler of ours, too, which then knows the makers of blocks and those whom it tells of them.
    fn relays(&self) -> bool {
        let own: unsafe extern "C" fn(_, _) -> _ = malloc;
        std::ptr::fn_addr_eq(self.next.malloc, own)
    }

    pub fn small(&self) -> usize {
        self.small.load(Acquire)
    }

    /// Whether requests of so many bytes go on at once.
    #[inline(always)]
    fn passes(&self, size: usize) -> bool {
        size < self.quick.load(Acquire)
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

    /// Serves a request that does not go on at once.
    fn serve(&self, request: Request) -> *mut c_void {
        let size = request.size();
        let block = match scope::serving(self.scope(), size) {
            Some(buffer) => self.give(&*buffer, request),
            None if size < self.small() => self.pass_on(request),
            None => self.allocate(request),
        };
        if self.observed.load(Relaxed) { traced(block, size, request.is_zeroed(), true) } else { block }
    }

    fn allocate(&self, request: Request) -> *mut c_void {
        match self.kind {
            Kind::NumPy => self.pass_on(request),
            Kind::Raw if raw::passes() => self.pass_on(request),
            Kind::Front | Kind::Raw => {
                // SAFETY: nobody uses the block, if there is one.
                glibc::follow(|size| unsafe { libc::free(std::hint::black_box(libc::malloc(size))) });
                // A budget serves the interpreter a little longer than arrays.
                let request = if self.kind == Kind::Raw { request.of_interpreter() } else { request };
                let block = self.give(&**self.allocator(), request);
                if !block.is_null() {
                    glibc::allocated(block as usize, request, self.kind == Kind::Front);
                }
                block
            }
            Kind::Context => self.give(&**self.allocator(), request),
        }
    }

    /// A block of an allocator, or null.
    #[inline]
    fn give(&self, allocator: &dyn Allocator, request: Request) -> *mut c_void {
        let block = no_panic(|| allocator.allocate(request).map_or(null_mut(), |block| block.address.as_ptr().cast()));
        gave(block, request.size(), self.kind != Kind::Raw)
    }

    /// Sends a request on to the next handler. What that asks of CPython is asked for this request.
    fn pass_on(&self, request: Request) -> *mut c_void {
        // SAFETY: the functions that stood here before this handler, with their context.
        let block = raw::passing(|| unsafe {
            match request.is_zeroed() {
                true => (self.next.calloc)(self.next.ctx, request.size(), 1),
                false => (self.next.malloc)(self.next.ctx, request.size()),
            }
        });
        if self.observed.load(Relaxed) { gave(block, request.size(), true) } else { block }
    }

    /// # Safety
    /// `address` is a live block of `owner`.
    unsafe fn reallocate(&self, owner: &dyn Allocator, address: NonNull<u8>, size: usize) -> *mut c_void {
        let request = Request::bytes(size);
        let request = if self.kind == Kind::Raw { request.of_interpreter() } else { request };
        resized(address.as_ptr() as usize, size, self.kind != Kind::Raw, || {
            let followed = matches!(self.kind, Kind::Front | Kind::Raw).then(|| owners::asked(address));
            // SAFETY: as demanded.
            let moved = no_panic(|| match unsafe { owner.reallocate(address, request) } {
                Ok(block) => block.address.as_ptr().cast(),
                Err(_) => null_mut(),
            });
            if let Some(asked) = followed.filter(|_| !moved.is_null()) {
                glibc::resized(asked, size);
            }
            moved
        })
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: nobody uses the handler any more, and the box was made by `new`: what `replace` was called for lives for ever.
        unsafe { drop(Box::from_raw(*self.charge.get_mut())) }
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
    // SAFETY: `ctx` is a living `Handler`: NumPy passes what its functions were given with.
    unsafe { &*ctx.cast::<Handler>() }
}

pub unsafe extern "C" fn malloc(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: NumPy passes the handler's own context.
    unsafe {
        let handler = handler(ctx);
        if handler.passes(size) {
            return (handler.next.malloc)(handler.next.ctx, size);
        }
        serve(ctx, size)
    }
}

pub unsafe extern "C" fn calloc(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`.
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
    // SAFETY: as for `malloc`.
    unsafe { handler(ctx) }.serve(Request::bytes(size))
}

#[inline(never)]
unsafe extern "C" fn serve_zeroed(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: as for `malloc`. No allocator has `usize::MAX` bytes.
    unsafe { handler(ctx) }.serve(Request::zeroed(count.saturating_mul(size)))
}

pub unsafe extern "C" fn free(ctx: *mut c_void, pointer: *mut c_void, size: usize) {
    // SAFETY: NumPy gives back a live block, and passes the handler's own context.
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
    // SAFETY: as for `free`.
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
    // SAFETY: as for `free`.
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
    /// Gives a block to who made it.
    ///
    /// # Safety
    /// It lives, and nobody uses it any more.
    unsafe fn free(&self, address: NonNull<u8>, size: usize) {
        let pointer = address.as_ptr().cast::<c_void>();
        if self.relays() {
            // SAFETY: as demanded, with the context of its functions.
            return unsafe { (self.next.free)(self.next.ctx, pointer, size) };
        }
        freed(pointer);
        // SAFETY: as demanded; each block goes to who made it.
        unsafe {
            let may_be_listed = owners::may_be_listed(address);
            if may_be_listed && scope::take_back(address) {
                return;
            }
            // Of what scopes serve glibc is told nothing.
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
                    owner.deallocate(address);
                }
                Owner::Keeper(owner) => {
                    if Arc::ptr_eq(&owner, self.allocator()) {
                        follow();
                    }
                    owner.deallocate(address);
                    let is_left_alone = Arc::strong_count(&owner) == 2; // by all but the registry
                    drop(owner);
                    if is_left_alone {
                        owners::sweep();
                    }
                }
                Owner::Gone => {}
                Owner::Nobody => (self.next.free)(self.next.ctx, pointer, size),
            }
        }
    }

    /// Lets who made a block resize it.
    ///
    /// # Safety
    /// It lives.
    unsafe fn realloc(&self, address: NonNull<u8>, size: usize) -> *mut c_void {
        let (next, pointer) = (&self.next, address.as_ptr().cast::<c_void>());
        // SAFETY: as demanded.
        let by_next = || unsafe { (next.realloc)(next.ctx, pointer, size) };
        // SAFETY: as demanded.
        unsafe {
            if self.relays() {
                return by_next();
            }
            match owners::find(address) {
                Owner::Segment(owner) => self.reallocate(owner, address, size),
                Owner::Keeper(owner) => self.reallocate(&*owner, address, size),
                Owner::Gone => null_mut(), // nobody resizes it
                Owner::Nobody if self.kind == Kind::NumPy => raw::passing(by_next),
                Owner::Nobody if self.observed.load(Relaxed) => resized(pointer as usize, size, true, by_next),
                Owner::Nobody => by_next(),
            }
        }
    }
}

// ---- What handlers tell ----------------------------------------------------------------------------------------------
//
// Profiles (`measure()`), the table of live blocks (`firsttouch why`) and traces: of contexts' handlers what they serve, and of
// the front, while somebody watches it, also what it leaves to NumPy.

/// Tells of a block that was given, for an array or not.
#[inline]
fn gave(block: *mut c_void, size: usize, is_array: bool) -> *mut c_void {
    if (profile::is_open() || live::is_open()) && !block.is_null() {
        if is_array {
            profile::on_alloc(block as usize, size);
        }
        live::on_alloc(block as usize, size, is_array);
    }
    block
}

/// Tells of a block that is about to be freed.
#[inline]
fn freed(pointer: *mut c_void) {
    profile::on_free(pointer as usize);
    live::on_free(pointer as usize);
}

/// Tells of a block that changes its size.
fn resized(old: usize, size: usize, is_array: bool, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
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

/// Where a block is; nothing if there is none.
fn address(block: *mut c_void) -> Option<usize> {
    (!block.is_null()).then_some(block as usize)
}

// Traces have what is large, whoever serves it. What NumPy asks of CPython for an array is traced as that.

/// Traces a block that was given.
#[inline]
pub fn traced(block: *mut c_void, size: usize, zeroed: bool, is_array: bool) -> *mut c_void {
    if size >= SMALL_LIMIT && trace::is_on() && !block.is_null() && (is_array || !raw::passes()) {
        trace::on_alloc(block as usize, Traced { size, zeroed, is_array, site: line() });
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
    let site = if before.is_none() && size >= SMALL_LIMIT { line() } else { 0 };
    let request = Traced { size, zeroed: false, is_array, site };
    trace::on_resize_end(before, pointer as usize, address(moved), request);
    moved
}

/// The number of the requesting line; zero where [`call_sites::site`] knows none.
fn line() -> usize {
    call_sites::site() as usize
}
