//! Axes of arrays: where slabs end, and which array the next block of this thread is for, where somebody says so.
//!
//! Allocators know bytes. A constructor that knows shape and order states them for as long as it runs.

use std::cell::Cell;

/// Where in an array an axis runs: bytes from one item to the next, and items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Bytes.
    pub stride: usize,
    /// Items.
    pub items: usize,
}

impl Axis {
    /// The axis of an array of bytes.
    pub fn of_bytes(size: usize) -> Self {
        Self { stride: 1, items: size }
    }

    /// Which of `count` slabs the byte at `offset` lies in.
    pub fn slab(&self, offset: usize, count: usize) -> usize {
        let item = offset / self.stride.max(1) % self.items.max(1);
        item * count / self.items.max(1)
    }

    /// The first byte after `offset` that may lie in another slab.
    pub fn edge(&self, offset: usize, count: usize) -> usize {
        let (stride, items) = (self.stride.max(1), self.items.max(1));
        let first = offset - offset % (stride * items);
        // The items of a slab are those from at * items / count on, rounded up.
        let next = ((self.slab(offset, count) + 1) * items).div_ceil(count.max(1));
        first + next.min(items) * stride
    }
}

thread_local! {
    static EXPECTED: Cell<Option<(usize, Axis)>> = const { Cell::new(None) };
}

/// Says that blocks of `size` bytes that this thread asks for from now on are for arrays with this axis; or that nobody
/// knows any more.
pub fn expect(next: Option<(usize, Axis)>) {
    let _ = EXPECTED.try_with(|cell| cell.set(next)); // a thread at its end makes no arrays
}

/// The axis of the array that a block of `size` bytes is for.
pub fn expected(size: usize) -> Option<Axis> {
    let (bytes, axis) = EXPECTED.try_with(Cell::get).ok().flatten()?;
    (bytes == size).then_some(axis)
}

#[cfg(test)]
mod tests {
    use super::{Axis, expect, expected};

    #[test]
    fn slabs_have_equal_shares_and_edges_lie_between_them() {
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
    fn only_blocks_of_the_stated_size_have_the_axis() {
        let axis = Axis { stride: 8, items: 4 };
        expect(Some((320, axis)));
        assert_eq!((expected(320), expected(321)), (Some(axis), None));
        assert_eq!(std::thread::spawn(|| expected(320)).join().unwrap(), None);
        expect(None);
        assert_eq!(expected(320), None);
    }
}
