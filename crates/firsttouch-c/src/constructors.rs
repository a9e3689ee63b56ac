//! Allocators by calls. Those by an expression are made by the core.

use crate::allocator::{Handle, hand_out, shared, text};
use crate::error::{Status, fail};
use crate::options::{self, Versioned};
use firsttouch::adaptors::{Filled, Guarded, GuardedOptions, Limited, Options, Pool, Side, Tracked};
use firsttouch::allocator::Allocator;
use firsttouch::numa::policy::Policy;
use firsttouch::numa::topology::Topology;
use firsttouch::pages::placement::{Page, Placement, Populate};
use firsttouch::sources::{Functions, FunctionsTable, Pages, PlacedPages};
use std::any::Any;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_parse(expression: *const c_char, out: *mut *mut Handle) -> Status {
    // SAFETY: a string, and a place for the handle (header).
    unsafe {
        hand_out(out, || {
            let expression = text("expression", expression)?;
            { let _ = expression; Err(fail(Status::Expression, ""))}
        })
    }
}

/// `firsttouch_pool_options`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PoolOptions {
    struct_size: usize,
    upstream: *const Handle,
    max_idle: usize,
    decay: f64,
}

// SAFETY: as its definition says; all bytes are valid for numbers and pointers.
unsafe impl Versioned for PoolOptions {
    const NAME: &'static str = "firsttouch_pool_options";
    const LEAST: usize = size_of::<Self>();
}

/// What stands in `max_idle` for the default, and in `decay` for the default where negative.
const UNSET: usize = usize::MAX;

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_pool(given: *const PoolOptions, out: *mut *mut Handle) -> Status {
    let default =
        PoolOptions { struct_size: 0, upstream: std::ptr::null(), max_idle: UNSET, decay: -1.0 };
    // SAFETY: options or null, and a place for the handle (header).
    unsafe {
        hand_out(out, || {
            let given = options::read(given, default)?;
            let mut options = Options::default();
            if given.max_idle != UNSET {
                options.max_idle = Some(given.max_idle);
            }
            if given.decay == f64::INFINITY {
                options.decay = None;
            } else if given.decay >= 0.0 {
                options.decay = Some(Duration::try_from_secs_f64(given.decay).unwrap_or(Duration::MAX));
            } else if given.decay.is_nan() {
                return Err(fail(Status::Invalid, "decay is not a number: give seconds, INFINITY for never"));
            }
            if given.upstream.is_null() {
                return Ok(Pool::new(options) as Arc<dyn Allocator>);
            }
            let upstream = shared(given.upstream);
            let any: &dyn Any = &*upstream;
            // Pages it takes itself: then it can split blocks, join them, and give back parts.
            match any.downcast_ref::<Pages>() {
                Some(pages) => Ok(Pool::new(Options { huge: pages.huge(), ..options }) as Arc<dyn Allocator>),
                None => Ok(Pool::over(upstream, options) as Arc<dyn Allocator>),
            }
        })
    }
}

/// `firsttouch_pages_options`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PagesOptions {
    struct_size: usize,
    huge: *const c_char,
    numa: *const c_char,
    populate: c_int,
    lock: bool,
    strict: bool,
}

// SAFETY: as for `PoolOptions`; the header says that a `bool` is 0 or 1.
unsafe impl Versioned for PagesOptions {
    const NAME: &'static str = "firsttouch_pages_options";
    const LEAST: usize = size_of::<Self>();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_pages(given: *const PagesOptions, out: *mut *mut Handle) -> Status {
    let (huge, numa) = (std::ptr::null(), std::ptr::null());
    let default = PagesOptions { struct_size: 0, huge, numa, populate: 0, lock: false, strict: false };
    // SAFETY: options or null, whose texts are strings or null, and a place for the handle (header).
    unsafe {
        hand_out(out, || {
            let given = options::read(given, default)?;
            let invalid = |message: String| fail(Status::Invalid, message);
            let mut placement = Placement { lock: given.lock, strict: given.strict, ..Placement::default() };
            if !given.huge.is_null() {
                for size in text("huge", given.huge)?.split(',').map(str::trim) {
                    placement.pages.push(Page::parse(size).map_err(invalid)?);
                }
            }
            if !given.numa.is_null() {
                let policy = Policy::parse(text("numa", given.numa)?).map_err(invalid)?;
                policy.check(&Topology::read()).map_err(invalid)?;
                placement.policy = Some(policy);
            }
            placement.populate = match usize::try_from(given.populate) {
                Ok(0) => Populate::No,
                Ok(threads) => Populate::Threads(threads),
                Err(_) => Populate::Best,
            };
            Ok(PlacedPages::new(placement) as Arc<dyn Allocator>)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_limited(upstream: *const Handle, budget: usize, out: *mut *mut Handle) -> Status {
    // SAFETY: null or a living handle, and a place for the new one (header).
    unsafe {
        hand_out(out, || match budget {
            0 => Err(fail(Status::Invalid, "budget is 0, which allows no allocation: give a number of bytes")),
            _ => Ok(Limited::new(shared(upstream), budget) as Arc<dyn Allocator>),
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_tracked(upstream: *const Handle, out: *mut *mut Handle) -> Status {
    // SAFETY: null or a living handle, and a place for the new one (header).
    unsafe { hand_out(out, || Ok(Tracked::new(shared(upstream), None) as Arc<dyn Allocator>)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_guarded(
    upstream: *const Handle,
    before: bool,
    keep: usize,
    out: *mut *mut Handle,
) -> Status {
    let side = if before { Side::Before } else { Side::After };
    // SAFETY: null or a living handle, and a place for the new one (header).
    unsafe { hand_out(out, || Ok(Guarded::new(shared(upstream), GuardedOptions { side, keep }) as Arc<dyn Allocator>)) }
}

/// A byte that fills memory; a negative number is none.
fn pattern(name: &str, value: c_int) -> Result<Option<u8>, Status> {
    if value < 0 {
        return Ok(None);
    }
    let refused = |_| fail(Status::Invalid, format_args!("{name} is {value}: give a byte, 0 to 255, or -1 for none"));
    u8::try_from(value).map(Some).map_err(refused)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_filled(
    upstream: *const Handle,
    on_allocate: c_int,
    on_free: c_int,
    out: *mut *mut Handle,
) -> Status {
    // SAFETY: null or a living handle, and a place for the new one (header).
    unsafe {
        hand_out(out, || {
            let (on_allocate, on_free) = (pattern("on_allocate", on_allocate)?, pattern("on_free", on_free)?);
            Ok(Filled::new(shared(upstream), on_allocate, on_free) as Arc<dyn Allocator>)
        })
    }
}

/// `firsttouch_functions`: NumPy's handlers have the same.
#[repr(C)]
#[derive(Clone, Copy)]
struct GivenFunctions {
    struct_size: usize,
    malloc: Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>,
    calloc: Option<unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void>,
    realloc: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void>,
    free: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize)>,
    context: *mut c_void,
}

// SAFETY: as for `PoolOptions`; a function may be null.
unsafe impl Versioned for GivenFunctions {
    const NAME: &'static str = "firsttouch_functions";
    const LEAST: usize = size_of::<Self>();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_from_functions(given: *const GivenFunctions, out: *mut *mut Handle) -> Status {
    let nothing = GivenFunctions {
        struct_size: 0,
        malloc: None,
        calloc: None,
        realloc: None,
        free: None,
        context: std::ptr::null_mut(),
    };
    // SAFETY: functions that keep the header's promises, and a place for the handle (header).
    unsafe {
        hand_out(out, || {
            let given = options::read(given, nothing)?;
            let (Some(malloc), Some(free)) = (given.malloc, given.free) else {
                return Err(fail(Status::Invalid, "malloc or free is NULL: both are needed"));
            };
            let (calloc, realloc, context) = (given.calloc, given.realloc, given.context);
            Ok(Functions::new(FunctionsTable { malloc, free, calloc, realloc, context }) as Arc<dyn Allocator>)
        })
    }
}
