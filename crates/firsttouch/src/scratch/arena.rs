//! An arena: scratch memory whose user promises not to use what was rewound. Allocating moves a pointer, and leaving a scope
//! moves it back.
//!
//! Blocks are not freed one by one, and values in an [`Arena`] are never dropped. In Rust the borrow checker keeps the
//! promise, so that nothing is counted and nothing can dangle:
//!
//! ```
//! use firsttouch::AllocError;
//! use firsttouch::scratch::{Arena, Scratch};
//!
//! let mut arena = Arena::new();
//! let sum = arena.scope(|s| {
//!     let kept = s.alloc_slice::<f64>(1000)?; // zeros
//!     s.scope(|inner| {
//!         let squares = inner.alloc_slice_with(1000, |i| (i * i) as f64)?;
//!         kept.copy_from_slice(squares);
//!         Ok::<_, AllocError>(())
//!     })?; // the memory of the squares is free again
//!     Ok::<_, AllocError>(kept.iter().sum::<f64>())
//! })?;
//! assert_eq!(sum, 332_833_500.0);
//! # Ok::<(), AllocError>(())
//! ```
//!
//! [`Arena`] and [`Scope`] have the same methods that allocate: an arena's memory lives until the next reset, a scope's until its
//! end. All return an error if there is no memory; none panics.
//!
//! The chunks of an arena double in size, and come from any [`Allocator`]. A fixed arena uses the memory it was given and
//! does not grow. In a [checked](Arena::checked) one each block is the upstream's own, so that one like
//! `guarded(keep="1 MiB")` stops code that uses it after its scope.

use super::buffer::GRANULE;
use crate::allocator::{AllocError, Allocator, Limit, Request};
use crate::failure;
use crate::layout::{LayoutError, MAX_ALIGN, MAX_SIZE, checked_align, round_up};
use crate::sources::Malloc;
use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::num::NonZero;
use std::ptr::NonNull;
use std::slice::from_raw_parts_mut;
use std::sync::Arc;

/// Bytes of an arena's first chunk, unless it is made with another size.
const FIRST_CHUNK: usize = 4 << 10;
/// Chunks double up to this many bytes.
const LARGEST_CHUNK: usize = 16 << 20;
/// Bytes of chunks that a reset keeps.
const KEEP: usize = 64 << 20;
/// On a rewind into an earlier chunk, free space of at most this fraction of it is given up in favour of the next chunk:
/// a loop that needs more than that in every iteration would change chunks twice in every iteration.
const ABANDONED_FRACTION: usize = 4;

/// Memory that is freed by rewinding to a mark: an [`Arena`], or a buffer type of one's own. It is used by one thread at a
/// time, not always the same.
///
/// # Safety
/// A block has the requested size and alignment, overlaps no other block that is still allocated, and stays valid until
/// the memory is rewound to a mark made before it, or is dropped. No method panics.
pub unsafe trait Scratch: Send + Sized {
    /// A position to rewind to.
    type Mark: Copy;

    /// Allocates uninitialized memory.
    ///
    /// # Errors
    /// What was requested and which limit was exceeded.
    fn allocate(&self, layout: Layout) -> Result<NonNull<u8>, AllocError>;

    /// The current position.
    fn mark(&self) -> Self::Mark;

    /// Frees what was allocated since a mark.
    ///
    /// # Safety
    /// The mark is of this memory, which was not rewound to an earlier one or reset since; what was allocated since the
    /// mark is not used afterwards, and no scope that was opened since is open.
    unsafe fn rewind(&self, mark: Self::Mark);

    /// Calls `f` with a scope, whose memory is free again at its end, also by a panic.
    #[inline]
    fn scope<R>(&mut self, f: impl for<'i> FnOnce(&mut Scope<'i, Self>) -> R) -> R {
        Scope { scratch: self }.scope(f)
    }
}

/// A scope of an arena, made by [`Scratch::scope`]. References into it cannot leave it:
///
/// ```compile_fail,E0521
/// # use firsttouch::scratch::{Arena, Scratch};
/// let mut arena = Arena::new();
/// let mut kept: Option<&mut i32> = None;
/// arena.scope(|s| kept = s.alloc(1).ok()); // borrowed data escapes
/// ```
///
/// While an inner scope is open, references of the outer scope can be used, but nothing can be allocated in the outer
/// scope, as it would be rewound with the inner one:
///
/// ```compile_fail,E0502
/// # use firsttouch::scratch::{Arena, Scratch};
/// let mut arena = Arena::new();
/// arena.scope(|outer| {
///     outer.scope(|inner| {
///         inner.alloc(1).unwrap();
///         outer.alloc(2).unwrap(); // borrowed for the inner scope
///     });
/// });
/// ```
///
/// ```compile_fail,E0502
/// # use firsttouch::scratch::{Arena, Scratch};
/// let mut arena = Arena::new();
/// arena.scope(|s| {
///     s.alloc(1).unwrap();
///     arena.alloc(2).unwrap(); // borrowed for the scope
/// });
/// ```
pub struct Scope<'s, S: Scratch> {
    scratch: &'s S,
}

impl<'s, S: Scratch> Scope<'s, S> {
    /// Calls `f` with a scope inside this one.
    ///
    /// ```
    /// # use firsttouch::{AllocError, scratch::{Arena, Scratch}};
    /// let mut arena = Arena::new();
    /// arena.scope(|outer| {
    ///     let total = outer.alloc(0)?;
    ///     for n in 0..1000 {
    ///         // Each iteration uses the same memory.
    ///         *total += outer.scope(|s| Ok::<_, AllocError>(s.alloc_slice_with(n, |i| i)?.iter().sum::<usize>()))?;
    ///     }
    ///     assert_eq!(*total, 166_167_000);
    ///     Ok::<_, AllocError>(())
    /// })?;
    /// # Ok::<(), AllocError>(())
    /// ```
    #[inline]
    pub fn scope<R>(&mut self, f: impl for<'i> FnOnce(&mut Scope<'i, S>) -> R) -> R {
        /// Rewinds at the end, also by a panic.
        struct Rewind<'s, S: Scratch>(&'s S, S::Mark);
        impl<S: Scratch> Drop for Rewind<'_, S> {
            #[inline(always)]
            fn drop(&mut self) {
                // SAFETY: what was allocated in the scope borrows from it, so no reference is left; this scope and all
                // around it are borrowed until here, so that none of them was rewound.
                unsafe { self.0.rewind(self.1) }
            }
        }
        let rewind = Rewind(self.scratch, self.scratch.mark());
        f(&mut Scope { scratch: rewind.0 })
    }
}

/// Defines the allocating methods of a type, on the memory that it allocates from. The references they return have the
/// named lifetime, or else that of the borrow of `self`.
macro_rules! alloc_methods {
    ($self:ident, $scratch:expr $(, $lifetime:lifetime)?) => {
        /// Moves a value into the arena. It is never dropped.
        ///
        /// # Errors
        /// If there is no memory. The value is dropped then.
        #[inline]
        pub fn alloc<T>(&$self, value: T) -> Result<&$($lifetime)? mut T, AllocError> {
            let slot = $scratch.allocate(Layout::new::<T>())?.cast::<T>();
            // SAFETY: it was just allocated with the layout of a `T`, and stays valid for the lifetime returned.
            unsafe {
                slot.write(value);
                Ok(&mut *slot.as_ptr())
            }
        }

        /// Allocates a slice of `n` default values, which for numbers are zeros.
        ///
        /// # Errors
        /// If there is no memory, or the size overflows.
        #[inline]
        pub fn alloc_slice<T: Default>(&$self, n: usize) -> Result<&$($lifetime)? mut [T], AllocError> {
            $self.alloc_slice_with(n, |_| T::default())
        }

        /// Allocates a slice of `n` values, each computed by `f` from its index. They are never dropped.
        ///
        /// # Errors
        /// If there is no memory, or the size overflows.
        #[inline]
        pub fn alloc_slice_with<T>(
            &$self,
            n: usize,
            mut f: impl FnMut(usize) -> T,
        ) -> Result<&$($lifetime)? mut [T], AllocError> {
            let start = $scratch.allocate(layout_of::<T>(n, 1)?)?.cast::<T>();
            // SAFETY: it was just allocated for `n` values, and each is written before the slice is made.
            unsafe {
                for index in 0..n {
                    start.add(index).write(f(index));
                }
                Ok(from_raw_parts_mut(start.as_ptr(), n))
            }
        }

        /// Allocates an uninitialized slice of `n` values at a multiple of `align` bytes, or of what the type requires.
        ///
        /// # Errors
        /// If there is no memory, the size overflows, or `align` is not a power of two up to 1 GiB.
        #[inline]
        pub fn alloc_aligned<T>(
            &$self,
            n: usize,
            align: usize,
        ) -> Result<&$($lifetime)? mut [MaybeUninit<T>], AllocError> {
            let start = $scratch.allocate(layout_of::<T>(n, align)?)?.cast();
            // SAFETY: it was just allocated for `n` values, which need not be initialized.
            Ok(unsafe { from_raw_parts_mut(start.as_ptr(), n) })
        }
    };
}

/// The layout of `n` values at a multiple of `align` bytes at least.
#[inline]
fn layout_of<T>(n: usize, align: usize) -> Result<Layout, AllocError> {
    let layout = checked_align(align).and_then(|align| {
        let layout = Layout::array::<T>(n).and_then(|layout| layout.align_to(align));
        layout.map_err(|_| LayoutError::Overflow(n, size_of::<T>()))
    });
    layout.map_err(|error| AllocError::new(n.saturating_mul(size_of::<T>()), Limit::Layout(error)))
}

#[allow(clippy::mut_from_ref)] // each call returns distinct memory
impl<'s, S: Scratch> Scope<'s, S> {
    alloc_methods!(self, self.scratch, 's);
}

/// A position in an arena. `firsttouch.h` declares the same two words.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// The end of the free part of the current chunk.
    pub top: NonNull<u8>,
    /// The number of chunks in use.
    pub depth: u64,
}

// SAFETY: it is an address in the arena's memory, which is bound to no thread.
unsafe impl Send for Mark {}

/// A chunk of `size` bytes of an allocator's at a multiple of `align`.
fn chunk_of(upstream: &Arc<dyn Allocator>, size: usize, align: usize) -> Result<NonNull<[u8]>, AllocError> {
    let request = Request::bytes(size).aligned(align).map_err(|_| AllocError::new(size, Limit::Size))?;
    Ok(NonNull::slice_from_raw_parts(upstream.allocate(request)?.address, size))
}

/// A bump allocator that is rewound to marks. An arena can move to another thread, but cannot be shared:
///
/// ```compile_fail,E0277
/// fn share<T: Sync>(_: T) {}
/// share(firsttouch::scratch::Arena::new());
/// ```
///
/// What is allocated in the arena itself, outside of scopes, lives until the next reset:
///
/// ```compile_fail,E0502
/// # use firsttouch::scratch::Arena;
/// let mut arena = Arena::new();
/// let x = arena.alloc(1).unwrap();
/// arena.reset();
/// println!("{x}"); // still borrowed
/// ```
///
/// The free part of the current chunk lies between `floor` and `top`; blocks are cut off its end, which takes one comparison less
/// than cutting them off its beginning. `firsttouch.h` declares the first three words, too, so that C programs can do that inline.
#[repr(C)]
pub struct Arena<'a> {
    top: Cell<NonNull<u8>>,
    floor: Cell<usize>,
    /// The number of chunks in use, the current one included.
    depth: Cell<u64>,
    /// In the order of their use, each used from its end downwards; those beyond the depth are idle.
    chunks: RefCell<Vec<NonNull<[u8]>>>,
    /// Size of the first chunk.
    first_chunk: usize,
    /// `None` for an arena of a fixed size, which has one chunk.
    upstream: Option<Arc<dyn Allocator>>,
    /// Whether each block is a chunk of its own, which goes back when it is rewound.
    checked: bool,
    storage: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

// SAFETY: nothing in it is bound to a thread: memory, and an allocator that any thread may call.
unsafe impl Send for Arena<'_> {}

impl Default for Arena<'_> {
    fn default() -> Self {
        Self::new()
    }
}

#[allow(clippy::mut_from_ref)] // each call returns distinct memory
impl<'a> Arena<'a> {
    fn make(upstream: Option<Arc<dyn Allocator>>, first_chunk: usize, checked: bool) -> Self {
        Self {
            top: Cell::new(NonNull::dangling()),
            floor: Cell::new(usize::MAX), // nothing fits
            depth: Cell::new(0),
            chunks: RefCell::default(),
            first_chunk: first_chunk.clamp(GRANULE, MAX_SIZE / 2).next_multiple_of(GRANULE),
            upstream,
            checked,
            storage: PhantomData,
        }
    }

    /// Creates a growing arena on the C library's memory. Nothing is requested of it before the first request.
    pub fn new() -> Self {
        Self::with(Malloc::get(), FIRST_CHUNK)
    }

    /// Creates a growing arena whose chunks come from `upstream`; the first has `first_chunk` bytes, and each further one is
    /// twice as large, up to 16 MiB.
    ///
    /// ```
    /// # use firsttouch::scratch::Arena;
    /// # use firsttouch::adaptors::Pool;
    /// let arena = Arena::with(Pool::new(Default::default()), 1 << 20);
    /// ```
    pub fn with(upstream: Arc<dyn Allocator>, first_chunk: usize) -> Self {
        Self::make(Some(upstream), first_chunk, false)
    }

    /// Creates an arena that requests each block of `upstream`, and gives it back when it is rewound: an upstream that
    /// checks, like `guarded(keep="1 MiB")`, stops code that uses it after its scope.
    pub fn checked(upstream: Arc<dyn Allocator>) -> Self {
        Self::make(Some(upstream), FIRST_CHUNK, true)
    }

    /// Creates an arena in borrowed memory. It does not grow.
    ///
    /// ```
    /// # use firsttouch::scratch::Arena;
    /// let mut storage = [std::mem::MaybeUninit::uninit(); 100];
    /// let arena = Arena::over(&mut storage);
    /// arena.alloc_slice::<u8>(60)?;
    /// let error = arena.alloc_slice::<u8>(50).unwrap_err();
    /// assert!(error.to_string().contains("has 100 bytes, of which 60 bytes are in use"));
    /// # Ok::<(), firsttouch::AllocError>(())
    /// ```
    pub fn over(storage: &'a mut [MaybeUninit<u8>]) -> Self {
        let (size, start) = (storage.len(), NonNull::from_mut(storage).cast());
        let arena = Self::make(None, size, false);
        arena.chunks.borrow_mut().push(NonNull::slice_from_raw_parts(start, size));
        arena.enter(&arena.chunks.borrow(), 0);
        arena
    }

    alloc_methods!(self, self);

    /// Allocates from the current chunk; `None` if it has no room.
    #[inline(always)]
    fn bump(&self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let top = self.top.get();
        let address = top.as_ptr().addr().checked_sub(size)? & !(align - 1);
        if address < self.floor.get() {
            return None;
        }
        // SAFETY: it lies in the chunk, at or above the floor, and so is not null.
        let start = unsafe { NonNull::new_unchecked(top.as_ptr().with_addr(address)) };
        self.top.set(start);
        Some(start)
    }

    /// Allocates what does not fit into the current chunk.
    #[cold]
    #[inline(never)]
    fn grow(&self, size: usize, align: usize) -> Result<NonNull<u8>, AllocError> {
        if size == 0 && align <= MAX_ALIGN {
            return Ok(NonZero::new(align).map_or(NonNull::dangling(), NonNull::without_provenance));
        }
        let served = self.serve(size, align).map_err(|error| AllocError { asked: size, ..error });
        served.inspect_err(|&error| failure::remember(error))
    }

    fn serve(&self, size: usize, align: usize) -> Result<NonNull<u8>, AllocError> {
        let Some(upstream) = &self.upstream else {
            return Err(AllocError::new(size, Limit::Full { capacity: self.capacity(), used: self.used(), blocks: 0 }));
        };
        // Chunks begin at multiples of a granule.
        let need = round_up(size, GRANULE).and_then(|bytes| bytes.checked_add(align.max(GRANULE) - GRANULE));
        let need = need.filter(|&need| need <= MAX_SIZE && align <= MAX_ALIGN);
        let need = need.ok_or(AllocError::new(size, Limit::Size))?;
        let (chunks, at) = (&mut *self.chunks.borrow_mut(), self.depth.get() as usize);
        chunks.try_reserve(1).map_err(|_| AllocError::new(size, Limit::Upstream))?;
        if self.checked {
            let block = chunk_of(upstream, size, align)?;
            chunks.push(block);
            self.depth.set(self.depth.get() + 1);
            return Ok(block.cast());
        }
        if let Some(found) = (at..chunks.len()).find(|&found| chunks[found].len() >= need) {
            chunks.swap(at, found);
        } else {
            let doubled = self.first_chunk.saturating_mul(1 << chunks.len().min(16));
            let size = doubled.min(LARGEST_CHUNK.max(self.first_chunk)).max(need);
            let chunk = chunk_of(upstream, size, GRANULE).or_else(|error| {
                // Before a request fails, idle chunks go back (law 7), and the smallest that serves is requested.
                failure::retract(error);
                self.release(chunks, 0);
                chunk_of(upstream, need, GRANULE)
            })?;
            chunks.insert(at, chunk);
        }
        self.enter(chunks, at);
        self.bump(size, align).ok_or(AllocError::new(size, Limit::Size))
    }

    /// Makes the chunk at `at`, all of it free, current. If there is none, nothing fits.
    fn enter(&self, chunks: &[NonNull<[u8]>], at: usize) {
        let (top, floor) = match chunks.get(at) {
            // SAFETY: one past the end of the chunk's block.
            Some(chunk) => (unsafe { chunk.cast::<u8>().add(chunk.len()) }, chunk.addr().get()),
            None => (NonNull::dangling(), usize::MAX),
        };
        self.top.set(top);
        self.floor.set(floor);
        self.depth.set(chunks.len().min(at + 1) as u64);
    }

    /// Rewinds into an earlier chunk.
    #[cold]
    #[inline(never)]
    fn rewind_far(&self, mark: Mark) {
        let chunks = &mut *self.chunks.borrow_mut();
        self.depth.set(mark.depth);
        if self.checked {
            return self.release(chunks, 0);
        }
        let Some(at) = (mark.depth as usize).checked_sub(1) else { return self.enter(chunks, 0) };
        let (floor, size) = (chunks[at].addr().get(), chunks[at].len());
        if mark.top.addr().get() - floor <= size / ABANDONED_FRACTION {
            return self.enter(chunks, at + 1);
        }
        self.floor.set(floor);
        self.top.set(mark.top);
    }

    /// Returns idle chunks, except for up to `keep` bytes, to the upstream.
    fn release(&self, chunks: &mut Vec<NonNull<[u8]>>, mut keep: usize) {
        let Some(upstream) = &self.upstream else { return };
        let exceeds = |chunk: &mut NonNull<[u8]>| {
            let rest = keep.checked_sub(chunk.len());
            keep = rest.unwrap_or(keep);
            rest.is_none()
        };
        for chunk in chunks.extract_if(self.depth.get() as usize.., exceeds) {
            // SAFETY: the chunk came from the upstream, and nothing in it is in use.
            unsafe { upstream.deallocate(chunk.cast()) };
        }
    }

    /// Frees everything allocated, and returns what exceeds 64 MiB to the upstream.
    pub fn reset(&mut self) {
        self.depth.set(0);
        let chunks = &mut *self.chunks.borrow_mut();
        self.release(chunks, if self.checked { 0 } else { KEEP });
        self.enter(chunks, 0);
    }

    /// Returns idle chunks to the upstream.
    pub fn trim(&mut self) {
        self.release(&mut self.chunks.borrow_mut(), 0);
    }

    /// Returns the bytes in use; chunks before the current one count as a whole.
    pub fn used(&self) -> usize {
        let chunks = &self.chunks.borrow()[..self.depth.get() as usize];
        let free = if self.checked || chunks.is_empty() { 0 } else { self.top.get().addr().get() - self.floor.get() };
        chunks.iter().map(|chunk| chunk.len()).sum::<usize>() - free
    }

    /// Returns the bytes held, in use or idle.
    pub fn capacity(&self) -> usize {
        self.chunks.borrow().iter().map(|chunk| chunk.len()).sum()
    }
}

// SAFETY: blocks are cut off by a pointer that only a rewind moves back, to the position of a mark.
unsafe impl Scratch for Arena<'_> {
    type Mark = Mark;

    #[inline(always)]
    fn allocate(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        match self.bump(layout.size(), layout.align()) {
            Some(address) => Ok(address),
            None => self.grow(layout.size(), layout.align()),
        }
    }

    #[inline(always)]
    fn mark(&self) -> Mark {
        Mark { top: self.top.get(), depth: self.depth.get() }
    }

    #[inline(always)]
    unsafe fn rewind(&self, mark: Mark) {
        if self.depth.get() == mark.depth {
            self.top.set(mark.top);
        } else {
            self.rewind_far(mark);
        }
    }
}

impl Drop for Arena<'_> {
    fn drop(&mut self) {
        self.depth.set(0);
        self.release(&mut self.chunks.borrow_mut(), 0);
    }
}
