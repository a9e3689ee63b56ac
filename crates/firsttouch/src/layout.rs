//! Checked arithmetic on sizes. Sizes are multiplied nowhere else.

use std::fmt;

/// The alignment of every block, unless a larger one is requested: a cache line, and the widest vector register.
pub const DEFAULT_ALIGN: usize = 64;

/// Requests below this many bytes are better served by the program's own allocator than by a pool: its caches cost less
/// than a call.
pub const SMALL_LIMIT: usize = 16 << 10;

/// The largest alignment that can be requested: 1 GiB, the size of the largest huge page.
pub const MAX_ALIGN: usize = 1 << 30;

/// The size of the largest block in bytes: pointer differences within it must fit in an `isize`.
pub const MAX_SIZE: usize = isize::MAX as usize;

/// The error returned for an invalid layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// The product of the shape and the item size overflows.
    Overflow {
        /// The requested shape.
        shape: Vec<usize>,
        /// Size of an item in bytes.
        item_size: usize,
    },
    /// The alignment is not a power of two up to [`MAX_ALIGN`].
    Align(usize),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow { shape, item_size } => {
                write!(f, "an array of shape {shape:?} with items of {item_size} bytes is larger than {MAX_SIZE} bytes")
            }
            Self::Align(align) => {
                write!(f, "alignment {align} is not a power of two from 1 to {MAX_ALIGN} bytes")
            }
        }
    }
}

impl std::error::Error for LayoutError {}

/// Returns the size of an array in bytes: the product of `shape` and `item_size`.
///
/// # Errors
/// [`LayoutError::Overflow`] if the product exceeds [`MAX_SIZE`]. As in NumPy, the product of the nonzero lengths must not
/// overflow either, even if the array is empty.
pub fn array_bytes(shape: &[usize], item_size: usize) -> Result<usize, LayoutError> {
    let nonzero = shape.iter().copied().filter(|&n| n != 0);
    let product = nonzero.chain([item_size.max(1)]).try_fold(1usize, usize::checked_mul);
    match product {
        Some(bytes) if bytes <= MAX_SIZE => Ok(if item_size == 0 || shape.contains(&0) { 0 } else { bytes }),
        _ => Err(LayoutError::Overflow { shape: shape.to_vec(), item_size }),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_overflow_names_the_shape() {
        let error = array_bytes(&[1 << 40, 1 << 40], 8).unwrap_err();
        assert!(error.to_string().contains("[1099511627776, 1099511627776]"), "{error}");
        assert!(array_bytes(&[0, 1 << 40, 1 << 40], 8).is_err());
        assert_eq!(array_bytes(&[], 8), Ok(8));
        assert_eq!(array_bytes(&[0, 3], 8), Ok(0));
        assert_eq!(array_bytes(&[3, 4], 0), Ok(0));
    }

    #[test]
    fn an_alignment_is_a_power_of_two_up_to_one_gibibyte() {
        for bad in [0, 3, 12, usize::MAX, 1 << 31] {
            assert_eq!(checked_align(bad), Err(LayoutError::Align(bad)));
        }
        assert_eq!(checked_align(1 << 30), Ok(1 << 30));
    }

    proptest! {
        #[test]
        fn bytes_agree_with_wide_arithmetic(shape in prop::collection::vec(0usize..1 << 33, 0..6), item in 0usize..1 << 20) {
            let nonzero: Option<u128> = shape.iter().filter(|&&n| n != 0).chain([&item.max(1)])
                .try_fold(1u128, |product, &n| product.checked_mul(n as u128));
            let fits = nonzero.is_some_and(|bytes| bytes <= MAX_SIZE as u128);
            let exact = shape.iter().chain([&item]).try_fold(1u128, |product, &n| product.checked_mul(n as u128));
            match array_bytes(&shape, item) {
                Ok(bytes) => prop_assert!(fits && exact.is_none_or(|exact| exact == bytes as u128)),
                Err(_) => prop_assert!(!fits),
            }
        }

        #[test]
        fn rounding_is_tight(n in 0usize..1 << 62, shift in 0u32..31) {
            let step = 1usize << shift;
            let up = round_up(n, step).unwrap();
            prop_assert!(up >= n && up - n < step && up.is_multiple_of(step));
            prop_assert!(round_down(n, step) <= n && n - round_down(n, step) < step);
        }
    }
}
