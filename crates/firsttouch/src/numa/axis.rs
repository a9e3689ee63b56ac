//! The axes of arrays: the boundaries of slabs, and the axis of the array that this thread is about to allocate.
//!
//! An allocator knows only bytes. A constructor, which knows shape and order, announces the axis while it runs.

use std::cell::Cell;

/// An axis of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Bytes from one item to the next.
    pub stride: usize,
    /// Number of items.
    pub items: usize,
}

impl Axis {
    /// Returns the axis of an array of bytes.
    pub fn of_bytes(size: usize) -> Self {
        Self { stride: 1, items: size }
    }

    /// Returns the slab, of `count`, that contains the byte at `offset`.
    pub fn slab(&self, offset: usize, count: usize) -> usize {
        let item = offset / self.stride.max(1) % self.items.max(1);
        item * count / self.items.max(1)
    }

    /// Returns the offset of the first byte after `offset` that may be in another slab.
    pub fn edge(&self, offset: usize, count: usize) -> usize {
        let (stride, items) = (self.stride.max(1), self.items.max(1));
        let first = offset - offset % (stride * items);
        // A slab begins at item at * items / count, rounded up.
        let next = ((self.slab(offset, count) + 1) * items).div_ceil(count.max(1));
        first + next.min(items) * stride
    }
}

thread_local! {
    static EXPECTED: Cell<Option<(usize, Axis)>> = const { Cell::new(None) };
}

/// Announces that this thread will request blocks of the given size for arrays with this axis; `None` ends that.
pub fn expect(next: Option<(usize, Axis)>) {
    let _ = EXPECTED.try_with(|cell| cell.set(next)); // a thread that is exiting creates no arrays
}

/// Returns the axis announced for a block of `size` bytes.
pub fn expected(size: usize) -> Option<Axis> {
    let (bytes, axis) = EXPECTED.try_with(Cell::get).ok().flatten()?;
    (bytes == size).then_some(axis)
}

#[cfg(test)]
mod tests {
    use super::{Axis, expect, expected};

    #[test]
    fn slabs_have_equal_shares() {
        for (stride, items, count) in [(8, 10, 3), (24, 7, 2), (1, 4096, 4), (800, 2, 4), (64, 1, 3)] {
            let (axis, size) = (Axis { stride, items }, stride * items * 3);
            for offset in 0..size {
                let edge = axis.edge(offset, count);
                assert!(edge > offset && edge % stride == 0);
                let next = (offset..edge).map(|at| axis.slab(at, count));
                assert!(next.eq(std::iter::repeat_n(axis.slab(offset, count), edge - offset)));
                let turn = edge % (stride * items) == 0;
                assert!(turn || axis.slab(edge, count) != axis.slab(offset, count));
            }
        }
    }

    #[test]
    fn only_blocks_of_the_announced_size_have_the_axis() {
        let axis = Axis { stride: 8, items: 4 };
        expect(Some((320, axis)));
        assert_eq!((expected(320), expected(321)), (Some(axis), None));
        assert_eq!(std::thread::spawn(|| expected(320)).join().unwrap(), None);
        expect(None);
        assert_eq!(expected(320), None);
    }
}
