//! The arena.

use super::alloc_methods::{Zeroable, alloc_methods};
use super::bump::{Bump, Depth, Position};
use super::chunks::ArenaOptions;
use super::error::{ArenaError, ArenaOptionsError, MarkError};
use super::marks::{Mark, Marks};
use super::scope::{Scope, ScopeGuard};
use super::scratch::Scratch;
use super::upstream::Upstream;
use crate::allocator::{AllocError, Limit, Request};
use crate::layout::MAX_ALIGN;
use std::alloc::Layout;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice::from_raw_parts_mut;

/// A bump allocator; see the [module](super). An arena can move to another thread, but cannot be shared:
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
    marks: Marks,
    /// The marks behind the numbers of [`Scratch::mark`].
    numbered: RefCell<Vec<Mark>>,
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
        Self { bump, marks: Marks::new(), numbered: RefCell::new(Vec::new()), keep }
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
        if guard.end() && self.marks.is_empty() {
            // SAFETY: no scope is open, and no mark is valid.
            unsafe { self.bump.consolidate() };
        }
        result
    }

    /// Marks the current position, to which the arena can be rewound once.
    #[inline]
    pub fn mark(&self) -> Mark {
        self.marks.add(self.bump.position())
    }

    /// Rewinds to a mark, which invalidates all later marks.
    ///
    /// # Errors
    /// If the mark belongs to another arena, or is no longer valid. Nothing changes then.
    #[inline]
    pub fn rewind(&mut self, mark: Mark) -> Result<(), MarkError> {
        // SAFETY: the arena is not borrowed, so no scope is open and no reference to its memory is left.
        unsafe { self.rewind_shared(&mark) }
    }

    /// Rewinds through a shared reference.
    ///
    /// # Safety
    /// No scope is open, and what was allocated since the mark is not used afterwards.
    #[inline]
    unsafe fn rewind_shared(&self, mark: &Mark) -> Result<(), MarkError> {
        let position = self.marks.take(mark)?;
        // SAFETY: what was allocated since is not used, and no scope is open (`rewind` has the arena to itself, and
        // `Scratch::rewind` demands it). Marks are taken in their order, so without one there is no position either.
        unsafe {
            if self.bump.rewind(position) && self.marks.is_empty() {
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
        self.marks.clear();
        self.numbered.get_mut().clear();
        // SAFETY: the arena is not borrowed, so no scope is open and no reference is left; no mark is valid.
        unsafe { self.bump.reset(self.keep) };
    }

    /// Returns idle memory to the upstream.
    pub fn trim(&mut self) {
        if self.marks.is_empty() && self.used() == 0 {
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

/// Stands for a mark that could not be stored for lack of memory. Rewinding to it frees nothing.
const NO_MARK: u64 = u64::MAX;

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
        let mut numbered = self.numbered.borrow_mut();
        if numbered.try_reserve(1).is_err() {
            return NO_MARK;
        }
        numbered.push(Arena::mark(self));
        numbered.len() as u64 - 1
    }

    unsafe fn rewind(&self, mark: u64) {
        let mut numbered = self.numbered.borrow_mut();
        if let Ok(index) = usize::try_from(mark)
            && index < numbered.len()
        {
            // SAFETY: no scope is open, as it would borrow the arena; the mark is of this arena and what was allocated
            // since is not used (`Scratch::rewind` demands it).
            let result = unsafe { self.rewind_shared(&numbered[index]) };
            debug_assert_eq!(result, Ok(()), "marks are rewound to in their order");
            numbered.truncate(index);
        }
    }
}
