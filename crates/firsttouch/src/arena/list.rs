//! A list whose first few elements need no memory of their own, so that a new arena takes one block and not two.

use crate::allocator::{AllocError, Limit};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// See the module. Plain values only: nothing is dropped.
pub(super) struct List<T: Copy, const FEW: usize> {
    /// How many there are here; none, once there were too many.
    count: usize,
    few: [MaybeUninit<T>; FEW],
    many: Vec<T>,
}

impl<T: Copy, const FEW: usize> List<T, FEW> {
    pub(super) const fn new() -> Self {
        Self { count: 0, few: [MaybeUninit::uninit(); FEW], many: Vec::new() }
    }

    /// Makes room for one more; an error for `asked` bytes where there is none.
    #[inline]
    pub(super) fn reserve(&mut self, asked: usize) -> Result<(), AllocError> {
        if self.many.is_empty() && self.count < FEW { Ok(()) } else { self.reserve_many(asked) }
    }

    #[cold]
    fn reserve_many(&mut self, asked: usize) -> Result<(), AllocError> {
        self.many.try_reserve(FEW.max(self.count + 1)).map_err(|_| AllocError::new(asked, Limit::Upstream))?;
        for index in 0..self.count {
            // SAFETY: the first `count` were written.
            self.many.push(unsafe { self.few[index].assume_init() });
        }
        self.count = 0;
        Ok(())
    }

    /// Puts one at `index`; there is room.
    #[inline]
    pub(super) fn insert(&mut self, index: usize, value: T) {
        if self.many.is_empty() && self.count < FEW {
            self.few.copy_within(index..self.count, index + 1);
            self.few[index] = MaybeUninit::new(value);
            self.count += 1;
        } else {
            self.many.insert(index, value);
        }
    }

    /// Keeps those that `keep` says, in their order.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let mut kept = 0;
        for index in 0..self.len() {
            let value = self[index];
            if keep(&value) {
                self[kept] = value;
                kept += 1;
            }
        }
        if self.many.is_empty() {
            self.count = kept;
        } else {
            self.many.truncate(kept);
        }
    }
}

impl<T: Copy, const FEW: usize> Deref for List<T, FEW> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        if self.many.is_empty() {
            // SAFETY: the first `count` were written.
            unsafe { from_raw_parts(self.few.as_ptr().cast(), self.count) }
        } else {
            &self.many
        }
    }
}

impl<T: Copy, const FEW: usize> DerefMut for List<T, FEW> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.many.is_empty() {
            // SAFETY: the first `count` were written.
            unsafe { from_raw_parts_mut(self.few.as_mut_ptr().cast(), self.count) }
        } else {
            &mut self.many
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_vec(steps in prop::collection::vec((any::<bool>(), any::<usize>(), any::<u8>()), 0..60)) {
            let (mut list, mut model) = (List::<u8, 3>::new(), Vec::new());
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
