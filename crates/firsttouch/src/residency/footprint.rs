//! Which pages an array's elements lie on: an array may be a view with gaps, and its strides may run backwards.

use crate::os::{Errno, page_size};
use std::ops::Range;

/// Above this many separate pieces the pages between them count, too.
const MOST_PIECES: usize = 1 << 24;

/// The pages of the elements of an array: whole pages as bounds of bytes, in order, apart from each other.
///
/// `address` is the first element's, whose size and those of all others is `item`; `shape` and `strides` (in bytes) are
/// NumPy's. Empty arrays lie on no page.
///
/// # Errors
/// [`Errno::NO_MEMORY`] where there is none for the list.
pub fn footprint(address: usize, item: usize, shape: &[usize], strides: &[isize]) -> Result<Vec<Range<usize>>, Errno> {
    if item == 0 || shape.contains(&0) {
        return Ok(Vec::new());
    }
    let page = page_size();
    // Every axis runs forwards from the lowest element.
    let mut lowest = address;
    let mut axes = list(shape.len())?;
    for (&count, &stride) in shape.iter().zip(strides) {
        let reach = stride.unsigned_abs().saturating_mul(count - 1);
        if stride < 0 {
            lowest = lowest.saturating_sub(reach);
        }
        if reach > 0 {
            axes.push((stride.unsigned_abs(), count));
        }
    }
    axes.sort_unstable();
    // The short strides make a run without a gap that could hold a whole page.
    let mut run = item;
    let near = axes.iter().take_while(|(stride, count)| {
        let near = stride.saturating_sub(run) < page;
        run = if near { run.saturating_add(stride.saturating_mul(count - 1)) } else { run };
        near
    });
    let near = near.count();
    let (mut starts, mut whole) = (list(1)?, run);
    starts.push(lowest);
    for &(stride, count) in &axes[near..] {
        whole = whole.saturating_add(stride.saturating_mul(count - 1));
        if starts.len().saturating_mul(count) <= MOST_PIECES {
            let at = |n: usize| n.saturating_mul(stride);
            let mut all = list(starts.len() * count)?;
            all.extend((0..count).flat_map(|n| starts.iter().map(move |start| start.saturating_add(at(n)))));
            starts = all;
        } else {
            starts.clear();
            starts.push(lowest);
            run = whole;
        }
    }
    starts.sort_unstable();
    let last = usize::MAX / page * page; // strides may lead anywhere
    let end = |start: usize| start.saturating_add(run).min(last).next_multiple_of(page);
    joined(starts.into_iter().map(|start| start / page * page..end(start)))
}

/// An empty list with room for `count`.
fn list<T>(count: usize) -> Result<Vec<T>, Errno> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| Errno::NO_MEMORY)?;
    Ok(list)
}

/// Joins ranges, given in the order of their starts, that overlap or touch.
fn joined(ranges: impl Iterator<Item = Range<usize>>) -> Result<Vec<Range<usize>>, Errno> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match found.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => {
                found.try_reserve(1).map_err(|_| Errno::NO_MEMORY)?;
                found.push(range);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const AT: usize = 1 << 40;

    /// The pages of every element, one by one.
    fn each(address: usize, item: usize, shape: &[usize], strides: &[isize]) -> BTreeSet<usize> {
        let mut at = vec![address as isize];
        for (&count, &stride) in shape.iter().zip(strides) {
            at = (0..count as isize).flat_map(|n| at.iter().map(move |at| at + n * stride)).collect();
        }
        let pages = |at: &isize| *at as usize / page_size()..=(*at as usize + item - 1) / page_size();
        at.iter().flat_map(pages).collect()
    }

    fn pages(found: &[Range<usize>]) -> BTreeSet<usize> {
        found.iter().flat_map(|range| range.start / page_size()..range.end / page_size()).collect()
    }

    fn only(found: &[Range<usize>]) -> Range<usize> {
        assert_eq!(found.len(), 1);
        found[0].clone()
    }

    proptest! {
        #[test]
        fn as_one_by_one(
            offset in 0usize..9000,
            item in 1usize..40,
            axes in proptest::collection::vec((1usize..9, -20_000isize..20_000), 0..4),
        ) {
            let (shape, strides): (Vec<_>, Vec<_>) = axes.into_iter().unzip();
            let found = footprint(AT + offset, item, &shape, &strides).unwrap();
            prop_assert_eq!(pages(&found), each(AT + offset, item, &shape, &strides));
            prop_assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }

    #[test]
    fn strides_that_lead_out_of_the_address_space() {
        footprint(AT, 8, &[1 << 40, 1 << 30], &[1 << 50, -1 << 60]).unwrap();
    }

    #[test]
    fn nothing_lies_nowhere() {
        assert!(footprint(AT, 8, &[3, 0], &[0, 8]).unwrap().is_empty());
        assert!(footprint(AT, 0, &[3], &[0]).unwrap().is_empty());
    }

    #[test]
    fn without_axes_one_element() {
        assert_eq!(only(&footprint(AT + 8, 8, &[], &[]).unwrap()), AT..AT + page_size());
    }

    #[test]
    fn a_gibibyte_is_one_range() {
        assert_eq!(only(&footprint(AT + 16, 8, &[1 << 27], &[8]).unwrap()), AT..AT + (1 << 30) + page_size());
    }

    /// The pages between may count; none of the elements' may be missing.
    #[test]
    fn too_many_pieces() {
        let (count, stride) = (MOST_PIECES, 9 * page_size());
        let found = footprint(AT, 8, &[count, 2], &[stride as isize, stride as isize / 3]).unwrap();
        assert_eq!(only(&found), AT..AT + (count - 1) * stride + stride / 3 + page_size());
    }
}
