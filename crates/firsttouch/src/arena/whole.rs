//! The arena itself.

use super::allocating::allocating;
use super::bump::Bump;
use super::error::Error;
use super::marks::{Mark, Marks};
use super::options::{BadOptions, Options};
use super::upstream::Upstream;
use super::zeroable::Zeroable;
use crate::allocator::Request;
use std::alloc::Layout;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice::from_raw_parts_mut;

/// See the [module](super). An arena may move to another thread, but two can't use it at once:
///
/// ```compile_fail,E0277
/// fn share<T: Sync>(_: T) {}
/// share(firsttouch::arena::Arena::new());
/// ```
///
/// What is allocated in the arena itself, not in a scope, lives until the next rewind or reset:
///
/// ```compile_fail,E0502
/// # use firsttouch::arena::Arena;
/// let mut arena = Arena::new();
/// let mark = arena.mark();
/// let x = arena.alloc(1).unwrap();
/// arena.rewind(mark).unwrap();
/// println!("{x}"); // still borrowed
/// ```
pub struct Arena<'a> {
    pub(super) bump: Bump<'a>,
    pub(super) marks: Marks,
    /// What [`Scratch`](super::Scratch) numbers.
    pub(super) numbered: RefCell<Vec<Mark>>,
    pub(super) keep: usize,
}

impl Default for Arena<'_> {
    fn default() -> Self {
        Self::new()
    }
}

#[allow(clippy::mut_from_ref)] // each call gives other memory
impl<'a> Arena<'a> {
    fn of(bump: Bump<'a>, keep: usize) -> Self {
        Self { bump, marks: Marks::new(), numbered: RefCell::new(Vec::new()), keep }
    }

    /// A growing arena of the C library's memory. Nothing is taken before the first request.
    #[inline]
    pub fn new() -> Self {
        let options = Options::default();
        Self::of(Bump::growing(Upstream::default(), options), options.keep)
    }

    /// A growing arena whose chunks come from `upstream`: an allocator, shared (`Arc`) or borrowed.
    ///
    /// # Errors
    /// Where the options can't be met, whatever the upstream.
    ///
    /// ```
    /// # use firsttouch::arena::{Arena, Options};
    /// # use firsttouch::adaptors::Pool;
    /// let pool = Pool::new(Default::default());
    /// let arena = Arena::with(pool, Options { first_chunk: 1 << 20, ..Options::default() })?;
    /// # Ok::<(), firsttouch::arena::BadOptions>(())
    /// ```
    pub fn with(upstream: impl Into<Upstream<'a>>, options: Options) -> Result<Self, BadOptions> {
        let options = options.checked()?;
        Ok(Self::of(Bump::growing(upstream.into(), options), options.keep))
    }

    /// An arena of `size` bytes, which come from `upstream` now. It refuses more, and says what is used.
    ///
    /// # Errors
    /// Where the upstream has no memory.
    pub fn fixed(upstream: impl Into<Upstream<'a>>, size: usize) -> Result<Self, Error> {
        let upstream = upstream.into();
        let request = Request::bytes(size);
        request.check()?;
        let block = upstream.take(request.size(), request.align(), false)?;
        // SAFETY: the block is ours until it goes back to its owner, and has that size.
        Ok(Self::of(unsafe { Bump::fixed(block.address, request.size(), Some(upstream)) }, request.size()))
    }

    /// An arena in memory that somebody else has. It refuses more, and says what is used.
    ///
    /// ```
    /// # use firsttouch::arena::Arena;
    /// let mut storage = [std::mem::MaybeUninit::uninit(); 100];
    /// let arena = Arena::over(&mut storage);
    /// arena.alloc_slice::<u8>(60)?;
    /// let error = arena.alloc_slice::<u8>(50).unwrap_err();
    /// assert!(error.to_string().contains("of which 60 are in use (40 are left)"));
    /// # Ok::<(), firsttouch::arena::Error>(())
    /// ```
    pub fn over(storage: &'a mut [MaybeUninit<u8>]) -> Self {
        let size = storage.len();
        // SAFETY: the storage is borrowed for `'a`, and a slice never begins at zero.
        Self::of(unsafe { Bump::fixed(NonNull::from_mut(storage).cast(), size, None) }, size)
    }

    allocating!();
}
