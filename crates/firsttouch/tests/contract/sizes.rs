//! Sizes around every class and limit.

/// Bytes; each limit with what is just below and above it.
pub const SIZES: [usize; 32] = [
    1,
    63,
    64,
    4095,
    4096,
    4097,
    (32 << 10) - 1,
    32 << 10,
    (32 << 10) + 1,
    64 << 10,
    (64 << 10) + 1,
    (128 << 10) - 1,
    128 << 10,
    (128 << 10) + 1,
    (256 << 10) - 1,
    256 << 10,
    (256 << 10) + 1,
    (1 << 20) - 1,
    1 << 20,
    (1 << 20) + 1,
    (2 << 20) - 1,
    2 << 20,
    (2 << 20) + 1,
    (4 << 20) - 1,
    4 << 20,
    (4 << 20) + 1,
    (8 << 20) + 1,
    (17 << 20) + 1,
    (32 << 20) - 1,
    32 << 20,
    (32 << 20) + 1,
    33 << 20,
];

/// Those that fit in `limit` bytes.
pub fn up_to(limit: usize) -> impl DoubleEndedIterator<Item = usize> + Clone {
    SIZES.into_iter().filter(move |&size| size <= limit)
}
