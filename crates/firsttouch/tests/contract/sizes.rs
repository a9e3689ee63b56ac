//! Sizes around every class and limit.

/// The shifts of classes and limits.
const SHIFTS: [u32; 11] = [6, 12, 15, 16, 17, 18, 20, 21, 22, 23, 25];

/// Bytes: the fewest, and each limit with what is just below and above it.
pub fn sizes() -> impl DoubleEndedIterator<Item = usize> + Clone {
    std::iter::once(1).chain(SHIFTS.into_iter().flat_map(|shift| [(1 << shift) - 1, 1 << shift, (1 << shift) + 1]))
}

/// Those that fit in `limit` bytes.
pub fn up_to(limit: usize) -> impl DoubleEndedIterator<Item = usize> + Clone {
    sizes().filter(move |&size| size <= limit)
}
