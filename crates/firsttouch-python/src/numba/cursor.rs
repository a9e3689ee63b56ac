//! The state of a buffer in compiled code: the position of the next array, and the open marks.
//!
//! Compiled code bumps the position itself; it calls here for the next chunk, for large arrays, and to rewind to a mark where
//! that is more than setting the position. Arrays made since a mark share one of Numba's reference counts, so that one load
//! tells whether any is live. If so, the count keeps the chunks of its arrays until they die, and nothing is cut off those
//! meanwhile.

#![allow(unsafe_code)] // Safety: one thread at a time uses a cursor, which its calls check; frames are its own (law 8).

use crate::numba::failure::Failure;
use crate::numba::runtime::{self, MemInfo};
use firsttouch::allocator::{AllocError, Allocator, Request};
use firsttouch::scratch::Buffer;
use pyo3::ffi;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// Bytes of the first chunk; the next are twice as large, four times in all.
const CHUNK: usize = 64 << 10;
/// Larger arrays have memory of their own.
const LARGE: usize = CHUNK / 4;
/// Where the arrays of so many marks keep chunks, every array has memory of its own until some of them are gone.
const LEFT: usize = 2;
/// One change, in the place of a cursor: more than there are chunks.
const CHANGE: u64 = 1 << 24;
/// Smaller chunks are not worth it.
const SMALLEST: usize = 4 << 10;

/// A block of a buffer's, freed with its last holder: the cursor, or arrays that outlived their mark.
struct Chunk {
    address: NonNull<u8>,
    size: usize,
    buffer: Arc<Buffer>,
}

// SAFETY: the address is only a number to other threads, and any thread may free a block.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new(buffer: &Arc<Buffer>, size: usize) -> Result<Arc<Self>, AllocError> {
        let block = buffer.allocate(Request::bytes(size))?;
        Ok(Arc::new(Self { address: block.address, size, buffer: buffer.clone() }))
    }

    fn start(&self) -> usize {
        self.address.as_ptr().expose_provenance()
    }

    fn end(&self) -> usize {
        self.start() + self.size
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: the block is this chunk's, and all its users held the chunk (law 8: nothing dangles).
        unsafe { self.buffer.deallocate(self.address) };
    }
}

/// What a count keeps until it ends, in any thread: chunks, and a reference to the cursor's `left`.
type Kept = (Vec<Arc<Chunk>>, Option<Arc<()>>);

extern "C" fn ended(data: *mut c_void) {
    // SAFETY: `data` is the box that `Count::new` let go of for this count, which ends once.
    drop(unsafe { Box::from_raw(data.cast::<Kept>()) });
}

/// A reference to a count that arrays share.
struct Count {
    info: NonNull<MemInfo>,
    kept: NonNull<Kept>,
}

impl Count {
    /// Creates a count; `None` if there is no memory.
    fn new(kept: Kept) -> Option<Self> {
        let kept = NonNull::from_mut(Box::leak(Box::new(kept)));
        let Some(info) = runtime::counted(kept.as_ptr().cast(), ended) else {
            ended(kept.as_ptr().cast());
            return None;
        };
        Some(Self { info, kept })
    }

    /// Whether no live array refers to it.
    fn is_alone(&self) -> bool {
        // SAFETY: the reference is ours.
        unsafe { runtime::alone(self.info) }
    }

    /// Leaves the count to its arrays, for which it keeps this from now on.
    fn leave(self, kept: Kept) {
        // SAFETY: the count lives while this reference does, and nothing else reads what it keeps before it ends.
        unsafe { *self.kept.as_ptr() = kept };
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and we are done with it.
        unsafe { runtime::release(self.info) };
    }
}

/// What is known of a mark, open or not. Compiled code accesses the first fields by their offsets.
#[repr(C)]
pub struct MarkFrame {
    /// The count of the arrays made here.
    info: *mut MemInfo,
    /// The cursor's position and place when it was opened.
    top: usize,
    place: u64,
    /// Incremented whenever the frame is opened; a mark holds the value of its own.
    generation: usize,
    /// The frame around it.
    outer: *mut MarkFrame,
    /// The next one in, once there was one; it stays for the next mark.
    inner: *mut MarkFrame,
    /// The number of frames around it.
    depth: usize,
    count: Count,
    /// Arrays that have memory and a count of their own.
    apart: Vec<Count>,
}

/// See the module. Compiled code accesses the first fields by their offsets.
#[repr(C)]
pub struct Cursor {
    /// The next free address, a multiple of 64.
    top: usize,
    /// The end of the current chunk.
    end: usize,
    /// The innermost open frame.
    frame: *mut MarkFrame,
    /// The thread whose compiled code uses this, as compiled code identifies it; zero for none.
    pub owner: usize,
    /// The current chunk's number in the list, and above it a count of changes: of what makes going back to a frame that is
    /// open more than setting the position. A frame with the same place needs no more.
    place: u64,
    /// The count of the last array that was made by a call.
    info: *mut MemInfo,
    /// Always null, though the compiler cannot know that.
    nothing: *mut MemInfo,
    /// The Python object that owns the cursor.
    pub object: *mut ffi::PyObject,
    /// The Python thread that made the call.
    pub caller: usize,
    /// The failure of another thread.
    pub failed: Option<Failure>,
    /// All frames, the outermost first.
    frames: Vec<*mut MarkFrame>,
    chunks: Vec<Arc<Chunk>>,
    buffer: Arc<Buffer>,
    /// Has a reference in each count that keeps chunks.
    left: Arc<()>,
}

impl Cursor {
    pub fn new(buffer: Arc<Buffer>, object: *mut ffi::PyObject) -> Self {
        Self {
            top: 0,
            end: 0,
            frame: null_mut(),
            owner: 0,
            place: 0,
            info: null_mut(),
            nothing: null_mut(),
            object,
            caller: 0,
            failed: None,
            frames: Vec::new(),
            chunks: Vec::new(),
            buffer,
            left: Arc::default(),
        }
    }

    /// The number of open frames.
    pub fn depth(&self) -> usize {
        // SAFETY: an open frame of ours, if any.
        unsafe { self.frame.as_ref() }.map_or(0, |frame| frame.depth + 1)
    }

    /// The number of the current chunk in the list.
    fn chunk(&self) -> usize {
        (self.place % CHANGE) as usize
    }

    /// Opens a frame.
    pub fn open(&mut self) -> Result<*mut MarkFrame, Failure> {
        let depth = self.depth();
        if depth == self.frames.len() {
            let count = Count::new(Kept::default()).ok_or_else(|| Failure::memory("no memory is left for a mark"))?;
            let made = Box::into_raw(Box::new(MarkFrame {
                info: count.info.as_ptr(),
                top: 0,
                place: 0,
                generation: self.frames.len() << 40, // no other frame's
                outer: self.frame,
                inner: null_mut(),
                depth,
                count,
                apart: Vec::new(),
            }));
            // SAFETY: an open frame of ours, if any.
            if let Some(outer) = unsafe { self.frame.as_mut() } {
                outer.inner = made;
            }
            self.frames.push(made);
        }
        self.frame = self.frames[depth];
        // SAFETY: a frame of ours, which nothing else accesses meanwhile.
        let frame = unsafe { &mut *self.frame };
        (frame.top, frame.place) = (self.top, self.place);
        frame.generation += 1;
        Ok(self.frame)
    }

    /// Allocates memory for an array, with its count in `info`, if bumping is not possible.
    pub fn allocate(&mut self, size: usize) -> Result<usize, Failure> {
        let rounded = size.max(1).checked_next_multiple_of(64).filter(|&size| size <= LARGE);
        let Some(size) = rounded.filter(|_| Arc::strong_count(&self.left) <= LEFT) else {
            return self.allocate_apart(size);
        };
        if size > self.end - self.top && !self.enter_spare(size) && !self.enter_new(size) {
            return self.allocate_apart(size);
        }
        let address = self.top;
        self.top += size;
        // SAFETY: compiled code runs in an open frame.
        self.info = unsafe { (*self.frame).info };
        Ok(address)
    }

    /// Memory of an array's own.
    fn allocate_apart(&mut self, size: usize) -> Result<usize, Failure> {
        let chunk = Chunk::new(&self.buffer, size)?;
        let address = chunk.start();
        let count = Count::new((vec![chunk], None));
        let count = count.ok_or_else(|| Failure::memory("no memory is left to count an array"))?;
        self.info = count.info.as_ptr();
        self.place = self.place.wrapping_add(CHANGE);
        // SAFETY: compiled code runs in an open frame.
        unsafe { (*self.frame).apart.push(count) };
        Ok(address)
    }

    /// Goes on in the next chunk, if there is one with room.
    fn enter_spare(&mut self, size: usize) -> bool {
        let next = self.chunk() + 1;
        let fits = self.chunks.get(next).is_some_and(|chunk| chunk.size >= size);
        if fits {
            self.enter(next);
        }
        fits
    }

    /// Goes on in a new chunk; `false` where the buffer has none that is worth it.
    fn enter_new(&mut self, size: usize) -> bool {
        let mut wanted = CHUNK << self.chunks.len().min(4);
        let chunk = loop {
            match Chunk::new(&self.buffer, wanted) {
                Ok(chunk) => break chunk,
                Err(_) if wanted / 2 >= size.max(SMALLEST) => wanted /= 2,
                Err(_) => return false,
            }
        };
        let next = if self.chunks.is_empty() { 0 } else { self.chunk() + 1 };
        self.chunks.insert(next, chunk);
        self.enter(next);
        true
    }

    /// Goes on at the beginning of a chunk that no array needs.
    fn enter(&mut self, at: usize) {
        self.set_chunk(at);
        self.place = self.place.wrapping_add(CHANGE);
        (self.top, self.end) = (self.chunks[at].start(), self.chunks[at].end());
    }

    fn set_chunk(&mut self, at: usize) {
        self.place = self.place - self.place % CHANGE + at as u64;
    }

    /// Rewinds to a mark, if it is one of this cursor's that is open.
    pub fn rewind(&mut self, frame: *mut MarkFrame, generation: usize) -> Result<(), Failure> {
        let Some(depth) = self.frames[..self.depth()].iter().position(|&open| open == frame) else {
            return Err(Failure::mark(
                "this mark is not open: the buffer was rewound to it or to an earlier one, or another buffer made it",
            ));
        };
        // SAFETY: an open frame of ours.
        if unsafe { (*frame).generation } != generation {
            return Err(Failure::mark("the buffer was already rewound to this mark, or to an earlier one"));
        }
        self.close(depth);
        Ok(())
    }

    /// Closes frames until so many are open.
    pub fn close(&mut self, depth: usize) {
        while self.depth() > depth {
            // SAFETY: an open frame of ours, which nothing else accesses meanwhile.
            let frame = unsafe { &mut *self.frame };
            self.frame = frame.outer;
            frame.apart.clear();
            if !frame.count.is_alone() {
                self.leave_to_arrays(frame);
            }
            self.go_back((frame.place % CHANGE) as usize, frame.top);
        }
    }

    /// Leaves the chunks since a frame was opened to the arrays on them.
    fn leave_to_arrays(&mut self, frame: &mut MarkFrame) {
        let first = (frame.place % CHANGE) as usize;
        let chunks = self.chunks.iter().take(self.chunk() + 1).skip(first);
        let kept = (chunks.cloned().collect(), Some(self.left.clone()));
        match Count::new(Kept::default()) {
            Some(fresh) => {
                frame.info = fresh.info.as_ptr();
                std::mem::replace(&mut frame.count, fresh).leave(kept);
            }
            // Without memory for another count, this one keeps its chunks for ever.
            None => std::mem::forget(kept),
        }
        self.place = self.place.wrapping_add(CHANGE);
    }

    /// Sets the position. Where arrays keep the chunk, nothing more is cut off it.
    fn go_back(&mut self, at: usize, top: usize) {
        let mut number = 0;
        self.chunks.retain_mut(|chunk| {
            number += 1;
            number <= at + 1 || Arc::get_mut(chunk).is_some()
        });
        let was_further = self.chunk() > at;
        self.set_chunk(at);
        (self.top, self.end) = match self.chunks.get_mut(at) {
            Some(chunk) => {
                let top = top.max(chunk.start());
                (top, if Arc::get_mut(chunk).is_some() { chunk.end() } else { top })
            }
            None => (0, 0),
        };
        // A loop that needs more than this would otherwise change chunks twice in every iteration.
        if was_further && self.end - self.top < CHUNK / 2 && self.chunks.len() > at + 1 {
            self.enter(at + 1);
        }
    }

    /// Gives all chunks back, but those that arrays need; with no frame open.
    pub fn empty(&mut self) {
        self.chunks.clear();
        (self.top, self.end) = (0, 0);
        self.set_chunk(0);
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.close(0);
        for frame in self.frames.drain(..) {
            // SAFETY: made by `open`, and closed; this cursor ends.
            drop(unsafe { Box::from_raw(frame) });
        }
    }
}
