//! The state of a buffer in compiled code: the position of the next array, and the open marks.
//!
//! Compiled code bumps the position itself; it calls here for the next chunk, for large arrays, and to rewind to a mark,
//! which frees memory without live arrays and keeps the rest until its arrays die. Arrays made since a mark share one of
//! Numba's reference counts, so that one load tells whether any is live.

#![allow(unsafe_code)] // Safety: one thread at a time uses a cursor, which its calls check; frames are its own (law 8).

use crate::numba::failure::{Failure, FailureReport};
use crate::numba::runtime::{self, MemInfo};
use firsttouch::allocator::{AllocError, Allocator, Request};
use firsttouch::scratch::Buffer;
use pyo3::ffi;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

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

/// See the module. Compiled code accesses the first fields by their offsets.
#[repr(C)]
pub struct Cursor {
    /// The next free address, a multiple of 64.
    pub top: usize,
    /// The end of the current chunk.
    pub end: usize,
    /// The innermost open frame.
    pub frame: *mut MarkFrame,
    /// The thread whose compiled code uses this, as compiled code identifies it; zero for none.
    pub owner: usize,
    /// The current chunk's place in the list.
    pub chunk: usize,
    /// The count of the last array that was made by a call.
    pub info: *mut MemInfo,
    /// Always null, though the compiler cannot know that.
    pub nothing: *mut MemInfo,
    /// The Python object that owns the cursor.
    pub object: *mut ffi::PyObject,
    /// The Python thread that made the call.
    pub caller: usize,
    /// The failure of another thread.
    pub failed: Option<FailureReport>,
    first: *mut MarkFrame,
    generations: usize,
    chunks: Vec<Arc<Chunk>>,
    buffer: Arc<Buffer>,
    aside: Arc<AtomicUsize>,
}

impl Cursor {
    pub fn new(buffer: Arc<Buffer>, object: *mut ffi::PyObject) -> Self {
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
            buffer,
            aside: Arc::default(),
        }
    }

    /// Opens a frame.
    pub fn open(&mut self) -> Result<*mut MarkFrame, Failure> {
        // SAFETY: open frames are in our list, which only we change.
        let link = unsafe { self.frame.as_mut() }.map_or(&raw mut self.first, |frame| &raw mut frame.inner);
        // SAFETY: `link` is a field of this cursor or of one of its frames.
        unsafe {
            if (*link).is_null() {
                self.generations += 1 << 40;
                *link = MarkFrame::new(self.frame, self.generations)
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
    pub fn frames(&self) -> impl Iterator<Item = *mut MarkFrame> + use<> {
        // SAFETY: open frames are in our list.
        let outer = |frame: *mut MarkFrame| unsafe { frame.as_ref() }.map(|frame| frame.outer);
        std::iter::successors(Some(self.frame), move |&frame| outer(frame)).take_while(|frame| !frame.is_null())
    }
}

/// Bytes of the first chunk; the next are twice as large, four times in all.
pub const CHUNK: usize = 64 << 10;
/// Larger arrays have memory of their own.
const LARGE: usize = CHUNK / 4;
/// Set-aside chunks hold no more than this: then every array has memory of its own until some are back.
const ASIDE: usize = 2 * CHUNK;
/// Smaller chunks are not worth it.
const SMALLEST: usize = 4 << 10;

/// Bytes that an array takes: a multiple of 64, never none.
const fn rounded(size: usize) -> usize {
    ((size - (size != 0) as usize) | 63) + 1
}

impl Cursor {
    /// Allocates memory for an array, with its count in `info`, if bumping is not possible.
    pub fn allocate(&mut self, size: usize) -> Result<usize, Failure> {
        let size = rounded(size);
        if size > LARGE || self.aside.load(Relaxed) > ASIDE {
            return self.allocate_apart(size);
        }
        if size > self.end - self.top && !self.enter_spare(size) && !self.enter_new(size)? {
            return self.allocate_apart(size);
        }
        let address = self.top;
        self.top += size;
        // SAFETY: compiled code runs in an open frame.
        self.info = unsafe { self.frame.as_ref() }.map_or(null_mut(), |frame| frame.info);
        Ok(address)
    }

    /// Memory of an array's own.
    fn allocate_apart(&mut self, size: usize) -> Result<usize, Failure> {
        let chunk = Chunk::new(&self.buffer, &self.aside, size)?;
        let address = chunk.start();
        let none = || Failure::Memory("no memory is left to count an array".into());
        let hold = ArrayCount::new(vec![chunk]).ok_or_else(none)?;
        self.info = hold.info();
        // SAFETY: compiled code runs in an open frame.
        let frame = unsafe { self.frame.as_mut() }.ok_or_else(none)?;
        frame.slow = 1;
        frame.large.push(hold);
        Ok(address)
    }

    /// Goes on in the next chunk, if there is one with room.
    fn enter_spare(&mut self, size: usize) -> bool {
        let next = self.chunk + 1;
        let fits = self.chunks.get(next).is_some_and(|chunk| chunk.size() >= size);
        if fits {
            self.enter(next);
        }
        fits
    }

    /// Goes on in a new chunk; `false` where the buffer has none that is worth it.
    fn enter_new(&mut self, size: usize) -> Result<bool, Failure> {
        let mut wanted = CHUNK << self.chunks.len().min(4);
        let chunk = loop {
            match Chunk::new(&self.buffer, &self.aside, wanted) {
                Ok(chunk) => break chunk,
                Err(_) if wanted / 2 >= size.max(SMALLEST) => wanted /= 2,
                Err(_) => return Ok(false),
            }
        };
        let place = if self.chunks.is_empty() { 0 } else { self.chunk + 1 };
        self.chunks.insert(place, chunk);
        self.enter(place);
        Ok(true)
    }

    /// Goes on at the beginning of a chunk that no array needs.
    fn enter(&mut self, place: usize) {
        for frame in self.frames() {
            // SAFETY: an open frame of ours. Frames that began before the first chunk cannot just set the position.
            unsafe { (*frame).slow |= usize::from(frame == self.frame || (*frame).top == 0) };
        }
        self.chunk = place;
        self.top = self.chunks[place].start();
        self.end = self.chunks[place].end();
    }
}

impl Cursor {
    /// Closes an open frame and all frames in it.
    pub fn close(&mut self, frame: *mut MarkFrame) {
        loop {
            let innermost = self.frame;
            if innermost.is_null() {
                return;
            }
            self.close_innermost();
            if innermost == frame {
                return;
            }
        }
    }

    fn close_innermost(&mut self) {
        // SAFETY: an open frame of ours, which nothing else accesses meanwhile.
        let Some(frame) = (unsafe { self.frame.as_mut() }) else { return };
        self.frame = frame.outer;
        frame.large.clear();
        if !frame.is_alone() {
            self.set_aside(frame);
        }
        self.go_back(frame.chunk, frame.top);
    }

    /// Leaves the memory since a frame was opened to the arrays on it.
    fn set_aside(&mut self, frame: &mut MarkFrame) {
        let range = frame.chunk.min(self.chunks.len())..(self.chunk + 1).min(self.chunks.len());
        let held: Vec<Arc<Chunk>> = self.chunks[range.clone()].to_vec();
        for (chunk, place) in held.iter().zip(range) {
            chunk.set_aside(if place == self.chunk { self.top } else { chunk.end() });
        }
        match ArrayCount::new(Vec::new()) {
            Some(fresh) => frame.replace(fresh).leave(held),
            // Without memory for another count, this one keeps its chunks while the cursor lives.
            None => std::mem::forget(held),
        }
        for outer in self.frames() {
            // SAFETY: an open frame of ours.
            unsafe { (*outer).slow |= usize::from((*outer).chunk >= frame.chunk) };
        }
    }

    /// Sets the position, or the first one after it that no array needs.
    fn go_back(&mut self, place: usize, top: usize) {
        let mut number = 0;
        self.chunks.retain_mut(|chunk| {
            number += 1;
            number <= place + 1 || Chunk::is_free(chunk)
        });
        let was_further = self.chunk > place;
        self.chunk = place;
        (self.top, self.end) = match self.chunks.get_mut(place) {
            Some(chunk) => (Chunk::usable_from(chunk, top), chunk.end()),
            None => (0, 0),
        };
        // A loop that needs more than this would otherwise change chunks twice in every iteration.
        if was_further && self.end - self.top < CHUNK / 2 && self.chunks.len() > place + 1 {
            self.enter(place + 1);
        }
    }

    /// Gives all chunks back, but those that arrays need; with no frame open.
    pub fn empty(&mut self) {
        self.chunks.clear();
        (self.top, self.end, self.chunk) = (0, 0, 0);
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        while !self.frame.is_null() {
            self.close_innermost();
        }
        let first = std::mem::replace(&mut self.first, null_mut());
        // SAFETY: all are closed, and this cursor, which made them, ends.
        unsafe { MarkFrame::drop_all(first) };
    }
}
