//! A vector on memory mapped directly from the operating system, for a thread that must not call an allocator: glibc
//! would reserve an arena for it, and the program under observation may be inside the allocator.

use crate::format::IdStack;
use firsttouch::os;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// Size of the first mapping in bytes.
const FIRST_MAPPING: usize = 64 << 10;

/// A vector whose capacity doubles. `T` must be valid when all its bytes are zero, and needs no drop.
pub(super) struct MappedVec<T: Copy> {
    start: NonNull<T>,
    capacity: usize,
    length: usize,
}

// SAFETY: it owns its mapping, as a Vec owns its buffer.
unsafe impl<T: Copy + Send> Send for MappedVec<T> {}

impl<T: Copy> MappedVec<T> {
    /// Creates an empty vector without a mapping.
    pub(super) const fn new() -> Self {
        Self { start: NonNull::dangling(), capacity: 0, length: 0 }
    }

    /// Creates a vector of `length` zeros; `None` if out of memory.
    pub(super) fn zeroed(length: usize) -> Option<Self> {
        let bytes = length.checked_mul(size_of::<T>())?.max(1).next_multiple_of(os::page_size());
        let start = NonNull::new(os::map_anywhere(bytes).ok()? as *mut T)?;
        Some(Self { start, capacity: bytes / size_of::<T>(), length })
    }

    /// Returns the items and never unmaps them.
    pub(super) fn leak(self) -> &'static mut [T] {
        let mut kept = ManuallyDrop::new(self);
        let (start, length) = (kept.items().as_mut_ptr(), kept.length);
        // SAFETY: the mapping is never unmapped.
        unsafe { std::slice::from_raw_parts_mut(start, length) }
    }

    /// Returns the items.
    pub(super) fn items(&mut self) -> &mut [T] {
        // SAFETY: `length` items are mapped, and each was written or is zero, which is valid for `T`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// Appends an item; returns `false` if out of memory.
    pub(super) fn push(&mut self, item: T) -> bool {
        if self.length == self.capacity && !self.grow() {
            return false;
        }
        // SAFETY: the capacity exceeds the length.
        unsafe { self.start.as_ptr().add(self.length).write(item) };
        self.length += 1;
        true
    }

    /// Removes and returns the last item.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.length = self.length.checked_sub(1)?;
        // SAFETY: it was written by `push`, or is zero.
        Some(unsafe { self.start.as_ptr().add(self.length).read() })
    }

    fn grow(&mut self) -> bool {
        let Some(mut larger) = Self::zeroed((self.capacity * 2).max(FIRST_MAPPING / size_of::<T>())) else {
            return false;
        };
        let length = self.length;
        larger.items()[..length].copy_from_slice(self.items());
        larger.length = length;
        *self = larger;
        true
    }
}

impl<T: Copy> Drop for MappedVec<T> {
    fn drop(&mut self) {
        if self.capacity > 0 {
            let bytes = (self.capacity * size_of::<T>()).next_multiple_of(os::page_size());
            // SAFETY: `zeroed` mapped that many bytes, up to the same rounding, and no reference to them is left.
            let _ = unsafe { os::unmap(self.start.as_ptr() as usize, bytes) };
        }
    }
}

impl IdStack for MappedVec<u32> {
    fn push(&mut self, id: u32) -> bool {
        Self::push(self, id)
    }

    fn pop(&mut self) -> Option<u32> {
        Self::pop(self)
    }
}
