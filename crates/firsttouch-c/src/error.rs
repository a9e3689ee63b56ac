//! Status codes, and the message of a thread's last error. Nothing here allocates.

use firsttouch::reserve::{WithReserve, is_ready};
use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_char, c_int};
use std::fmt::Display;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[global_allocator]
static GLOBAL: WithReserve = WithReserve;

/// `firsttouch_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    Ok = 0,
    NoMemory = 1,
    Invalid = 2,
    Expression = 3,
    Unsupported = 4,
    System = 5,
    Internal = 6,
}

/// Bytes of the longest message; longer ones are cut.
const LENGTH: usize = 1024;

thread_local! {
    static LAST: UnsafeCell<[u8; LENGTH]> = const { UnsafeCell::new([0; LENGTH]) };
}

#[cfg(not(windows))]
use libc::__errno_location as errno_of_thread;

#[cfg(windows)]
#[link(name = "api-ms-win-crt-runtime-l1-1-0", kind = "raw-dylib")]
unsafe extern "C" {
    #[link_name = "_errno"]
    fn errno_of_thread() -> *mut c_int;
}

/// The thread's own `errno`; on Windows, where each C runtime has one, that of the Universal C Runtime.
pub fn errno() -> &'static Cell<c_int> {
    // SAFETY: no other thread uses this one's, which lies there for as long as the thread runs.
    unsafe { Cell::from_mut(&mut *errno_of_thread()) }
}

/// Keeps `message` as the thread's last error and returns `status`.
pub fn fail(status: Status, message: impl Display) -> Status {
    LAST.with(|last| {
        // SAFETY: the thread's own, and no message's `Display` calls a function of this interface.
        let last = unsafe { &mut *last.get() };
        let mut rest = &mut last[..LENGTH - 1];
        let _ = write!(rest, "{message}"); // what does not fit is cut
        let used = LENGTH - 1 - rest.len();
        let whole = str::from_utf8(&last[..used]).map_or_else(|cut| cut.valid_up_to(), str::len);
        last[whole] = 0;
    });
    status
}

/// Runs the body of a function: a panic, which would be a fault of this library, must not cross into C.
pub fn protect<R>(on_panic: R, body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        fail(Status::Internal, "internal error in firsttouch: please report the message that was printed");
        on_panic
    })
}

/// Refuses a call that makes objects, or may have to, while neither the C library nor the reserve has memory for them.
pub fn ensure_memory() -> Result<(), Status> {
    if is_ready() { Ok(()) } else { Err(fail(Status::NoMemory, "cannot allocate: the process has no memory left")) }
}

/// The status of a function's body.
pub fn status_of(body: impl FnOnce() -> Result<(), Status>) -> Status {
    protect(Err(Status::Internal), body).err().unwrap_or(Status::Ok)
}

/// Refuses null for the place of the result `name`.
pub fn required<T>(name: &str, out: *mut T) -> Result<(), Status> {
    if out.is_null() { Err(fail(Status::Invalid, format_args!("the address of the {name} is NULL"))) } else { Ok(()) }
}

/// Writes the result `name` to where the caller wants it.
///
/// # Safety
/// `out` is null or can be written.
pub unsafe fn put<T>(name: &str, out: *mut T, result: T) -> Result<(), Status> {
    required(name, out)?;
    // SAFETY: not null, so it can be written.
    unsafe { out.write(result) };
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn firsttouch_last_error() -> *const c_char {
    LAST.with(|last| last.get().cast::<c_char>().cast_const())
}

#[unsafe(no_mangle)]
extern "C" fn firsttouch_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
