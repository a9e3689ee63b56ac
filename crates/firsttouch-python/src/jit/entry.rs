//! The way into compiled code and out of it: a call from Python is a scope of its own.

#![allow(unsafe_code)] // Safety: called with the GIL held, which makes entering and leaving one at a time.

use super::calls::thread;
use super::cursor::Cursor;
use super::frame::Frame;
use crate::callbacks::given;
use crate::memory_out::{PyMemoryError, PyRuntimeError};
use firsttouch::scratch::Backing;
use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A buffer's cursor, made when compiled code first gets the buffer.
#[derive(Default)]
pub struct Handle {
    cursor: AtomicPtr<Cursor>,
    calls: UnsafeCell<Calls>,
}

/// The calls of compiled code that run.
#[derive(Default)]
struct Calls {
    /// What each opened, the innermost last.
    frames: Vec<*mut Frame>,
    /// The thread that runs them, as Python knows it.
    ident: usize,
}

// SAFETY: calls are looked at with the GIL held; the cursor is used by the one thread that runs them.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// A call of compiled code begins.
    pub fn enter(&self, owner: &Bound<'_, PyAny>, backing: &Arc<dyn Backing>) -> PyResult<*mut Cursor> {
        // SAFETY: the GIL is held, and nothing below lets go of it while this is borrowed.
        let calls = unsafe { &mut *self.calls.get() };
        // SAFETY: no more than asking for the number of this thread.
        let here = unsafe { libc::pthread_self() } as usize;
        if !calls.frames.is_empty() && calls.ident != here {
            return Err(PyRuntimeError::new_err(in_use(owner.py(), calls.ident, here)));
        }
        if self.cursor.load(Relaxed).is_null() {
            self.cursor.store(Box::into_raw(Box::new(Cursor::new(backing.clone(), owner.as_ptr()))), Relaxed);
        }
        let address = self.cursor.load(Relaxed);
        // SAFETY: made above, dropped with the handle; no other thread uses it, as none but this one runs calls.
        let cursor = unsafe { &mut *address };
        let frame = cursor.open().map_err(|_| PyMemoryError::new_err("no memory is left to enter a buffer"))?;
        calls.ident = here;
        cursor.owner = thread();
        cursor.caller = cursor.owner;
        calls.frames.push(frame);
        Ok(address)
    }

    /// The innermost call ends.
    pub fn leave(&self) {
        // SAFETY: the GIL is held.
        let calls = unsafe { &mut *self.calls.get() };
        // SAFETY: made by the call that ends, and used by this thread, which runs it.
        let (Some(frame), Some(cursor)) = (calls.frames.pop(), unsafe { self.cursor.load(Relaxed).as_mut() }) else {
            return;
        };
        cursor.close(frame);
        if calls.frames.is_empty() {
            cursor.empty();
            cursor.owner = 0;
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let cursor = *self.cursor.get_mut();
        if self.calls.get_mut().frames.is_empty() && !cursor.is_null() {
            // SAFETY: made by `enter`; no call runs that could use it.
            drop(unsafe { Box::from_raw(cursor) });
        }
    }
}

/// Why a thread may not use a buffer.
fn in_use(py: Python<'_>, owner: usize, caller: usize) -> String {
    let text = || -> PyResult<String> { given(py, "jit_in_use")?.call1((owner, caller))?.extract() };
    text().unwrap_or_else(|_| format!("the buffer is in use in thread {owner}; this is thread {caller}"))
}
