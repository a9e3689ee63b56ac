//! Limits of sizes and alignments, and rounding that cannot wrap.

use std::fmt;

/// The alignment of every block, unless a larger one is requested: a cache line, and the widest vector register.
pub const DEFAULT_ALIGN: usize = 64;

/// The limit below which NumPy serves small arrays, and CPython and `malloc` other requests: their caches cost less than a
/// call of a pool. Profiles, traces and tables of live blocks leave them out, too.
pub const SMALL_LIMIT: usize = 16 << 10;

/// The largest alignment that can be requested: 1 GiB, the size of the largest huge page.
pub const MAX_ALIGN: usize = 1 << 30;

/// The size of the largest block in bytes: pointer differences within it must fit in an `isize`.
pub const MAX_SIZE: usize = isize::MAX as usize;

/// The error returned for an invalid layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// This many items of this size in bytes are larger than [`MAX_SIZE`].
    Overflow(usize, usize),
    /// The alignment is not a power of two up to [`MAX_ALIGN`].
    Align(usize),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow(count, item) => {
                write!(f, "{count} items of {item} bytes are larger than {MAX_SIZE} bytes")
            }
            Self::Align(align) => {
                write!(f, "alignment {align} is not a power of two from 1 to {MAX_ALIGN} bytes")
            }
        }
    }
}

impl std::error::Error for LayoutError {}

/// Returns `align` if it is a power of two up to [`MAX_ALIGN`].
///
/// # Errors
/// [`LayoutError::Align`] if it is not.
pub fn checked_align(align: usize) -> Result<usize, LayoutError> {
    if align.is_power_of_two() && align <= MAX_ALIGN { Ok(align) } else { Err(LayoutError::Align(align)) }
}

/// Rounds `n` up to a multiple of `step`, a power of two; `None` if the result exceeds [`MAX_SIZE`].
#[inline]
pub const fn round_up(n: usize, step: usize) -> Option<usize> {
    if n > MAX_SIZE - (step - 1) { None } else { Some((n + (step - 1)) & !(step - 1)) }
}

/// Rounds `n` down to a multiple of `step`, a power of two.
#[inline]
pub const fn round_down(n: usize, step: usize) -> usize {
    n & !(step - 1)
}
