//! The alloc_methods methods that [`Arena`](super::Arena) and [`Scope`](super::Scope) share.

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

/// Defines the alloc_methods methods of a type with a field `bump`. The references they return have the named lifetime, or
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
pub(super) use alloc_methods;
