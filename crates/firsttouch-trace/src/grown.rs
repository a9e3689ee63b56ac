//! A list on memory of the system's own, for a thread that uses no allocator (glibc would reserve a heap for it).

use super::ids::Stack;
use firsttouch::os;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// The first mapping.
const FIRST: usize = 64 << 10;

/// Grows to twice its room. Its items need no drop, and read as zeros at first.
pub(super) struct Grown<T: Copy> {
    at: NonNull<T>,
    room: usize,
    length: usize,
}

// SAFETY: it owns its mapping, as a Vec its memory.
unsafe impl<T: Copy + Send> Send for Grown<T> {}

impl<T: Copy> Grown<T> {
    pub(super) const fn new() -> Self {
        Self { at: NonNull::dangling(), room: 0, length: 0 }
    }

    /// Zeros, as many as said; nothing where the system has no memory.
    pub(super) fn zeros(length: usize) -> Option<Self> {
        let bytes = length.checked_mul(size_of::<T>())?.max(1).next_multiple_of(os::page_size());
        let at = NonNull::new(os::map_anywhere(bytes).ok()? as *mut T)?;
        Some(Self { at, room: bytes / size_of::<T>(), length })
    }

    /// The items for good.
    pub(super) fn leak(self) -> &'static mut [T] {
        let mut kept = ManuallyDrop::new(self);
        let (at, length) = (kept.items().as_mut_ptr(), kept.length);
        // SAFETY: the mapping is never given back.
        unsafe { std::slice::from_raw_parts_mut(at, length) }
    }

    pub(super) fn items(&mut self) -> &mut [T] {
        // SAFETY: that many items are mapped and were written, or are zeros; callers choose types that zeros are good for.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.length) }
    }

    /// Appends; false where the system has no memory.
    pub(super) fn push(&mut self, item: T) -> bool {
        if self.length == self.room && !self.grow() {
            return false;
        }
        // SAFETY: there is room for one more.
        unsafe { self.at.as_ptr().add(self.length).write(item) };
        self.length += 1;
        true
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        self.length = self.length.checked_sub(1)?;
        // SAFETY: it was written by `push` or is a zero.
        Some(unsafe { self.at.as_ptr().add(self.length).read() })
    }

    fn grow(&mut self) -> bool {
        let Some(mut larger) = Self::zeros((self.room * 2).max(FIRST / size_of::<T>())) else { return false };
        let length = self.length;
        larger.items()[..length].copy_from_slice(self.items());
        larger.length = length;
        *self = larger;
        true
    }
}

impl<T: Copy> Drop for Grown<T> {
    fn drop(&mut self) {
        if self.room > 0 {
            let bytes = (self.room * size_of::<T>()).next_multiple_of(os::page_size());
            // SAFETY: it was mapped by `zeros` with this size, up to the rounding, and nobody knows it any more.
            let _ = unsafe { os::unmap(self.at.as_ptr() as usize, bytes) };
        }
    }
}

impl Stack for Grown<u32> {
    fn push(&mut self, number: u32) -> bool {
        Self::push(self, number)
    }

    fn pop(&mut self) -> Option<u32> {
        Self::pop(self)
    }
}
