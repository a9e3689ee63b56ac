//! Chunks of a buffer's memory, and Numba's reference counts that keep them while arrays lie on them.

#![allow(unsafe_code)] // Safety: a chunk is freed once neither a cursor nor an array holds it (law 8).

use crate::numba::runtime::{self, MemInfo};
use firsttouch::allocator::{AllocError, Allocator, Request};
use firsttouch::scratch::Buffer;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// A block, freed with its last holder: the cursor, or arrays that outlived their mark.
pub struct Chunk {
    address: NonNull<u8>,
    size: usize,
    buffer: Arc<Buffer>,
    /// Bytes of all chunks of the cursor that were set aside.
    aside: Arc<AtomicUsize>,
    /// Whether this one is among them.
    counted: AtomicBool,
    /// The end of the memory of arrays that outlived their mark; an address in the chunk, or zero.
    floor: AtomicUsize,
}

// SAFETY: the address is only a number to other threads; all else is atomic, and a backing is for any thread.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    /// Memory from a buffer.
    pub fn new(buffer: &Arc<Buffer>, aside: &Arc<AtomicUsize>, size: usize) -> Result<Arc<Self>, AllocError> {
        let request = Request::bytes(size);
        request.check()?;
        let block = buffer.allocate(request)?;
        Ok(Arc::new(Self {
            address: block.address,
            size,
            buffer: buffer.clone(),
            aside: aside.clone(),
            counted: AtomicBool::new(false),
            floor: AtomicUsize::new(0),
        }))
    }

    pub fn start(&self) -> usize {
        self.address.as_ptr().expose_provenance()
    }

    pub fn end(&self) -> usize {
        self.start() + self.size
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Arrays up to `end` outlived their mark: until they die nothing below it is used again.
    pub fn set_aside(&self, end: usize) {
        self.floor.fetch_max(end, Relaxed);
        if !self.counted.swap(true, Relaxed) {
            self.aside.fetch_add(self.size, Relaxed);
        }
    }

    /// Whether no array needs it.
    pub fn is_free(chunk: &mut Arc<Self>) -> bool {
        let Some(alone) = Arc::get_mut(chunk) else { return false };
        alone.floor = AtomicUsize::new(0);
        alone.forget();
        true
    }

    /// The lowest address from `top` on that may be used again.
    pub fn usable_from(chunk: &mut Arc<Self>, top: usize) -> usize {
        Self::is_free(chunk);
        top.max(chunk.start()).max(chunk.floor.load(Relaxed))
    }

    fn forget(&mut self) {
        if std::mem::take(self.counted.get_mut()) {
            self.aside.fetch_sub(self.size, Relaxed);
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.forget();
        // SAFETY: the block is this chunk's, and all its users held the chunk (law 8: nothing dangles).
        unsafe { self.buffer.deallocate(self.address) };
    }
}

/// The chunks that a count holds. Dropped when the count ends, in any thread.
struct HeldChunks {
    chunks: Vec<Arc<Chunk>>,
}

extern "C" fn ended(data: *mut c_void) {
    // SAFETY: `data` is the box that `ArrayCount::new` let go of for this count, which ends once.
    drop(unsafe { Box::from_raw(data.cast::<HeldChunks>()) });
}

/// A reference to a count that arrays share.
pub struct ArrayCount {
    info: NonNull<MemInfo>,
    held: NonNull<HeldChunks>,
}

impl ArrayCount {
    /// Creates a count that holds chunks; `None` if there is no memory.
    pub fn new(chunks: Vec<Arc<Chunk>>) -> Option<Self> {
        let held = Box::into_raw(Box::new(HeldChunks { chunks }));
        let Some(info) = runtime::counted(held.cast(), ended) else {
            // SAFETY: no count took the box.
            drop(unsafe { Box::from_raw(held) });
            return None;
        };
        Some(Self { info, held: NonNull::new(held)? })
    }

    /// The `MemInfo` that arrays refer to.
    pub fn info(&self) -> *mut MemInfo {
        self.info.as_ptr()
    }

    /// Whether no live array refers to it.
    pub fn is_alone(&self) -> bool {
        // SAFETY: the reference is ours.
        unsafe { runtime::alone(self.info) }
    }

    /// Leaves the count to its arrays, which hold these chunks from now on.
    pub fn leave(self, chunks: Vec<Arc<Chunk>>) {
        // SAFETY: the count lives while this reference does, and nothing else reads what it holds before it ends.
        unsafe { (*self.held.as_ptr()).chunks.extend(chunks) };
    }
}

impl Drop for ArrayCount {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and we are done with it.
        unsafe { runtime::release(self.info) };
    }
}
