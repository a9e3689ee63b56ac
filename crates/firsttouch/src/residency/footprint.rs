//! Computes the pages that contain an array's elements. An array may have gaps and negative strides.

use crate::os::{Errno, page_size};
use std::ops::Range;

/// With more pieces than this, the gaps between them are included.
const MAX_PIECES: usize = 1 << 24;

/// Returns the addresses of the pages that the elements of an array lie on, as sorted and disjoint ranges of whole pages.
///
/// `address` is that of the first element, and `item` the size of an element; `shape` and `strides` (in bytes) are as in
/// NumPy. An empty array lies on no page.
///
/// # Errors
/// [`Errno::NO_MEMORY`] if there is no memory for the result.
pub fn footprint(address: usize, item: usize, shape: &[usize], strides: &[isize]) -> Result<Vec<Range<usize>>, Errno> {
    if item == 0 || shape.contains(&0) {
        return Ok(Vec::new());
    }
    let page = page_size();
    // Reverse negative strides: every axis runs upwards from the lowest element.
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
    // The axes of short strides form one piece, whose gaps are too small to skip a page.
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
        if starts.len().saturating_mul(count) <= MAX_PIECES {
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
    merged(starts.into_iter().map(|start| start / page * page..end(start)))
}

/// Returns an empty vector with room for `count` values.
fn list<T>(count: usize) -> Result<Vec<T>, Errno> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| Errno::NO_MEMORY)?;
    Ok(list)
}

/// Merges ranges, sorted by their starts, that overlap or touch.
fn merged(ranges: impl Iterator<Item = Range<usize>>) -> Result<Vec<Range<usize>>, Errno> {
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

    /// Returns the pages of every element, one by one.
    fn brute_force(address: usize, item: usize, shape: &[usize], strides: &[isize]) -> BTreeSet<usize> {
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
        fn agrees_with_brute_force(
            offset in 0usize..9000,
            item in 1usize..40,
            axes in proptest::collection::vec((1usize..9, -20_000isize..20_000), 0..4),
        ) {
            let (shape, strides): (Vec<_>, Vec<_>) = axes.into_iter().unzip();
            let found = footprint(AT + offset, item, &shape, &strides).unwrap();
            prop_assert_eq!(pages(&found), brute_force(AT + offset, item, &shape, &strides));
            prop_assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }

    #[test]
    fn strides_out_of_the_address_space() {
        footprint(AT, 8, &[1 << 40, 1 << 30], &[1 << 50, -1 << 60]).unwrap();
    }

    #[test]
    fn empty_arrays_lie_on_no_page() {
        assert!(footprint(AT, 8, &[3, 0], &[0, 8]).unwrap().is_empty());
        assert!(footprint(AT, 0, &[3], &[0]).unwrap().is_empty());
    }

    #[test]
    fn a_scalar_is_one_element() {
        assert_eq!(only(&footprint(AT + 8, 8, &[], &[]).unwrap()), AT..AT + page_size());
    }

    #[test]
    fn a_gibibyte_is_one_range() {
        assert_eq!(only(&footprint(AT + 16, 8, &[1 << 27], &[8]).unwrap()), AT..AT + (1 << 30) + page_size());
    }

    /// Gaps may be included, but no element may be missing.
    #[test]
    fn too_many_pieces() {
        let (count, stride) = (MAX_PIECES, 9 * page_size());
        let found = footprint(AT, 8, &[count, 2], &[stride as isize, stride as isize / 3]).unwrap();
        assert_eq!(only(&found), AT..AT + (count - 1) * stride + stride / 3 + page_size());
    }
}
