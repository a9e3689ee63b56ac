//! Where in its span a block begins.
//!
//! If every block began at a page, element `i` of all arrays would lie at the same offset in a page. A program that writes
//! `out[i + 1]` and then reads `x[i]` then meets an address whose low 12 bits are those of a store that is still under
//! way, and the processor waits; `rep movsb`, with which the C library copies, is ten times slower on some AMD
//! processors if it writes a few bytes ahead of where it reads. So blocks begin at different offsets, as slab allocators
//! color their objects.

/// Bytes between two colors, and the largest alignment that all of them keep: a cache line.
const LINE: usize = 64;
/// The number of colors: within any page, and without a divisor in common with the stride.
const COLORS: usize = 56;
/// Colors from one block to the next: blocks that are allocated one after another should be far from each other.
const STRIDE: u64 = 33;
/// The largest offset of a block in its span.
const MOST: usize = LINE * (COLORS - 1);

/// Bytes that a span of units of `unit` bytes needs for a block of `size` bytes: in any color where a unit more costs
/// little, in one of two where it costs up to an eighth, and else just `size`.
pub(super) fn room(unit: usize, size: usize, align: usize) -> usize {
    size + match size / unit {
        _ if align > LINE => 0,
        0..8 => 0,
        8..32 => LINE,
        _ => MOST,
    }
}

/// The offset of the `turn`-th block in a span with `spare` bytes more than it needs.
pub(super) fn offset(turn: u64, spare: usize, align: usize) -> usize {
    if align > LINE {
        return 0;
    }
    let color = (turn.wrapping_mul(STRIDE) % COLORS as u64) as usize;
    let colors = (spare / LINE + 1).min(COLORS);
    color * colors / COLORS * LINE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "a million steps, without unsafe code")]
    fn neighbors_differ_where_there_is_room() {
        for spare in 2 * LINE..2 * MOST {
            for turn in 0..COLORS as u64 {
                let offsets = [offset(turn, spare, 64), offset(turn + 1, spare, 64)];
                assert!(offsets[0] != offsets[1] && offsets.iter().all(|&at| at <= spare.min(MOST) && at % LINE == 0));
            }
        }
    }

    #[test]
    fn all_colors_are_used() {
        let mut found: Vec<usize> = (0..COLORS as u64).map(|turn| offset(turn, MOST, 16)).collect();
        found.sort_unstable();
        assert!(found.iter().copied().eq((0..COLORS).map(|color| color * LINE)));
    }

    #[test]
    fn alignment_beyond_a_line_is_kept() {
        assert_eq!(offset(3, 1 << 20, 4096), 0);
        assert_eq!(room(4096, 1 << 20, 4096), 1 << 20);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a million steps, without unsafe code")]
    fn room_costs_little() {
        let units = |size: usize| size.div_ceil(4096);
        for size in (1..1 << 20).step_by(64) {
            let more = units(room(4096, size, 16)) - units(size);
            assert!(more <= 1 && more * 8 <= units(size));
        }
    }
}
