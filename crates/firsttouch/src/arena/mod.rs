//! Scratch memory for Rust: allocating moves a pointer, and leaving a scope moves it back.
//!
//! Blocks are not freed one by one, and values in an [`Arena`] are never dropped. The borrow checker keeps scopes safe, so
//! nothing is counted and nothing can dangle:
//!
//! ```
//! use firsttouch::arena::{Arena, ArenaError};
//!
//! let mut arena = Arena::new();
//! let sum = arena.scope(|s| {
//!     let kept = s.alloc_slice::<f64>(1000)?; // zeros
//!     s.scope(|inner| {
//!         let squares = inner.alloc_slice_with(1000, |i| (i * i) as f64)?;
//!         kept.copy_from_slice(squares);
//!         Ok::<_, ArenaError>(())
//!     })?; // the memory of the squares is free again
//!     Ok::<_, ArenaError>(kept.iter().sum::<f64>())
//! })?;
//! assert_eq!(sum, 332_833_500.0);
//! # Ok::<(), ArenaError>(())
//! ```
//!
//! | method | allocates |
//! |---|---|
//! | `alloc(value)` | a value, moved into the arena |
//! | `alloc_slice::<T>(n)` | `n` zeros |
//! | `alloc_slice_with(n, f)` | `f(0)`, `f(1)`, ... |
//! | `alloc_slice_copy(&slice)` | a copy of a slice |
//! | `alloc_uninit::<T>(n)` | `n` uninitialized values |
//! | `alloc_aligned::<T>(n, align)` | `n` uninitialized values at a multiple of `align` bytes |
//! | `alloc_layout(layout)` | uninitialized memory of a layout |
//!
//! All of them are methods of [`Arena`], where the memory lives until the next rewind or reset, and of [`Scope`], where it
//! lives until the end of the scope. They return an error if there is no memory; none panics.
//!
//! An arena grows by chunks of doubling size, up to a limit, from any [`Allocator`](crate::Allocator). A fixed arena uses
//! the memory it was given and does not grow. Arrays that may outlive their scope need counted memory: see
//! [`scratch`](crate::scratch).

#![allow(unsafe_code)] // Safety: references borrow from the arena or the scope, which bars a rewind.
#![allow(clippy::mut_from_ref)] // each allocation is distinct memory

mod bump;

pub use bump::Upstream;

use crate::allocator::{AllocError, Limit, Request};
use crate::layout::{DEFAULT_ALIGN, LayoutError, MAX_ALIGN, MAX_SIZE, round_up};
use bump::{Bump, Depth, Position};
use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice::from_raw_parts_mut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How an arena grows. Sizes are in bytes and are rounded up to multiples of 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArenaOptions {
    /// Size of the first chunk; each further chunk is twice as large.
    pub first_chunk: usize,
    /// Size of the largest chunk.
    pub max_chunk: usize,
    /// How much memory [`reset`](Arena::reset) may keep.
    pub keep: usize,
}

impl Default for ArenaOptions {
    fn default() -> Self {
        Self { first_chunk: 4 << 10, max_chunk: 16 << 20, keep: 64 << 20 }
    }
}

impl ArenaOptions {
    /// Returns the options with rounded sizes.
    fn validated(self) -> Result<Self, ArenaOptionsError> {
        let rounded = |size| round_up(size, DEFAULT_ALIGN).filter(|&size| size > 0 && size <= MAX_SIZE / 2);
        let first_chunk = rounded(self.first_chunk).ok_or(ArenaOptionsError::ChunkSize(self.first_chunk))?;
        let max_chunk = rounded(self.max_chunk).ok_or(ArenaOptionsError::ChunkSize(self.max_chunk))?;
        if first_chunk > max_chunk {
            return Err(ArenaOptionsError::Order { first_chunk: self.first_chunk, max_chunk: self.max_chunk });
        }
        Ok(Self { first_chunk, max_chunk, ..self })
    }
}

/// The error returned when an arena cannot allocate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArenaError {
    /// The requested layout is invalid.
    Layout(LayoutError),
    /// There is no memory.
    Memory(AllocError),
}

impl fmt::Display for ArenaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ArenaError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match self {
            Self::Layout(error) => error,
            Self::Memory(error) => error,
        })
    }
}

impl From<LayoutError> for ArenaError {
    fn from(error: LayoutError) -> Self {
        Self::Layout(error)
    }
}

impl From<AllocError> for ArenaError {
    fn from(error: AllocError) -> Self {
        Self::Memory(error)
    }
}

/// The error returned for invalid [`ArenaOptions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArenaOptionsError {
    /// A chunk size is out of range.
    ChunkSize(usize),
    /// The first chunk is larger than the largest.
    Order {
        /// Size of the first chunk in bytes.
        first_chunk: usize,
        /// Size of the largest chunk in bytes.
        max_chunk: usize,
    },
}

impl fmt::Display for ArenaOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChunkSize(size) => write!(f, "invalid chunk size {size}: it must be 1 to {} bytes", MAX_SIZE / 2),
            Self::Order { first_chunk, max_chunk } => {
                write!(f, "first_chunk ({first_chunk} bytes) is larger than max_chunk ({max_chunk} bytes)")
            }
        }
    }
}

impl std::error::Error for ArenaOptionsError {}

/// The error returned when an arena cannot be rewound to a [`Mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkError {
    /// The mark belongs to another arena.
    OtherArena,
    /// The arena was reset, or rewound to an earlier mark, after this mark was made.
    WrongOrder,
}

impl fmt::Display for MarkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherArena => "the mark belongs to another arena: rewind the arena that made it",
            Self::WrongOrder => {
                "the arena was reset, or rewound to an earlier mark, since this mark was made: rewind to the latest mark \
                 first"
            }
        })
    }
}

impl std::error::Error for MarkError {}

/// An allocator whose memory is freed by rewinding to a mark. It is used by one thread at a time, not always the same.
///
/// # Safety
/// A block has the requested size and alignment, overlaps no other block that is still allocated, and stays valid until
/// the allocator is rewound to a mark made before it, or is dropped. No method panics.
pub unsafe trait Scratch: Send {
    /// Allocates `size` bytes, uninitialized, at a multiple of `align`, a power of two up to 1 GiB. Zero bytes are served
    /// as one.
    ///
    /// # Errors
    /// What was requested and which limit was exceeded.
    fn allocate(&self, size: usize, align: usize) -> Result<NonNull<u8>, AllocError>;

    /// Returns the current position, as a number that [`rewind`](Self::rewind) understands.
    fn mark(&self) -> u64;

    /// Rewinds to a mark, which invalidates it and all later marks.
    ///
    /// # Safety
    /// The mark was made by this allocator and is valid; what was allocated since is not used afterwards.
    unsafe fn rewind(&self, mark: u64);
}

/// A type for which memory of zero bytes is a valid value.
///
/// # Safety
/// A value whose bytes are all zero must be valid.
pub unsafe trait Zeroable: Sized {}

macro_rules! zeroable {
    ($($type:ty),*) => { $(
        // SAFETY: zero is a number.
        unsafe impl Zeroable for $type {}
    )* };
}
zeroable!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);

// SAFETY: zero is `false`.
unsafe impl Zeroable for bool {}
// SAFETY: zero is the character NUL.
unsafe impl Zeroable for char {}
// SAFETY: an array consists of its elements.
unsafe impl<T: Zeroable, const N: usize> Zeroable for [T; N] {}
// SAFETY: uninitialized memory may hold any bytes.
unsafe impl<T> Zeroable for std::mem::MaybeUninit<T> {}

/// Defines the allocating methods of a type with a field `bump`. The references they return have the named lifetime, or
/// else that of the borrow of `self`.
macro_rules! alloc_methods {
    ($($lifetime:lifetime)?) => {
        /// Moves a value into the arena. It is never dropped.
        ///
        /// # Errors
        /// If there is no memory. The value is dropped then.
        #[inline]
        pub fn alloc<T>(&self, value: T) -> Result<&$($lifetime)? mut T, ArenaError> {
            let slot = self.bump.allocate(Layout::new::<T>())?.cast::<T>();
            // SAFETY: it was just allocated with the layout of a `T`, and stays valid for the lifetime returned.
            unsafe {
                slot.write(value);
                Ok(&mut *slot.as_ptr())
            }
        }

        /// Allocates a slice of `n` zeros.
        ///
        /// # Errors
        /// If there is no memory, or the size overflows.
        #[inline]
        pub fn alloc_slice<T: Zeroable>(&self, n: usize) -> Result<&$($lifetime)? mut [T], ArenaError> {
            let start = self.bump.allocate_zeroed::<T>(n)?;
            // SAFETY: it was just allocated for `n` values, and zero bytes are a valid value.
            Ok(unsafe { from_raw_parts_mut(start.as_ptr(), n) })
        }

        /// Allocates a slice of `n` values, each computed by `f` from its index. They are never dropped.
        ///
        /// # Errors
        /// If there is no memory, or the size overflows.
        #[inline]
        pub fn alloc_slice_with<T>(
            &self,
            n: usize,
            mut f: impl FnMut(usize) -> T,
        ) -> Result<&$($lifetime)? mut [T], ArenaError> {
            let start = self.bump.allocate_array::<T>(n, 1)?;
            // SAFETY: it was just allocated for `n` values, and each is written before the slice is made.
            unsafe {
                for index in 0..n {
                    start.add(index).write(f(index));
                }
                Ok(from_raw_parts_mut(start.as_ptr(), n))
            }
        }

        /// Copies a slice into the arena.
        ///
        /// # Errors
        /// If there is no memory.
        #[inline]
        pub fn alloc_slice_copy<T: Copy>(&self, values: &[T]) -> Result<&$($lifetime)? mut [T], ArenaError> {
            let start = self.bump.allocate_array::<T>(values.len(), 1)?;
            // SAFETY: it was just allocated for as many values, so it does not overlap `values`.
            unsafe {
                start.copy_from_nonoverlapping(NonNull::from_ref(values).cast(), values.len());
                Ok(from_raw_parts_mut(start.as_ptr(), values.len()))
            }
        }

        /// Allocates an uninitialized slice of `n` values.
        ///
        /// # Errors
        /// If there is no memory, or the size overflows.
        #[inline]
        pub fn alloc_uninit<T>(&self, n: usize) -> Result<&$($lifetime)? mut [MaybeUninit<T>], ArenaError> {
            self.alloc_aligned(n, 1)
        }

        /// Allocates an uninitialized slice of `n` values at a multiple of `align` bytes, or of what the type requires.
        ///
        /// # Errors
        /// If there is no memory, the size overflows, or `align` is not a power of two up to 1 GiB.
        #[inline]
        pub fn alloc_aligned<T>(&self, n: usize, align: usize) -> Result<&$($lifetime)? mut [MaybeUninit<T>], ArenaError> {
            let start = self.bump.allocate_array::<MaybeUninit<T>>(n, align)?;
            // SAFETY: it was just allocated for `n` values, which need not be initialized.
            Ok(unsafe { from_raw_parts_mut(start.as_ptr(), n) })
        }

        /// Allocates uninitialized memory of a layout. It is valid as long as the references of the other methods.
        ///
        /// # Errors
        /// If there is no memory, or the alignment exceeds 1 GiB.
        #[inline]
        pub fn alloc_layout(&self, layout: Layout) -> Result<NonNull<u8>, ArenaError> {
            self.bump.allocate(layout)
        }
    };
}
/// A position that an arena can be rewound to, once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a mark does nothing until the arena is rewound to it"]
pub struct Mark {
    arena: u64,
    number: u64,
}

/// Stands for a mark that could not be stored for lack of memory. Rewinding to it frees nothing.
const NO_MARK: u64 = u64::MAX;

/// A bump allocator; see the [module](self). An arena can move to another thread, but cannot be shared:
///
/// ```compile_fail,E0277
/// fn share<T: Sync>(_: T) {}
/// share(firsttouch::arena::Arena::new());
/// ```
///
/// What is allocated in the arena itself, outside of scopes, lives until the next rewind or reset:
///
/// ```compile_fail,E0502
/// # use firsttouch::arena::Arena;
/// let mut arena = Arena::new();
/// let mark = arena.mark();
/// let x = arena.alloc(1).unwrap();
/// arena.rewind(mark).unwrap();
/// println!("{x}"); // still borrowed
/// ```
#[repr(C)] // the head of the bump allocator comes first: `firsttouch.h` reads and writes it
pub struct Arena<'a> {
    bump: Bump<'a>,
    /// Its number among all arenas; zero before the first mark.
    number: Cell<u64>,
    /// The numbers and positions of the valid marks, oldest first.
    marks: RefCell<Vec<(u64, Position)>>,
    last_mark: Cell<u64>,
    keep: usize,
}

impl Default for Arena<'_> {
    fn default() -> Self {
        Self::new()
    }
}

#[allow(clippy::mut_from_ref)] // each call returns distinct memory
impl<'a> Arena<'a> {
    fn from_bump(bump: Bump<'a>, keep: usize) -> Self {
        Self { bump, number: Cell::new(0), marks: RefCell::default(), last_mark: Cell::new(0), keep }
    }

    /// Creates a growing arena on the C library's memory. Nothing is allocated before the first request.
    #[inline]
    pub fn new() -> Self {
        let options = ArenaOptions::default();
        Self::from_bump(Bump::growing(Upstream::default(), options), options.keep)
    }

    /// Creates a growing arena whose chunks come from `upstream`, a shared (`Arc`) or borrowed allocator.
    ///
    /// # Errors
    /// If the options are invalid.
    ///
    /// ```
    /// # use firsttouch::arena::{Arena, ArenaOptions};
    /// # use firsttouch::adaptors::Pool;
    /// let pool = Pool::new(Default::default());
    /// let arena = Arena::with(pool, ArenaOptions { first_chunk: 1 << 20, ..ArenaOptions::default() })?;
    /// # Ok::<(), firsttouch::arena::ArenaOptionsError>(())
    /// ```
    pub fn with(upstream: impl Into<Upstream<'a>>, options: ArenaOptions) -> Result<Self, ArenaOptionsError> {
        let options = options.validated()?;
        Ok(Self::from_bump(Bump::growing(upstream.into(), options), options.keep))
    }

    /// Creates an arena of `size` bytes, allocated from `upstream` now. It does not grow.
    ///
    /// # Errors
    /// If the upstream has no memory.
    pub fn fixed(upstream: impl Into<Upstream<'a>>, size: usize) -> Result<Self, ArenaError> {
        let upstream = upstream.into();
        let request = Request::bytes(size);
        request.check()?;
        let block = upstream.allocate(request.size(), request.align(), false)?;
        // SAFETY: the block is ours until it is returned to its owner, and has that size.
        Ok(Self::from_bump(unsafe { Bump::fixed(block.address, request.size(), Some(upstream)) }, request.size()))
    }

    /// Creates an arena in borrowed memory. It does not grow.
    ///
    /// ```
    /// # use firsttouch::arena::Arena;
    /// let mut storage = [std::mem::MaybeUninit::uninit(); 100];
    /// let arena = Arena::over(&mut storage);
    /// arena.alloc_slice::<u8>(60)?;
    /// let error = arena.alloc_slice::<u8>(50).unwrap_err();
    /// assert!(error.to_string().contains("of which 60 bytes are in use (40 bytes are left)"));
    /// # Ok::<(), firsttouch::arena::ArenaError>(())
    /// ```
    pub fn over(storage: &'a mut [MaybeUninit<u8>]) -> Self {
        let size = storage.len();
        // SAFETY: the storage is borrowed for `'a`, and a slice is never at address zero.
        Self::from_bump(unsafe { Bump::fixed(NonNull::from_mut(storage).cast(), size, None) }, size)
    }

    alloc_methods!();

    /// Calls `f` with a scope, whose memory is free again at its end. Unlike [`rewind`](Self::rewind), this needs no check
    /// at run time.
    #[inline]
    pub fn scope<R>(&mut self, f: impl for<'i> FnOnce(&mut Scope<'i>) -> R) -> R {
        // SAFETY: the arena is borrowed until the end.
        let guard = unsafe { ScopeGuard::new(&self.bump) };
        let result = f(&mut guard.scope());
        if guard.end() && self.marks.get_mut().is_empty() {
            // SAFETY: no scope is open, and no mark is valid.
            unsafe { self.bump.consolidate() };
        }
        result
    }

    /// Marks the current position, to which the arena can be rewound once.
    pub fn mark(&self) -> Mark {
        if self.number.get() == 0 {
            static ARENAS: AtomicU64 = AtomicU64::new(1);
            self.number.set(ARENAS.fetch_add(1, Relaxed));
        }
        Mark { arena: self.number.get(), number: Scratch::mark(self) }
    }

    /// Rewinds to a mark, which invalidates all later marks.
    ///
    /// # Errors
    /// If the mark belongs to another arena, or is no longer valid. Nothing changes then.
    pub fn rewind(&mut self, mark: Mark) -> Result<(), MarkError> {
        if mark.arena != self.number.get() {
            return Err(MarkError::OtherArena);
        }
        // SAFETY: the arena is not borrowed, so no scope is open and no reference to its memory is left.
        unsafe { self.rewind_shared(mark.number) }
    }

    /// Rewinds through a shared reference.
    ///
    /// # Safety
    /// No scope is open, and what was allocated since the mark is not used afterwards.
    unsafe fn rewind_shared(&self, number: u64) -> Result<(), MarkError> {
        let mut marks = self.marks.borrow_mut();
        if number == NO_MARK {
            return Ok(());
        }
        let at = marks.binary_search_by_key(&number, |(number, _)| *number).map_err(|_| MarkError::WrongOrder)?;
        let (_, position) = marks[at];
        marks.truncate(at);
        // SAFETY: what was allocated since is not used, and no scope is open (`rewind` has the arena to itself, and
        // `Scratch::rewind` demands it). Marks are taken in their order, so without one there is no position either.
        unsafe {
            if self.bump.rewind(position) && marks.is_empty() {
                self.bump.consolidate();
            }
        }
        Ok(())
    }

    /// Rewinds to a state of the head that was read before: the address that `top` held, and the word that `depth` held.
    /// This is what the inline functions of `firsttouch.h` call where a rewind leaves the current chunk.
    ///
    /// # Safety
    /// The words were read from this arena's head, and no earlier state was rewound to since; no scope is open and no
    /// mark valid; what was allocated since is not used afterwards.
    pub unsafe fn rewind_to(&self, top: NonNull<u8>, depth: u64) {
        let to = Position { top, depth: Depth::from_word(depth) };
        // SAFETY: the words were read from this arena's head, nothing older was rewound to since, and what came later
        // is unused (the C interface's inline rewind). Before the first allocation there is no earlier state to rewind
        // to.
        unsafe {
            if self.bump.rewind(to) && to.depth == Depth::NONE {
                self.bump.consolidate();
            }
        }
    }

    /// Returns chunks and blocks that are not in use to the upstream; marks stay valid.
    pub fn release_idle(&self) {
        self.bump.release_idle(0);
    }

    /// Frees everything allocated, returns memory beyond [`ArenaOptions::keep`] to the upstream, and invalidates all
    /// marks.
    #[inline]
    pub fn reset(&mut self) {
        self.marks.get_mut().clear();
        // SAFETY: the arena is not borrowed, so no scope is open and no reference is left; no mark is valid.
        unsafe { self.bump.reset(self.keep) };
    }

    /// Returns idle memory to the upstream.
    pub fn trim(&mut self) {
        if self.marks.get_mut().is_empty() && self.used() == 0 {
            // SAFETY: nothing is allocated, no mark is valid, and no scope open.
            unsafe { self.bump.reset(0) };
        }
        self.bump.release_idle(0);
    }

    /// Returns the bytes in use, alignment gaps included.
    pub fn used(&self) -> usize {
        self.bump.used()
    }

    /// Returns the bytes held, in use or idle.
    pub fn capacity(&self) -> usize {
        self.bump.capacity()
    }
}

// SAFETY: blocks are cut off by a pointer that only a rewind moves back, to the position of a mark.
unsafe impl Scratch for Arena<'_> {
    #[inline]
    fn allocate(&self, size: usize, align: usize) -> Result<NonNull<u8>, AllocError> {
        let size = size.max(1);
        if !align.is_power_of_two() || align > MAX_ALIGN {
            return Err(AllocError::new(size, Limit::Size));
        }
        if let Some(address) = self.bump.bump(size, align) {
            return Ok(address);
        }
        self.bump.grow(size, align, false).map(|block| block.address).map_err(|error| match error {
            ArenaError::Memory(error) => error,
            ArenaError::Layout(_) => AllocError::new(size, Limit::Size), // the alignment was checked
        })
    }

    fn mark(&self) -> u64 {
        let mut marks = self.marks.borrow_mut();
        if marks.try_reserve(1).is_err() {
            return NO_MARK;
        }
        let number = self.last_mark.get() + 1;
        self.last_mark.set(number);
        marks.push((number, self.bump.position()));
        number
    }

    unsafe fn rewind(&self, mark: u64) {
        // SAFETY: no scope is open, as it would borrow the arena; the mark is of this arena and what was allocated since is
        // not used (`Scratch::rewind` demands it).
        let result = unsafe { self.rewind_shared(mark) };
        debug_assert_eq!(result, Ok(()), "marks are rewound to in their order");
    }
}

/// A scope of an arena, made by [`Arena::scope`]. References into it cannot leave it:
///
/// ```compile_fail,E0521
/// # use firsttouch::arena::Arena;
/// let mut arena = Arena::new();
/// let mut kept: Option<&mut i32> = None;
/// arena.scope(|s| kept = s.alloc(1).ok()); // borrowed data escapes
/// ```
///
/// ```compile_fail
/// # use firsttouch::arena::Arena;
/// let mut arena = Arena::new();
/// let dangling = arena.scope(|s| s.alloc_slice::<f64>(3).unwrap());
/// ```
///
/// While an inner scope is open, references of the outer scope can be used, but nothing can be allocated in the outer
/// scope, as it would be rewound with the inner one:
///
/// ```compile_fail,E0502
/// # use firsttouch::arena::Arena;
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
/// # use firsttouch::arena::Arena;
/// let mut arena = Arena::new();
/// arena.scope(|s| {
///     s.alloc(1).unwrap();
///     arena.alloc(2).unwrap(); // borrowed for the scope
/// });
/// ```
///
/// A scope cannot be shared with other threads:
///
/// ```compile_fail,E0277
/// # use firsttouch::arena::Arena;
/// let mut arena = Arena::new();
/// arena.scope(|s| std::thread::scope(|threads| {
///     threads.spawn(|| s.alloc(1).is_ok());
/// }));
/// ```
pub struct Scope<'s> {
    bump: &'s Bump<'s>,
}

impl<'s> Scope<'s> {
    alloc_methods!('s);

    /// Calls `f` with a scope inside this one.
    ///
    /// ```
    /// # use firsttouch::arena::{Arena, ArenaError};
    /// let mut arena = Arena::new();
    /// arena.scope(|outer| {
    ///     let total = outer.alloc(0)?;
    ///     for n in 0..1000 {
    ///         // Each iteration uses the same memory.
    ///         *total += outer.scope(|s| Ok::<_, ArenaError>(s.alloc_slice_with(n, |i| i)?.iter().sum::<usize>()))?;
    ///     }
    ///     assert_eq!(*total, 166_167_000);
    ///     Ok::<_, ArenaError>(())
    /// })?;
    /// # Ok::<(), ArenaError>(())
    /// ```
    #[inline]
    pub fn scope<R>(&mut self, f: impl for<'i> FnOnce(&mut Scope<'i>) -> R) -> R {
        // SAFETY: this scope and all around it are borrowed until the end, so none of them can be rewound.
        let guard = unsafe { ScopeGuard::new(self.bump) };
        let result = f(&mut guard.scope());
        guard.end();
        result
    }
}

/// Rewinds when a scope ends: by [`end`](Self::end), or by a panic when it is dropped.
struct ScopeGuard<'s, 'a> {
    bump: &'s Bump<'a>,
    at: Position,
}

impl<'s, 'a> ScopeGuard<'s, 'a> {
    /// Begins a scope.
    ///
    /// # Safety
    /// Until the guard is gone, only it and later guards rewind, and memory is allocated only through
    /// [`scope`](Self::scope).
    #[inline(always)]
    unsafe fn new(bump: &'s Bump<'a>) -> Self {
        Self { bump, at: bump.position() }
    }

    /// Returns the scope.
    #[inline(always)]
    fn scope(&self) -> Scope<'_> {
        Scope { bump: self.bump }
    }

    /// Ends the scope; returns whether that took more than moving the pointer.
    #[inline(always)]
    fn end(self) -> bool {
        let (bump, at) = (self.bump, self.at);
        std::mem::forget(self);
        // SAFETY: what was allocated in the scope borrows from `self`, so no reference to it is left; no earlier
        // position was rewound to, as promised to `new` (law 8).
        unsafe { bump.rewind(at) }
    }
}

impl Drop for ScopeGuard<'_, '_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: as in `end`. By value, so that the guard can stay in registers.
        unsafe { self.bump.unwind(self.at) };
    }
}
