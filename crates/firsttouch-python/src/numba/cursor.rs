//! Scratch memory of one call of compiled code: an arena, and the open marks.
//!
//! Compiled code moves the arena's top itself; it calls here for the next chunk, for large arrays, and to rewind to a mark
//! since which more was done than moving the top. Arrays made since a mark share one of Numba's reference counts, so that one
//! load tells whether any is live. If so, the arena is left to them, and the call goes on in another one.

#![allow(unsafe_code)] // Safety: one thread uses a cursor, that of its call; frames are its own (law 8).

use crate::numba::Failure;
use firsttouch::allocator::{AllocError, Limit};
use firsttouch::scratch::{Arena, Buffer, Mark, Scratch as _};
use pyo3::ffi;
use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::{NonNull, null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Acquire};

/// Bytes of the first chunk of an arena.
const CHUNK: usize = 64 << 10;
/// Larger arrays have memory of their own.
const LARGE_ARRAY: usize = CHUNK / 4;
/// While so many arenas are left to arrays, further arrays have memory of their own: few small ones would keep much.
const MAX_LEFT: usize = 2;
/// What arrays begin and end at multiples of.
const ALIGN: usize = 64;
/// Stands in the place of the count of a touched frame: compiled code rewinds to no frame whose count is not one.
static TOUCHED: AtomicUsize = AtomicUsize::new(0);

/// An arena that is left to the arrays in it, and ends with the last of them.
struct LeftArena {
    _arena: Arena<'static>,
    /// Of `Cursor::left`, unless the arena has one array.
    _counted: Option<Arc<()>>,
}

// SAFETY: it is only dropped, and that by one thread; an arena may move between threads.
unsafe impl Sync for LeftArena {}

extern "C" fn ended(data: *mut c_void) {
    // SAFETY: `data` is the box that `Count::new` let go of for this count, which ends once.
    drop(unsafe { Box::from_raw(data.cast::<Vec<Arc<LeftArena>>>()) });
}

/// A count as Numba has it; the fields after the number are private to Numba.
#[repr(C)]
struct MemInfo {
    count: AtomicUsize,
}

/// The functions that Numba publishes for other libraries (nrt_external.h).
#[repr(C)]
pub struct Api {
    _allocate: [*const c_void; 2],
    manage_memory: extern "C" fn(*mut c_void, extern "C" fn(*mut c_void)) -> *mut MemInfo,
    _acquire: *const c_void,
    release: extern "C" fn(*mut MemInfo),
}

/// They are static in Numba's module, which Python never unloads.
pub static API: AtomicPtr<Api> = AtomicPtr::new(null_mut());

fn api() -> Option<&'static Api> {
    // SAFETY: null or Numba's table.
    unsafe { API.load(Acquire).as_ref() }
}

/// A reference to a count that arrays share.
struct Count {
    info: NonNull<MemInfo>,
    /// What it keeps until it ends, in any thread.
    kept: NonNull<Vec<Arc<LeftArena>>>,
}

impl Count {
    fn new() -> Result<Self, Failure> {
        let kept = NonNull::from_mut(Box::leak(Box::<Vec<Arc<LeftArena>>>::default()));
        let made = api().map_or(null_mut(), |api| (api.manage_memory)(kept.as_ptr().cast(), ended));
        let Some(info) = NonNull::new(made) else {
            ended(kept.as_ptr().cast());
            return Err(Failure::Memory("no memory is left to count arrays".into()));
        };
        Ok(Self { info, kept })
    }

    /// Where the number of references stands.
    fn number(&self) -> *const AtomicUsize {
        self.info.as_ptr().cast()
    }

    /// Whether no live array refers to it. What other threads did before they gave up their references has happened then.
    fn is_alone(&self) -> bool {
        // SAFETY: it lives, as this reference is ours.
        unsafe { self.info.as_ref() }.count.load(Acquire) == 1
    }

    /// Keeps an arena for its arrays, until it ends or forgets what it keeps.
    fn keep(&self, left: Arc<LeftArena>) {
        // SAFETY: the count lives while this reference does, and nothing else accesses what it keeps before it ends.
        unsafe { &mut *self.kept.as_ptr() }.push(left);
    }

    fn forget(&self) {
        // SAFETY: the count lives while this reference does, and nothing else accesses what it keeps meanwhile.
        unsafe { &mut *self.kept.as_ptr() }.clear();
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        if let Some(api) = api() {
            (api.release)(self.info.as_ptr());
        }
    }
}

/// What is known of a mark, open or not. Compiled code accesses the first fields by their offsets.
///
/// A frame is *touched* once anything but moving the top was done while it was the innermost one. Compiled code does no more
/// than that, so the arena's chunks are those that there were when an untouched frame was opened.
#[repr(C)]
pub struct MarkFrame {
    /// The count of the arrays made here.
    info: *const AtomicUsize,
    /// The same, or [`TOUCHED`].
    watched: *const AtomicUsize,
    /// Where the arena was when it was opened. Compiled code sets the top, and [`touch`](Self::touch) the rest.
    mark: Mark,
    /// The frame around it.
    outer: *mut MarkFrame,
    /// The next one in, once there was one; it stays for the next mark.
    inner: *mut MarkFrame,
    /// The number of frames around it.
    depth: usize,
    count: Count,
    /// Of arrays that have memory of their own.
    apart: Vec<Count>,
}

impl MarkFrame {
    /// Makes it a touched frame, before anything is done; `chunks` are in use.
    fn touch(&mut self, chunks: u64) {
        if self.watched == self.info {
            self.mark.depth = chunks;
            self.watched = &raw const TOUCHED;
        }
    }
}

/// See the module. Compiled code accesses the first fields by their offsets, up to the arena's first three.
#[repr(C)]
pub struct Cursor {
    /// The innermost open frame.
    frame: *mut MarkFrame,
    /// The count of the last array that was made by a call.
    info: *const AtomicUsize,
    /// Always null, though the compiler cannot know that.
    nothing: *const AtomicUsize,
    arena: Arena<'static>,
    /// How many frames were open when the arena was made.
    since: usize,
    /// Counts the arenas that are left to arrays.
    left: Arc<()>,
    /// All frames, the outermost first.
    frames: Vec<*mut MarkFrame>,
    buffer: Arc<Buffer>,
    /// The Python object that the call was given, and our number of the thread that made it.
    pub object: *mut ffi::PyObject,
    pub caller: u64,
    /// The failure of a thread other than the caller's.
    pub failed: Option<Failure>,
}

// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for Cursor {}

impl Cursor {
    pub fn new(buffer: Arc<Buffer>) -> Self {
        Self {
            frame: null_mut(),
            info: null(),
            nothing: null(),
            arena: Arena::with(buffer.clone(), CHUNK),
            since: 0,
            left: Arc::default(),
            frames: Vec::new(),
            buffer,
            object: null_mut(),
            caller: 0,
            failed: None,
        }
    }

    fn depth(&self) -> usize {
        // SAFETY: an open frame of ours, if any.
        unsafe { self.frame.as_ref() }.map_or(0, |frame| frame.depth + 1)
    }

    pub fn open(&mut self) -> Result<*mut MarkFrame, Failure> {
        let depth = self.depth();
        if depth == self.frames.len() {
            let count = Count::new()?;
            let made = Box::into_raw(Box::new(MarkFrame {
                info: count.number(),
                watched: count.number(),
                mark: self.arena.mark(),
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
        unsafe { (*self.frame).mark = self.arena.mark() };
        Ok(self.frame)
    }

    /// Allocates memory for an array, with its count in `info`, if moving the top is not enough.
    pub fn allocate(&mut self, size: usize) -> Result<usize, Failure> {
        // SAFETY: compiled code runs in an open frame.
        let frame = unsafe { &mut *self.frame };
        frame.touch(self.arena.mark().depth);
        let rounded = size.max(1).checked_next_multiple_of(ALIGN);
        let layout = rounded.and_then(|rounded| Layout::from_size_align(rounded, ALIGN).ok());
        let layout = layout.ok_or(AllocError::new(size, Limit::Size))?;
        let cut = |arena: &Arena<'_>| arena.allocate(layout).map_err(|error| AllocError { asked: size, ..error });
        if layout.size() <= LARGE_ARRAY && Arc::strong_count(&self.left) <= MAX_LEFT {
            let address = cut(&self.arena)?;
            self.info = frame.info;
            return Ok(address.as_ptr().expose_provenance());
        }
        let own = Arena::with(self.buffer.clone(), layout.size());
        let address = cut(&own)?;
        let count = Count::new()?;
        count.keep(Arc::new(LeftArena { _arena: own, _counted: None }));
        self.info = count.number();
        frame.apart.push(count);
        Ok(address.as_ptr().expose_provenance())
    }

    /// Rewinds to a mark, if it is one of this cursor's that is open.
    pub fn rewind(&mut self, frame: *mut MarkFrame) -> Result<(), Failure> {
        let Some(depth) = self.frames[..self.depth()].iter().position(|&open| open == frame) else {
            return Err(Failure::Value(
                "this mark is not open: the buffer was rewound to it or to an earlier one, or another buffer made it"
                    .into(),
            ));
        };
        self.close(depth);
        Ok(())
    }

    /// Closes frames until so many are open.
    fn close(&mut self, depth: usize) {
        while self.depth() > depth {
            // SAFETY: an open frame of ours, which nothing else accesses meanwhile.
            let frame = unsafe { &mut *self.frame };
            frame.touch(self.arena.mark().depth);
            self.frame = frame.outer;
            // SAFETY: null, or the frame around it, which is open and which nothing else accesses meanwhile.
            if let Some(outer) = unsafe { self.frame.as_mut() } {
                outer.touch(frame.mark.depth);
            }
            frame.apart.clear();
            let predates_arena = frame.depth < self.since;
            if !frame.count.is_alone() {
                self.leave_to_arrays(frame, predates_arena);
            } else {
                frame.count.forget();
                if predates_arena {
                    self.arena.reset();
                    self.since = frame.depth;
                } else {
                    // SAFETY: this arena made the mark; no live array was made since, here or in frames inside.
                    unsafe { self.arena.rewind(frame.mark) };
                }
            }
            frame.watched = frame.info;
        }
    }

    /// Leaves the arena to those of a frame's arrays that live, and to all arrays of the frames around it that may lie there.
    /// `predates_arena`: whether the frame is older than the arena.
    fn leave_to_arrays(&mut self, frame: &mut MarkFrame, predates_arena: bool) {
        let mut arena = std::mem::replace(&mut self.arena, Arena::with(self.buffer.clone(), CHUNK));
        arena.trim();
        if !predates_arena {
            // SAFETY: this arena made the mark, and nothing will be cut off it any more.
            unsafe { arena.rewind(frame.mark) };
        }
        let around = if predates_arena || arena.used() == 0 { frame.depth } else { self.since.saturating_sub(1) };
        self.since = frame.depth;
        let left = Arc::new(LeftArena { _arena: arena, _counted: Some(self.left.clone()) });
        for &outer in &self.frames[around..frame.depth] {
            // SAFETY: an open frame of ours, which nothing else accesses meanwhile.
            unsafe { &(*outer).count }.keep(left.clone());
        }
        frame.count.keep(left);
        // Without memory for another count the frame goes on with this one.
        if let Ok(fresh) = Count::new() {
            frame.info = fresh.number();
            frame.count = fresh;
        }
    }

    /// Ends the call: all memory goes back that no array needs.
    pub fn end(&mut self) {
        self.close(0);
        self.arena = Arena::with(self.buffer.clone(), CHUNK);
        self.failed = None;
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
