//! Colors.

use crate::policy::{COLORS, LINE, MAX_OFFSET, offset, span_size};

#[test]
#[cfg_attr(miri, ignore = "a million steps, without unsafe code")]
fn neighbors_differ_where_they_can() {
    for spare in 2 * LINE..2 * MAX_OFFSET {
        for turn in 0..COLORS as u64 {
            let offsets = [offset(turn, spare, 64), offset(turn + 1, spare, 64)];
            assert!(
                offsets[0] != offsets[1] && offsets.iter().all(|&at| at <= spare.min(MAX_OFFSET) && at % LINE == 0)
            );
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a million steps, without unsafe code")]
fn a_color_costs_little() {
    let units = |size: usize| size.div_ceil(4096);
    for size in (1..1 << 20).step_by(64) {
        let more = units(span_size(4096, size, 16)) - units(size);
        assert!(more <= 1 && more * 8 <= units(size));
    }
}
