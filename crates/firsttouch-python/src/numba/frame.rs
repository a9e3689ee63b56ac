//! The frame that a mark opens: arrays made since share a reference count, so one load tells whether any is live.

#![allow(unsafe_code)] // Safety: frames belong to their cursor, which alone makes and drops them.

use crate::numba::chunks::ArrayCount;
use crate::numba::runtime::MemInfo;
use std::ptr::null_mut;

/// A mark's entry in its cursor's list. Compiled code accesses the first fields by their offsets.
#[repr(C)]
pub struct MarkFrame {
    /// The count of the arrays made here.
    pub info: *mut MemInfo,
    /// The cursor's position when it was opened.
    pub top: usize,
    /// The cursor's chunk at that time.
    pub chunk: usize,
    /// Not zero where going back takes more than setting the position.
    pub slow: usize,
    /// Incremented whenever the frame is opened; a mark holds the value of its own.
    pub generation: usize,
    /// The frame around it.
    pub outer: *mut MarkFrame,
    /// The next one in, once there was one; it stays for the next mark.
    pub inner: *mut MarkFrame,
    hold: ArrayCount,
    /// Arrays that have memory and a count of their own.
    pub large: Vec<ArrayCount>,
}

impl MarkFrame {
    /// Creates a closed frame inside `outer`; `None` if there is no memory.
    pub fn new(outer: *mut Self, generation: usize) -> Option<*mut Self> {
        let hold = ArrayCount::new(Vec::new())?;
        let frame = Self {
            info: hold.info(),
            top: 0,
            chunk: 0,
            slow: 0,
            generation,
            outer,
            inner: null_mut(),
            hold,
            large: Vec::new(),
        };
        Some(Box::into_raw(Box::new(frame)))
    }

    /// Whether no array made here is live, except for large ones.
    pub fn is_alone(&self) -> bool {
        self.hold.is_alone()
    }

    /// Takes another count, and gives the one so far.
    pub fn replace(&mut self, hold: ArrayCount) -> ArrayCount {
        self.info = hold.info();
        std::mem::replace(&mut self.hold, hold)
    }

    /// Drops a frame and all frames inside it.
    ///
    /// # Safety
    /// They are closed, their cursor no longer refers to them, and they came from [`MarkFrame::new`].
    pub unsafe fn drop_all(mut frame: *mut Self) {
        while !frame.is_null() {
            // SAFETY: the frames are closed, from `MarkFrame::new`, and in no cursor any more (`cursor.rs`); each frame
            // is in the list once.
            let owned = unsafe { Box::from_raw(frame) };
            frame = owned.inner;
        }
    }
}
