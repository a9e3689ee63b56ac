//! Types whose every byte may be zero.

/// A type for which memory that reads zero is a value.
///
/// # Safety
/// Bytes that are all zero are a valid value of the type.
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
// SAFETY: an array is its elements, one behind the other.
unsafe impl<T: Zeroable, const N: usize> Zeroable for [T; N] {}
// SAFETY: anything may stand in memory that is not a value yet.
unsafe impl<T> Zeroable for std::mem::MaybeUninit<T> {}
