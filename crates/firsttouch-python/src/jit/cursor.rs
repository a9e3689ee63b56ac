//! A buffer's state in compiled code: where the next array goes, and the marks that are open.

#![allow(unsafe_code)] // Safety: a cursor is used by one thread at a time, which its calls check; frames are its own.

use super::chunk::Chunk;
use super::failure::{Failure, Told};
use super::frame::Frame;
use super::runtime::MemInfo;
use firsttouch::scratch::Backing;
use pyo3::ffi;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// See the module. Compiled code knows the first fields by their offsets.
#[repr(C)]
pub struct Cursor {
    /// The next free address, a multiple of 64.
    pub top: usize,
    /// The end of the current chunk.
    pub end: usize,
    /// The innermost open frame.
    pub frame: *mut Frame,
    /// The thread whose compiled code uses this, as compiled code knows it; zero for none.
    pub owner: usize,
    /// The current chunk's place in the list.
    pub chunk: usize,
    /// The count of the last array that was made by a call.
    pub info: *mut MemInfo,
    /// Null for ever, though the compiler can't know that.
    pub nothing: *mut MemInfo,
    /// The Python object that owns the cursor.
    pub object: *mut ffi::PyObject,
    /// The thread whose call from Python it is.
    pub caller: usize,
    /// What went wrong in another thread.
    pub failed: Option<Told>,
    pub(super) first: *mut Frame,
    generations: usize,
    pub(super) chunks: Vec<Arc<Chunk>>,
    pub(super) backing: Arc<dyn Backing>,
    pub(super) aside: Arc<AtomicUsize>,
}

impl Cursor {
    pub fn new(backing: Arc<dyn Backing>, object: *mut ffi::PyObject) -> Self {
        Self {
            top: 0,
            end: 0,
            frame: null_mut(),
            owner: 0,
            chunk: 0,
            info: null_mut(),
            nothing: null_mut(),
            object,
            caller: 0,
            failed: None,
            first: null_mut(),
            generations: 0,
            chunks: Vec::new(),
            backing,
            aside: Arc::default(),
        }
    }

    /// Opens a frame.
    pub fn open(&mut self) -> Result<*mut Frame, Failure> {
        // SAFETY: open frames are in our list, which only we change.
        let link = unsafe { self.frame.as_mut() }.map_or(&raw mut self.first, |frame| &raw mut frame.inner);
        // SAFETY: `link` is a field of this cursor or of one of its frames.
        unsafe {
            if (*link).is_null() {
                self.generations += 1 << 40;
                *link = Frame::new(self.frame, self.generations)
                    .ok_or_else(|| Failure::Memory("no memory is left to remember a mark".into()))?;
            }
            let frame = &mut **link;
            frame.top = self.top;
            frame.chunk = self.chunk;
            frame.slow = 0;
            frame.generation += 1;
            self.frame = frame;
        }
        Ok(self.frame)
    }

    /// Open frames, the innermost first.
    pub fn frames(&self) -> impl Iterator<Item = *mut Frame> + use<> {
        // SAFETY: open frames are in our list.
        let outer = |frame: *mut Frame| unsafe { frame.as_ref() }.map(|frame| frame.outer);
        std::iter::successors(Some(self.frame), move |&frame| outer(frame)).take_while(|frame| !frame.is_null())
    }
}
