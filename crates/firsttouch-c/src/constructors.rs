//! Allocators by an expression, and by calls. The core's table of factories checks the arguments of both.

use crate::allocator::{Handle, hand_out, shared, text};
use crate::error::{Status, fail, refuse};
use crate::options::{self, Versioned};
use firsttouch::allocator::Allocator;
use firsttouch::description::Value;
use firsttouch::factory::{self, Argument, Error, Given};
use firsttouch::pages::placement::Page;
use firsttouch::sources::{Functions, FunctionsTable};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

type Made = Result<Arc<dyn Allocator>, Status>;

/// An allocator as an argument.
struct Existing(Arc<dyn Allocator>);

impl Argument for Existing {
    fn given(&self) -> Result<Given, Error> {
        Ok(Given::Value(Value::Allocator(self.0.describe())))
    }

    fn upstream(&self, _caller: &str) -> Result<Arc<dyn Allocator>, Error> {
        Ok(self.0.clone())
    }
}

/// The status and message of an error of the factories'.
fn refused(error: Error, otherwise: Status) -> Status {
    match error {
        Error::Memory(error) => refuse(error),
        Error::Unsupported(_) => fail(Status::Unsupported, error),
        _ => fail(otherwise, error),
    }
}

/// Calls a factory with an upstream, unless it is null and the factory has a default, and named values.
unsafe fn make(name: &str, upstream: Option<*const Handle>, values: &[(&str, Value)]) -> Made {
    let Some(factory) = firsttouch::spec::Spec::find(name) else { return Err(Status::Internal) };
    // SAFETY: null or a living handle, as the header demands of the callers of `firsttouch_limited` and its like.
    let upstream = upstream.map(|handle| Existing(unsafe { shared(handle) }));
    let upstream = upstream.iter().map(|each| (Some("upstream"), each as &dyn Argument));
    let values = values.iter().map(|(name, value)| (Some(*name), value as &dyn Argument));
    let call: Vec<_> = upstream.chain(values).collect();
    factory::build(factory, &call).map_err(|error| refused(error, Status::Invalid))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_parse(expression: *const c_char, out: *mut *mut Handle) -> Status {
    // SAFETY: a string, and a place for the handle (header).
    unsafe {
        hand_out(out, || {
            let expression = text("expression", expression)?;
            firsttouch::allocator_from_expression(expression).map_err(|error| refused(error, Status::Expression))
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

// SAFETY: as its definition says; all bytes are valid for numbers and pointers, and the header says that a `bool` is 0
// or 1.
unsafe impl Versioned for PoolOptions {
    const NAME: &'static str = "firsttouch_pool_options";
    const INITIALIZER: &'static str = "FIRSTTOUCH_POOL_OPTIONS";
    const LEAST: usize = 32;
}

/// Threads that may make pages real; the table of factories has the same.
const MAX_THREADS: c_int = 1024;

/// What stands in `max_idle` for the default, and in `decay` for the default where negative.
const UNSET: usize = usize::MAX;

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_pool(given: *const PoolOptions, out: *mut *mut Handle) -> Status {
    let default = PoolOptions { struct_size: 0, upstream: std::ptr::null(), max_idle: UNSET, decay: -1.0 };
    // SAFETY: options or null, and a place for the handle (header).
    unsafe {
        hand_out(out, || {
            let given = options::read(given, default)?;
            let mut values = Vec::new();
            if given.max_idle != UNSET {
                values.push(("max_idle", Value::from(given.max_idle)));
            }
            if given.decay == f64::INFINITY {
                values.push(("decay", Value::None));
            } else if given.decay >= 0.0 || given.decay.is_nan() {
                if Duration::try_from_secs_f64(given.decay).is_err() {
                    let wanted = "seconds, INFINITY for never, or a negative number for the default";
                    return Err(fail(Status::Invalid, format_args!("decay is {}: give {wanted}", given.decay)));
                }
                values.push(("decay", Value::Float(given.decay)));
            }
            make("pool", (!given.upstream.is_null()).then_some(given.upstream), &values)
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

// SAFETY: as for `PoolOptions`.
unsafe impl Versioned for PagesOptions {
    const NAME: &'static str = "firsttouch_pages_options";
    const INITIALIZER: &'static str = "FIRSTTOUCH_PAGES_OPTIONS";
    const LEAST: usize = 32;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_pages(given: *const PagesOptions, out: *mut *mut Handle) -> Status {
    let (huge, numa) = (std::ptr::null(), std::ptr::null());
    let default = PagesOptions { struct_size: 0, huge, numa, populate: 0, lock: false, strict: false };
    // SAFETY: options or null, whose texts are strings or null, and a place for the handle (header).
    unsafe {
        hand_out(out, || {
            let given = options::read(given, default)?;
            let mut values = vec![("lock", Value::Flag(given.lock)), ("strict", Value::Flag(given.strict))];
            if !given.huge.is_null() {
                let sizes = text("huge", given.huge)?.split(',').map(|size| {
                    let wanted = "\"thp\", sizes like \"1G,2M\" in order of preference, or NULL for base pages";
                    let wrong = |why| fail(Status::Invalid, format_args!("huge: {why}: give {wanted}"));
                    Page::parse(size.trim()).map(|page| page.value()).map_err(wrong)
                });
                values.push(("huge", Value::Several(sizes.collect::<Result<_, _>>()?)));
            }
            if !given.numa.is_null() {
                values.push(("numa", Value::from(text("numa", given.numa)?.to_owned())));
            }
            if given.populate > MAX_THREADS {
                let wanted = "a number up to 1024, or a negative one for as many threads as suit";
                return Err(fail(Status::Invalid, format_args!("populate is {}: give {wanted}", given.populate)));
            }
            let threads = usize::try_from(given.populate).map_or(Value::Flag(true), Value::from);
            values.push(("populate", if given.populate == 0 { Value::Flag(false) } else { threads }));
            make("pages", None, &values)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_limited(upstream: *const Handle, budget: usize, out: *mut *mut Handle) -> Status {
    // SAFETY: null or a living handle, and a place for the new one (header).
    unsafe { hand_out(out, || make("limited", Some(upstream), &[("budget", Value::from(budget))])) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_tracked(upstream: *const Handle, out: *mut *mut Handle) -> Status {
    // SAFETY: null or a living handle, and a place for the new one (header).
    unsafe { hand_out(out, || make("tracked", Some(upstream), &[])) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_guarded(
    upstream: *const Handle,
    before: bool,
    keep: usize,
    out: *mut *mut Handle,
) -> Status {
    let side = Value::from(if before { "before" } else { "after" });
    // SAFETY: null or a living handle, and a place for the new one (header).
    unsafe { hand_out(out, || make("guarded", Some(upstream), &[("side", side), ("keep", Value::from(keep))])) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_filled(
    upstream: *const Handle,
    on_allocate: c_int,
    on_free: c_int,
    out: *mut *mut Handle,
) -> Status {
    let byte = |name: &'static str, value: c_int| match value {
        ..0 => Ok((name, Value::None)),
        0..=255 => Ok((name, Value::Integer(value.into()))),
        _ => {
            Err(fail(Status::Invalid, format_args!("{name} is {value}: give 0 to 255, or -1 to leave memory as it is")))
        }
    };
    // SAFETY: null or a living handle, and a place for the new one (header).
    unsafe {
        hand_out(out, || {
            make("filled", Some(upstream), &[byte("on_allocate", on_allocate)?, byte("on_free", on_free)?])
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
    const INITIALIZER: &'static str = "FIRSTTOUCH_INIT(firsttouch_functions)";
    const LEAST: usize = 48;
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
    // SAFETY: functions that keep malloc's contract, and a place for the handle (`firsttouch_from_functions` in the
    // header).
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
