//! Pages that are populated ahead of a program come from the node that the program would have had them from.

use super::pools::{homes, on};
use super::view::Held;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::fault_ahead::populated_bytes;
use firsttouch::os::{self, Call, fail_after};
use firsttouch::pages::migration::nodes_of;
use firsttouch::sources::Pages;
use firsttouch::{Allocator, Request};
use std::sync::Arc;
use std::time::Duration;

const SIZE: usize = 48 << 20;

/// Writes a block page by page, slowly enough to be followed; the bytes that were populated meanwhile, and the nodes.
fn walked(allocator: &dyn Allocator) -> (u64, Vec<i32>) {
    let block = allocator.allocate(Request::bytes(SIZE)).unwrap().address;
    let before = populated_bytes();
    for at in (0..SIZE).step_by(os::page_size()) {
        // SAFETY: it lies in the block.
        unsafe { block.add(at).write(1) };
        if at % (1 << 20) == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let found = (populated_bytes() - before, nodes_of(block.as_ptr() as usize, SIZE).unwrap());
    // SAFETY: it came from there.
    unsafe { allocator.deallocate(block) };
    allocator.trim();
    found
}

fn helped() -> [Arc<dyn Allocator>; 2] {
    fail_after(&[Call::RunnableThreads], 0, i64::MAX); // a processor counts as idle
    [Pool::new(Options { huge: false, fault_ahead: true, ..Options::default() }), Pages::with_fault_ahead(false, true)]
}

/// Whether a walk by a thread of `node` is met ahead, and all pages are there.
fn is_met_on(allocator: &dyn Allocator, node: usize) -> bool {
    // The helper starts here, with every processor; it would have that of the thread below, and no other.
    let started = Held::new(allocator, SIZE);
    let (populated, nodes) = on(node, || walked(allocator));
    drop(started);
    allocator.trim(); // or the next block is not fresh
    let elsewhere = nodes.iter().filter(|&&found| found != node as i32).count();
    assert_eq!(elsewhere, 0, "of {} pages of node {node}", nodes.len());
    populated > 0
}

/// Also where the helper runs on a processor of another node, as in a machine with one for each.
pub fn on_the_programs_node() {
    for allocator in helped() {
        for &node in homes().iter().cycle().take(2 * homes().len()) {
            assert!((0..3).any(|_| is_met_on(&*allocator, node)), "on node {node}");
        }
    }
}

/// A thread whose policy names nodes has its pages from those, and no help.
pub fn under_a_policy() {
    let (home, other) = (homes()[0], homes()[1]);
    for allocator in helped() {
        let (populated, nodes) = on(home, || {
            os::prefer_node(other).unwrap();
            walked(&*allocator)
        });
        assert_eq!(populated, 0);
        assert!(nodes.iter().all(|&found| found == other as i32));
    }
}
