//! Size classes of free spans: exact below 32 units, then eight to each power of two.

/// Number of classes.
pub(crate) const COUNT: usize = 248;

/// The class of spans of `len` units.
#[inline]
pub(crate) const fn of(len: u32) -> usize {
    if len < 32 {
        return len as usize;
    }
    let power = 31 - len.leading_zeros();
    let eighth = (len >> (power - 3)) & 7;
    (32 + (power - 5) * 8 + eighth) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_rise_with_length_and_fit_the_table() {
        let mut last = 0;
        for len in (1..100_000).chain((17..32).flat_map(|p| [(1u32 << p) - 1, 1 << p, (1 << p) + 1])) {
            assert!(of(len) >= last && of(len) < COUNT, "{len}");
            last = of(len);
        }
        assert_eq!(of(u32::MAX), COUNT - 1);
    }
}
