//! A handler of NumPy's (NEP 49) in front of an allocator: what its functions need.

#![allow(unsafe_code)] // Safety: a handler outlives all calls of its functions; what changes meanwhile is atomic.

use crate::allocators::allocator::has_slabs;
use crate::allocators::queries;
use crate::handlers::numpy_default::{NAME, NUMPY_NAME, names};
use crate::numpy::abi::{Functions, RawAllocator, RawHandler};
use crate::python::guarded::Guarded;
use firsttouch::allocator::Allocator;
use firsttouch::scratch::Scope;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Whom a handler serves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The process: blocks of any allocator that was ever installed come back to it.
    Front,
    /// A context; small requests of pools go on to NumPy.
    Context,
    /// A context or constructors that chose NumPy's own: every request goes on to NumPy.
    NumPy,
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
    /// Whether it is kept for ever: it was in charge of the process once.
    pub is_kept: bool,
}

/// A handler with what its functions need. NumPy sees only `raw`.
#[repr(C)]
pub struct Handler {
    raw: UnsafeCell<RawHandler>,
    /// Requests below this many bytes go on to `next`.
    pub(super) small: AtomicUsize,
    /// The handler that small requests and foreign addresses go to.
    pub(super) next: Functions,
    /// The allocator in charge, boxed; replaced ones are kept, as their blocks may live.
    charge: AtomicPtr<Charge>,
    /// The allocator in charge, where that is a scope or a buffer: it takes its own blocks back itself.
    pub(super) scope: Option<Arc<Scope>>,
    /// What served before the scope: the capsule of another handler.
    before: Option<Guarded<Py<PyAny>>>,
    pub(super) kind: Kind,
    /// Whether blocks that are nobody else's are its allocator's, which can't tell: the C library's.
    pub(super) has_rest: bool,
}

// SAFETY: the fields that change are atomic, and allocators may be used from any thread.
unsafe impl Sync for Handler {}
// SAFETY: as above.
unsafe impl Send for Handler {}

fn charge(allocator: Arc<dyn Allocator>, kind: Kind) -> *mut Charge {
    let slabs = has_slabs(&allocator);
    Box::into_raw(Box::new(Charge { allocator, direct: PyOnceLock::new(), slabs, is_kept: kind == Kind::Front }))
}

impl Handler {
    /// A handler that has no functions yet.
    pub fn new(
        kind: Kind,
        allocator: Arc<dyn Allocator>,
        small: usize,
        next: Functions,
        before: Option<Guarded<Py<PyAny>>>,
    ) -> Box<Self> {
        queries::register_owner(&allocator);
        let any: Arc<dyn Any + Send + Sync> = allocator.clone();
        let scope = any.downcast::<Scope>().ok();
        let has_rest = small == 0 && kind != Kind::Scope && kind != Kind::Front && !queries::can_tell(&*allocator);
        let name = names(if matches!(kind, Kind::Front | Kind::NumPy) { NUMPY_NAME } else { NAME });
        Box::new(Self {
            raw: UnsafeCell::new(RawHandler { name, version: 1, allocator: RawAllocator::NONE }),
            small: AtomicUsize::new(small),
            next,
            charge: AtomicPtr::new(charge(allocator, kind)),
            scope,
            before,
            kind,
            has_rest,
        })
    }

    /// Gives a new handler its functions.
    pub fn set_functions(&mut self, make: impl FnOnce(*mut c_void) -> RawAllocator) {
        let ctx = std::ptr::from_mut(self).cast();
        self.raw.get_mut().allocator = make(ctx);
    }

    /// Replaces `malloc`, `calloc`, `realloc` and `free` while NumPy may call them.
    ///
    /// # Safety
    /// They have those types, and take and give the same blocks as the ones before.
    pub unsafe fn swap_functions(&self, functions: [*mut c_void; 4]) {
        // SAFETY: aligned pointers, each stored at once; any mix of the old and the new ones takes the same blocks
        // (`entry_points.rs`) any mix of them works.
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

    pub fn raw(&self) -> *const RawHandler {
        self.raw.get()
    }

    /// The functions that NumPy calls.
    pub fn functions(&self) -> RawAllocator {
        // SAFETY: a function changes only to one that takes the same blocks, and gives the same.
        unsafe { RawHandler::load_allocator(self.raw.get()) }
    }

    /// Lets another allocator serve from now on; the one before is kept for its blocks.
    pub fn replace(&self, allocator: Arc<dyn Allocator>, small: usize) {
        queries::register_owner(&allocator);
        self.charge.store(charge(allocator, self.kind), Release);
        self.small.store(small, Relaxed);
    }

    /// Sends every request on, or only those below `small` bytes.
    pub fn set_small(&self, small: usize) {
        self.small.store(small, Relaxed);
    }

    pub fn small(&self) -> usize {
        self.small.load(Relaxed)
    }

    #[inline]
    pub fn charge(&self) -> &Charge {
        // SAFETY: the box lives as long as the handler, or for ever where it was replaced.
        unsafe { &*self.charge.load(Acquire) }
    }

    #[inline]
    pub fn allocator(&self) -> &Arc<dyn Allocator> {
        &self.charge().allocator
    }

    /// The scope whose handler it is, and what served before.
    pub fn scope(&self) -> Option<(&Arc<Scope>, &Guarded<Py<PyAny>>)> {
        self.scope.as_ref().zip(self.before.as_ref())
    }

    /// The allocator in charge, where that is a scope, or a buffer outside all scopes.
    pub fn serving_scope(&self) -> Option<&Arc<Scope>> {
        self.scope.as_ref()
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: nobody uses the handler any more, and the box was made by `charge`.
        unsafe { drop(Box::from_raw(*self.charge.get_mut())) }
    }
}

/// # Safety
/// `ctx` is a living [`Handler`].
#[inline(always)]
pub unsafe fn handler<'a>(ctx: *mut c_void) -> &'a Handler {
    // SAFETY: `ctx` is a living `Handler`: NumPy passes what its functions were given with.
    unsafe { &*ctx.cast::<Handler>() }
}
