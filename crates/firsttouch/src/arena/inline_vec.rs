//! A vector that holds its first few elements inline, so that a new arena allocates one block instead of two.

use crate::allocator::{AllocError, Limit};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// A vector with room for `N` elements inline.
pub(super) struct InlineVec<T: Copy, const N: usize> {
    /// Number of inline elements; 0 once the elements have moved to the heap.
    count: usize,
    inline: [MaybeUninit<T>; N],
    heap: Vec<T>,
}

impl<T: Copy, const N: usize> InlineVec<T, N> {
    pub(super) const fn new() -> Self {
        Self { count: 0, inline: [MaybeUninit::uninit(); N], heap: Vec::new() }
    }

    /// Reserves room for one more element. The error is for a request of `asked` bytes.
    #[inline]
    pub(super) fn reserve(&mut self, asked: usize) -> Result<(), AllocError> {
        if self.heap.is_empty() && self.count < N { Ok(()) } else { self.move_to_heap(asked) }
    }

    #[cold]
    fn move_to_heap(&mut self, asked: usize) -> Result<(), AllocError> {
        self.heap.try_reserve(N.max(self.count + 1)).map_err(|_| AllocError::new(asked, Limit::Upstream))?;
        for index in 0..self.count {
            // SAFETY: the first `count` elements are initialized.
            self.heap.push(unsafe { self.inline[index].assume_init() });
        }
        self.count = 0;
        Ok(())
    }

    /// Inserts an element at `index`. There must be room.
    #[inline]
    pub(super) fn insert(&mut self, index: usize, value: T) {
        if self.heap.is_empty() && self.count < N {
            self.inline.copy_within(index..self.count, index + 1);
            self.inline[index] = MaybeUninit::new(value);
            self.count += 1;
        } else {
            self.heap.insert(index, value);
        }
    }

    /// Retains the elements that satisfy `keep`, in order.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let mut kept = 0;
        for index in 0..self.len() {
            let value = self[index];
            if keep(&value) {
                self[kept] = value;
                kept += 1;
            }
        }
        if self.heap.is_empty() {
            self.count = kept;
        } else {
            self.heap.truncate(kept);
        }
    }
}

impl<T: Copy, const N: usize> Deref for InlineVec<T, N> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        if self.heap.is_empty() {
            // SAFETY: the first `count` elements are initialized.
            unsafe { from_raw_parts(self.inline.as_ptr().cast(), self.count) }
        } else {
            &self.heap
        }
    }
}

impl<T: Copy, const N: usize> DerefMut for InlineVec<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.heap.is_empty() {
            // SAFETY: the first `count` elements are initialized.
            unsafe { from_raw_parts_mut(self.inline.as_mut_ptr().cast(), self.count) }
        } else {
            &mut self.heap
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_vec(steps in prop::collection::vec((any::<bool>(), any::<usize>(), any::<u8>()), 0..60)) {
            let (mut list, mut model) = (InlineVec::<u8, 3>::new(), Vec::new());
            for (insert, at, value) in steps {
                if insert {
                    let at = at % (model.len() + 1);
                    list.reserve(1).unwrap();
                    list.insert(at, value);
                    model.insert(at, value);
                } else {
                    list.retain(|&other| other % 3 != value % 3);
                    model.retain(|&other| other % 3 != value % 3);
                }
                list.reverse();
                model.reverse();
                prop_assert_eq!(&*list, &*model);
            }
        }
    }
}
