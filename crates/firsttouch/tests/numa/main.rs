//! Placement on real nodes, page by page. It needs several nodes: `make test-numa` boots machines that have them, in
//! which this program is the first and only process. On a machine with one node the tests that need more are skipped.

#![allow(unsafe_code)] // Safety: each block says what it rests on.

#[path = "../common/mod.rs"]
mod common;
mod guest;
mod moved;
mod outside;
mod own_machine;
mod placed;
mod pools;
mod view;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A test, and how many nodes with memory it needs.
type Test = (&'static str, usize, fn());

const TESTS: &[Test] = &[
    ("bind, preferred, transparent huge pages: every node in turn", 2, placed::on_each_node),
    ("interleave: page by page", 2, placed::interleave),
    ("local: where the thread runs that touches", 2, placed::local),
    ("explicit huge pages of one node", 2, placed::explicit),
    ("explicit huge pages that a node lacks", 2, placed::explicit_lacking),
    ("populate by several threads", 2, placed::populated),
    ("a node that is full is an error", 2, placed::more_than_a_node_has),
    ("migrate to every node", 2, moved::to_every_node),
    ("migrate: interleave", 2, moved::interleave),
    ("migrate: huge pages", 2, moved::huge),
    ("migrate: memory of others", 2, moved::others_memory),
    ("residency: the node of every page", 1, moved::on_every_node),
    ("a pool on a node", 2, placed::pool_on_a_node),
    ("pools: blocks that threads hand each other", 2, pools::handed_over),
    ("pools: processors without memory", 1, pools::without_memory),
    ("a node without memory", 1, outside::without_memory),
    ("a policy from outside", 2, outside::numactl),
    ("a cpuset", 2, outside::cpuset),
    ("a container that refuses mbind", 1, outside::refused),
    ("huge pages reserved at boot and later", 2, own_machine::huge_pages_from_the_pool),
    ("pages that are swapped out", 2, own_machine::swapped),
];

fn main() {
    let guest = guest::boot();
    let nodes = view::nodes().len();
    println!("nodes with memory: {}", view::nodes());
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    // The names that are given, in a guest by the kernel's command line; else all.
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| named.is_empty() || named.iter().any(|word| name.contains(word.as_str()));
    for (name, needs, test) in TESTS.iter().filter(|(name, ..)| wanted(name)) {
        if nodes < *needs || (!guest && !outside::may_run_here(name)) {
            println!("test {name} ... skipped: it needs {needs} nodes with memory, in a machine of its own");
            skipped += 1;
        } else if catch_unwind(AssertUnwindSafe(test)).is_ok() {
            println!("test {name} ... ok");
            passed += 1;
        } else {
            println!("test {name} ... FAILED");
            failed += 1;
        }
    }
    println!("numa: {passed} passed, {failed} failed, {skipped} skipped");
    if guest {
        guest::power_off();
    }
    std::process::exit(i32::from(failed > 0));
}
