//! Helpers: nodes, and the node of every page.

use super::common::held::Held;
use firsttouch::allocator::{Allocator, Request};
use firsttouch::numa::{Policy, Topology};
use firsttouch::os::{self, Nodes, Processors};
use firsttouch::pages::migration::nodes_of;
use firsttouch::pages::placement::Placement;
use firsttouch::sources::Pages;
use std::sync::Arc;

/// Bytes of the blocks: some megabytes, no multiple of anything but the page.
pub const SIZE: usize = (8 << 20) + 3 * 4096;

/// Nodes with memory.
pub fn nodes() -> Nodes {
    Topology::read().with_memory()
}

/// Their numbers.
pub fn numbers() -> Vec<usize> {
    nodes().iter().collect()
}

/// Those that have processors.
pub fn homes() -> Vec<usize> {
    let machine = Topology::read();
    numbers().into_iter().filter(|&node| !machine.node(node).unwrap().processors.is_empty()).collect()
}

pub fn policy(text: &str) -> Option<Policy> {
    Some(Policy::parse(text).unwrap())
}

pub fn source(text: &str) -> Arc<Pages> {
    Pages::placed(Placement { policy: policy(text), ..Placement::default() })
}

/// A block of which nothing is read or written.
pub fn untouched(allocator: &dyn Allocator, size: usize) -> Held<'_> {
    Held::untouched(allocator, Request::bytes(size)).unwrap()
}

/// A block of which each page is written.
pub fn touched(allocator: &dyn Allocator, size: usize) -> Held<'_> {
    let held = untouched(allocator, size);
    write(held.address(), held.usable(), 1);
    held
}

/// The node of each page of a block.
pub fn page_nodes(held: &Held<'_>) -> Vec<i32> {
    nodes_of(held.address(), held.usable()).unwrap()
}

/// How many explicit huge pages of a size are free, on one node or on all.
pub fn free_huge_pages(page: usize, node: Option<usize>) -> Option<usize> {
    let folder = node.map_or("/sys/kernel/mm".to_owned(), |node| format!("/sys/devices/system/node/node{node}"));
    let file = format!("{folder}/hugepages/hugepages-{}kB/free_hugepages", page >> 10);
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Writes one byte into each page.
pub fn write(address: usize, size: usize, value: u8) {
    for at in (0..size).step_by(os::page_size()) {
        // SAFETY: the block is the caller's.
        unsafe { std::ptr::with_exposed_provenance_mut::<u8>(address + at).write_volatile(value) }
    }
}

/// All pages of a block are on `node`.
#[track_caller]
pub fn all_on(held: &Held<'_>, node: usize) {
    let pages = page_nodes(held);
    let there = pages.iter().filter(|&&page| page == node as i32).count();
    assert_eq!(there, pages.len(), "pages on node {node}: {pages:?}");
}

/// Lets this thread run on some processors alone.
fn run_on(processors: &Processors) {
    // SAFETY: the kernel reads the set.
    let done = unsafe { libc::sched_setaffinity(0, size_of_val(&processors.0), processors.0.as_ptr().cast()) };
    assert_eq!(done, 0);
}

/// Runs `body` in a thread of its own, whose policy and processors end with it.
pub fn in_a_thread<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(body).join()).unwrap()
}

/// The same on the processors of a node, if it has any.
pub fn on_node<T: Send>(node: usize, body: impl FnOnce() -> T + Send) -> T {
    let processors = Topology::read().node(node).unwrap().processors;
    in_a_thread(|| {
        if !processors.is_empty() {
            run_on(&processors);
            assert_eq!(os::current_node(), node);
        }
        body()
    })
}
