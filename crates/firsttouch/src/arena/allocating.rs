//! Typed memory: the methods that arenas and scopes share.

use super::bump::Bump;
use super::error::Error;
use crate::allocator::Block;
use crate::layout::LayoutError;
use std::alloc::Layout;
use std::ptr::NonNull;

impl Bump<'_> {
    /// Memory with a layout.
    #[inline(always)]
    pub(super) fn allocate(&self, layout: Layout) -> Result<NonNull<u8>, Error> {
        match self.bump(layout.size(), layout.align()) {
            Some(address) => Ok(address),
            None => Ok(self.grow(layout.size(), layout.align(), false)?.address),
        }
    }

    /// The same for `n` values at a multiple of `align` bytes at least.
    #[inline(always)]
    pub(super) fn allocate_array<T>(&self, n: usize, align: usize) -> Result<NonNull<T>, Error> {
        let layout = Layout::array::<T>(n).and_then(|layout| layout.align_to(align));
        let layout = layout.map_err(|_| no_layout::<T>(n, align))?;
        Ok(self.allocate(layout)?.cast())
    }

    /// The same, all bytes zero.
    #[inline(always)]
    pub(super) fn allocate_zeros<T>(&self, n: usize) -> Result<NonNull<T>, Error> {
        let layout = Layout::array::<T>(n).map_err(|_| no_layout::<T>(n, 1))?;
        let block = match self.bump(layout.size(), layout.align()) {
            Some(address) => Block { address, size: layout.size(), zeroed: false },
            None => self.grow(layout.size(), layout.align(), true)?,
        };
        if !block.zeroed {
            // SAFETY: it was just given, and has that size.
            unsafe { block.address.write_bytes(0, layout.size()) };
        }
        Ok(block.address.cast())
    }
}

/// What is wrong with `n` values at a multiple of `align`.
#[cold]
fn no_layout<T>(n: usize, align: usize) -> Error {
    Error::Layout(if align.is_power_of_two() {
        LayoutError::Overflow { shape: vec![n], item_size: size_of::<T>() }
    } else {
        LayoutError::Align(align)
    })
}

/// The methods that allocate, for a type with a field `bump`; what they give lives as long as a borrow of it, or for
/// the lifetime that is named.
macro_rules! allocating {
    ($($lifetime:lifetime)?) => {
        /// Moves a value here. It is never dropped.
        ///
        /// # Errors
        /// Where there is no memory; the value is dropped then.
        #[inline]
        pub fn alloc<T>(&self, value: T) -> Result<&$($lifetime)? mut T, Error> {
            let place = self.bump.allocate(Layout::new::<T>())?.cast::<T>();
            // SAFETY: it was just given, with the layout of a `T`, and lives until this type lets it go.
            unsafe {
                place.write(value);
                Ok(&mut *place.as_ptr())
            }
        }

        /// `n` zeros.
        ///
        /// # Errors
        /// Where there is no memory, or no address space is that large.
        #[inline]
        pub fn alloc_slice<T: Zeroable>(&self, n: usize) -> Result<&$($lifetime)? mut [T], Error> {
            let start = self.bump.allocate_zeros::<T>(n)?;
            // SAFETY: it was just given, for `n` of them, and all bytes are zero, which is a value.
            Ok(unsafe { from_raw_parts_mut(start.as_ptr(), n) })
        }

        /// `n` values, each of which is `f` of its index. They are never dropped.
        ///
        /// # Errors
        /// Where there is no memory, or no address space is that large.
        #[inline]
        pub fn alloc_slice_with<T>(
            &self,
            n: usize,
            mut f: impl FnMut(usize) -> T,
        ) -> Result<&$($lifetime)? mut [T], Error> {
            let start = self.bump.allocate_array::<T>(n, 1)?;
            // SAFETY: it was just given, for `n` of them, and each is written; should `f` panic, nobody sees them.
            unsafe {
                for index in 0..n {
                    start.add(index).write(f(index));
                }
                Ok(from_raw_parts_mut(start.as_ptr(), n))
            }
        }

        /// A copy of `values`.
        ///
        /// # Errors
        /// Where there is no memory.
        #[inline]
        pub fn alloc_slice_copy<T: Copy>(&self, values: &[T]) -> Result<&$($lifetime)? mut [T], Error> {
            let start = self.bump.allocate_array::<T>(values.len(), 1)?;
            // SAFETY: it was just given, for as many, and so overlaps nothing.
            unsafe {
                start.copy_from_nonoverlapping(NonNull::from_ref(values).cast(), values.len());
                Ok(from_raw_parts_mut(start.as_ptr(), values.len()))
            }
        }

        /// Places for `n` values, which are not written yet.
        ///
        /// # Errors
        /// Where there is no memory, or no address space is that large.
        #[inline]
        pub fn alloc_uninit<T>(&self, n: usize) -> Result<&$($lifetime)? mut [MaybeUninit<T>], Error> {
            self.alloc_aligned(n, 1)
        }

        /// The same, the first of them at a multiple of `align` bytes, if the type does not ask for more.
        ///
        /// # Errors
        /// Where there is no memory, no address space is that large, or `align` is not a power of two up to 1 GiB.
        #[inline]
        pub fn alloc_aligned<T>(&self, n: usize, align: usize) -> Result<&$($lifetime)? mut [MaybeUninit<T>], Error> {
            let start = self.bump.allocate_array::<MaybeUninit<T>>(n, align)?;
            // SAFETY: it was just given, for `n` of them, and need not be written.
            Ok(unsafe { from_raw_parts_mut(start.as_ptr(), n) })
        }

        /// Memory of that layout, of any content. It is good as long as what the other methods give.
        ///
        /// # Errors
        /// Where there is no memory, or the alignment passes 1 GiB.
        #[inline]
        pub fn alloc_layout(&self, layout: Layout) -> Result<NonNull<u8>, Error> {
            self.bump.allocate(layout)
        }
    };
}
pub(super) use allocating;
