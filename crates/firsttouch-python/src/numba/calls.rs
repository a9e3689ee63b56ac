//! The functions that compiled code calls where a few instructions do not suffice. None needs the interpreter: parallel
//! loops run without it.

#![allow(unsafe_code)] // Safety: compiled code passes cursors that `enter` gave it, during the same call.

use crate::numba::cursor::Cursor;
use crate::numba::failure::{self, Failure};
use crate::numba::frame::MarkFrame;
use pyo3::ffi;
use std::ptr::null_mut;

/// The number of this thread in compiled code.
pub extern "C" fn thread() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let number: usize;
        // SAFETY: reads the thread pointer, whose first word is its own address on Linux.
        unsafe { std::arch::asm!("mov {}, fs:0", out(reg) number, options(nostack, readonly, preserves_flags)) };
        number
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        thread_local!(static HERE: u8 = const { 0 });
        HERE.with(|here| std::ptr::from_ref(here).expose_provenance())
    }
}

/// The cursor, if this thread may use it.
///
/// # Safety
/// Compiled code has the cursor from `enter` or from a list of them, and its call lasts.
unsafe fn mine<'a>(cursor: *mut Cursor) -> Result<&'a mut Cursor, Failure> {
    // SAFETY: the cursor is from `enter` or a list of them, and its call lasts (compiled code, by `attempt`); the owner
    // is a plain word that only a thread itself sets to its own number.
    match unsafe { (&raw const (*cursor).owner).read_volatile() } {
        // SAFETY: no other thread uses it while this one is its owner.
        owner if owner == thread() => Ok(unsafe { &mut *cursor }),
        owner => Err(Failure::Thread(owner, thread())),
    }
}

/// Does something with a cursor; the code of the failure, kept for its exception.
///
/// # Safety
/// As for `mine`.
unsafe fn attempt<T>(cursor: *mut Cursor, run: impl FnOnce(&mut Cursor) -> Result<T, Failure>) -> Result<T, i32> {
    // SAFETY: the cursor is from `enter` or a list of them, and its call lasts (compiled code).
    let cursor = unsafe { mine(cursor) }.map_err(failure::put)?;
    run(cursor).map_err(|error| {
        let code = failure::put(error);
        cursor.note_failure();
        code
    })
}

extern "C" fn allocate(cursor: *mut Cursor, size: usize) -> usize {
    // SAFETY: the cursor is from `enter`, and its call lasts (compiled code, head of the file).
    unsafe { attempt(cursor, |cursor| cursor.allocate(size)) }.unwrap_or(0)
}

extern "C" fn mark(cursor: *mut Cursor) -> *mut MarkFrame {
    // SAFETY: the cursor is from `enter`, and its call lasts (compiled code, head of the file).
    unsafe { attempt(cursor, Cursor::open) }.unwrap_or(null_mut())
}

fn back(cursor: &mut Cursor, frame: *mut MarkFrame, generation: usize) -> Result<(), Failure> {
    if !cursor.frames().any(|open| open == frame) {
        return Err(Failure::Mark(
            "this mark is not open: the buffer was rewound to it or to an earlier one, or another buffer made it",
        ));
    }
    // SAFETY: an open frame of this cursor.
    if unsafe { (*frame).generation } != generation {
        return Err(Failure::Mark("the buffer was already rewound to this mark, or to an earlier one"));
    }
    cursor.close(frame);
    Ok(())
}

extern "C" fn rewind(cursor: *mut Cursor, frame: *mut MarkFrame, generation: usize) -> i32 {
    // SAFETY: the cursor is from `enter`, and its call lasts (compiled code, head of the file).
    unsafe { attempt(cursor, |cursor| back(cursor, frame, generation)) }.map_or_else(|code| code, |()| 0)
}

extern "C" fn failure_code() -> i32 {
    failure::code()
}

/// Keeps the text for a shape of which there can be no array.
extern "C" fn bad_shape(lengths: *const isize, count: usize, itemsize: isize) {
    // SAFETY: compiled code passes an array of that many lengths.
    let lengths = unsafe { std::slice::from_raw_parts(lengths, count) };
    let shape: Vec<String> = lengths.iter().map(ToString::to_string).collect();
    let shape = format!("({}{})", shape.join(", "), if count == 1 { "," } else { "" });
    failure::put(Failure::Shape(if lengths.iter().any(|&length| length < 0) {
        format!("negative dimensions are not allowed: {shape}")
    } else {
        format!("no address space holds an array of shape {shape} with items of {itemsize} bytes")
    }));
}

/// Keeps the failure of a call that had no cursor, as `bad_shape`, in the cursor.
extern "C" fn failed(cursor: *mut Cursor) {
    // SAFETY: the cursor is from `enter`, and its call lasts (compiled code, head of the file).
    if let Ok(cursor) = unsafe { mine(cursor) } {
        cursor.note_failure();
    }
}

impl Cursor {
    /// Keeps the last failure of this thread for the caller's, as Numba would not report it.
    fn note_failure(&mut self) {
        if self.caller != thread() {
            self.failed = Some(failure::last());
        }
    }
}

/// A new reference to a cursor's buffer.
extern "C" fn object(cursor: *mut Cursor) -> *mut ffi::PyObject {
    // SAFETY: called with the GIL held; the object owns the cursor, so both live.
    unsafe { ffi::Py_NewRef((*cursor).object) }
}

/// Names and addresses for the linker of compiled code.
pub fn symbols() -> [(&'static str, usize); 8] {
    [
        ("firsttouch_numba_allocate", (allocate as *const ()).expose_provenance()),
        ("firsttouch_numba_mark", (mark as *const ()).expose_provenance()),
        ("firsttouch_numba_rewind", (rewind as *const ()).expose_provenance()),
        ("firsttouch_numba_thread", (thread as *const ()).expose_provenance()),
        ("firsttouch_numba_bad_shape", (bad_shape as *const ()).expose_provenance()),
        ("firsttouch_numba_failed", (failed as *const ()).expose_provenance()),
        ("firsttouch_numba_object", (object as *const ()).expose_provenance()),
        ("firsttouch_numba_failure_code", (failure_code as *const ()).expose_provenance()),
    ]
}
