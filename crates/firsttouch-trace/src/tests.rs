//! Traces say what lines take, plainly and on a pool.

use super::trace::*;
use firsttouch::layout::SMALL_LIMIT;

const MIB: usize = 1 << 20;

fn array(size: usize, site: usize) -> Request {
    Request { size, zeroed: false, is_array: true, site }
}

fn buffer(size: usize, site: usize) -> Request {
    Request { is_array: false, ..array(size, site) }
}

fn resize(address: usize, moved: Option<usize>, request: Request) {
    on_resize_end(on_resize_begin(address), address, moved, request);
}

fn traced(body: impl FnOnce()) -> Trace {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock().unwrap();
    assert!(begin());
    assert!(!begin());
    body();
    end().unwrap()
}

#[test]
fn lines_have_what_they_take_plainly_and_on_a_pool() {
    let found = traced(|| {
        on_alloc(1, array(16 * MIB, 1)); // where nothing is: fresh, plainly and from a pool
        on_free(1, 16 * MIB);
        on_alloc(1, array(16 * MIB, 2)); // a pool has it
        on_free(1, 16 * MIB);
        on_alloc(2, array(24 * MIB, 2)); // a pool has a part
    });
    let [_, first, second] = found.lines[..] else { panic!("three lines") };
    assert_eq!((first.count, first.bytes, second.count, second.bytes), (1, 16 * MIB, 2, 40 * MIB));
    let bytes = |line: Line| (line.taken.plainly.bytes(), line.taken.pooled.bytes());
    assert_eq!(bytes(first), (16 << 20, 16 << 20));
    assert_eq!(bytes(second), (40 << 20, 8 << 20));
    assert!(second.taken.plainly.base > 0 && second.taken.pooled.base == 0, "ends of blocks are on base pages");
    assert_eq!((found.allocations, found.allocated_bytes), (3, 56 * MIB));
    assert_eq!((found.peak_in_use, found.in_use), (24 * MIB, 24 * MIB));
    // A block is made, and freed, in the microsecond that has begun.
    assert!((first.lived + second.lived) as f64 <= 1e6 * found.used.wall + 3.0);
    assert!(end().is_none());
}

#[test]
fn a_block_that_grows_belongs_to_the_line_that_made_it_large() {
    let found = traced(|| {
        on_alloc(1, buffer(SMALL_LIMIT - 1, 1));
        resize(1, Some(2), buffer(MIB, 2));
        resize(2, None, buffer(9 * MIB, 3));
        resize(2, Some(3), buffer(3 * MIB, 3));
        on_free(3, 3 * MIB);
    });
    let line = found.lines[2];
    assert_eq!((found.lines.len(), line.count, line.bytes), (3, 1, MIB));
    // 1 MiB, and 2 by which it grew, and as much of it as was copied to fresh memory, as far as page faults tell.
    assert!((3 << 20..=4 << 20).contains(&line.taken.plainly.bytes()));
    assert_eq!((found.allocations, found.buffers, found.buffer_bytes), (0, 1, 3 * MIB));
}

#[test]
#[cfg(target_os = "linux")]
fn what_is_there_already_is_not_taken_fresh() {
    let mut block: Vec<u8> = Vec::with_capacity(24 * MIB);
    block.resize(12 * MIB, 1);
    let found = traced(|| on_alloc(block.as_ptr() as usize, array(24 * MIB, 1)));
    let taken = found.lines[1].taken.plainly.bytes();
    assert!((10 << 20..=12 << 20).contains(&taken), "{taken}"); // but for a huge page
}

/// Its free is not told.
#[test]
fn a_block_that_shrinks_below_what_is_traced_is_gone() {
    let found = traced(|| {
        on_alloc(1, array(MIB, 0));
        resize(1, Some(1), array(SMALL_LIMIT - 1, 0));
    });
    assert_eq!((found.peak_in_use, found.in_use), (MIB, 0));
}
