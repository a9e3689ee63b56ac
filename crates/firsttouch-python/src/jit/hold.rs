//! Memory that lives as long as the arrays on it: a count of Numba's that holds chunks.

#![allow(unsafe_code)] // Safety: a hold belongs to its count, which ends once.

use super::chunk::Chunk;
use super::runtime::{self, MemInfo};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

/// What a count holds. It goes when the count ends, in whatever thread.
struct Held {
    chunks: Vec<Arc<Chunk>>,
}

extern "C" fn ended(data: *mut c_void) {
    // SAFETY: `data` is the box that `Hold::new` let go of for this count, which ends once.
    drop(unsafe { Box::from_raw(data.cast::<Held>()) });
}

/// A reference to a count that arrays share.
pub struct Hold {
    info: NonNull<MemInfo>,
    held: NonNull<Held>,
}

impl Hold {
    /// A new count that holds chunks; nothing where there is no memory.
    pub fn new(chunks: Vec<Arc<Chunk>>) -> Option<Self> {
        let held = Box::into_raw(Box::new(Held { chunks }));
        let Some(info) = runtime::counted(held.cast(), ended) else {
            // SAFETY: no count took the box.
            drop(unsafe { Box::from_raw(held) });
            return None;
        };
        Some(Self { info, held: NonNull::new(held)? })
    }

    /// What arrays refer to.
    pub fn info(&self) -> *mut MemInfo {
        self.info.as_ptr()
    }

    /// Whether no array lives on it.
    pub fn is_alone(&self) -> bool {
        // SAFETY: the reference is ours.
        unsafe { runtime::alone(self.info) }
    }

    /// Leaves the count to its arrays, which hold these chunks from now on.
    pub fn leave(self, chunks: Vec<Arc<Chunk>>) {
        // SAFETY: the count lives while we have our reference, and nobody else looks at what it holds until it ends.
        unsafe { (*self.held.as_ptr()).chunks.extend(chunks) };
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and we are done with it.
        unsafe { runtime::release(self.info) };
    }
}
