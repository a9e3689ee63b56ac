//! Pools on a machine that pretends to have two nodes: who wrote a page first is noted beside it. (`make test-numa` does
//! the same on real ones.)

mod common;

use common::nodes::{self, Machine};
use firsttouch::Allocator;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::heap::migrate;
use firsttouch::numa::policy::{Outer, Policy};
use firsttouch::numa::topology::Topology;
use firsttouch::os::{Pretence, huge_page_size, nodes_of, page_size, pretend, pretend_on};
use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex};

/// The node of each page that was written first since it was there.
static NODES: LazyLock<Mutex<HashMap<usize, usize>>> = LazyLock::new(Mutex::default);
const FOREVER: Options = Options { max_idle: Some(usize::MAX), decay: None, huge: true };

thread_local! {
    static HERE: Cell<usize> = const { Cell::new(0) };
}

struct Pretended;

fn pages(address: usize, size: usize) -> Range<usize> {
    let page = page_size();
    address / page * page..(address + size).next_multiple_of(page)
}

/// Which pages are there. The zero page is not.
fn there(range: &Range<usize>) -> Vec<bool> {
    let addresses: Vec<usize> = range.clone().step_by(page_size()).collect();
    let mut nodes = vec![0; addresses.len()];
    nodes_of(&addresses, &mut nodes).unwrap();
    nodes.into_iter().map(|node| node >= 0).collect()
}

impl Machine for Pretended {
    fn on(&self, node: usize, body: &mut (dyn FnMut() + Send)) {
        HERE.set(node);
        pretend_on(Some(node));
        body();
    }

    fn write(&self, address: usize, size: usize) {
        // A huge page becomes real as a whole.
        let (written, huge) = (pages(address, size), huge_page_size().unwrap_or(1));
        let range = written.start / huge * huge..written.end.next_multiple_of(huge);
        let before = there(&range);
        (address..address + size).step_by(page_size()).for_each(common::wild::write);
        let after = there(&range);
        let mut nodes = NODES.lock().unwrap();
        for ((page, before), after) in range.step_by(page_size()).zip(before).zip(after) {
            // The kernel calls a page absent while it moves it.
            if !before && (after || written.contains(&page)) {
                nodes.insert(page, HERE.get());
            }
        }
    }

    fn nodes(&self, address: usize, size: usize) -> Vec<i32> {
        let nodes = NODES.lock().unwrap();
        pages(address, size).step_by(page_size()).map(|page| nodes.get(&page).map_or(-1, |&node| node as i32)).collect()
    }
}

fn two<T>(make: impl FnOnce() -> T) -> T {
    let node_of = |page| NODES.lock().unwrap().get(&page).copied().unwrap_or(0);
    pretend(Pretence { nodes: 2, node_of }, make)
}

/// The tests ask for no zeros: what a pool itself writes is not noted.
fn each(test: impl Fn(&dyn Machine, &dyn Allocator)) {
    let pools: [fn() -> Arc<dyn Allocator>; 2] =
        [|| Pool::new(Options::default()), || Pool::new(Options { huge: false, ..FOREVER })];
    pools.into_iter().for_each(|pool| test(&Pretended, &*two(pool)));
}

#[test]
fn what_was_handed_over_stays_local() {
    each(|machine, pool| nodes::handed_over(machine, pool, false));
}

#[test]
fn what_was_written_elsewhere_becomes_local() {
    each(nodes::written_elsewhere);
}

#[test]
fn what_was_spread_becomes_local() {
    each(|machine, pool| nodes::spread(machine, pool, false));
}

#[test]
fn what_ends_elsewhere_becomes_local() {
    each(nodes::ends_elsewhere);
}

#[test]
fn what_grows_grows_locally() {
    nodes::grown(&Pretended, &*two(|| Pool::new(FOREVER)));
}

#[test]
fn what_was_moved_away_becomes_local() {
    let orders = Policy::parse("local").unwrap().within(&Outer::now(Topology::read().with_memory())).unwrap();
    let go = |address, size| {
        migrate((address, size), &orders, &mut |_| true).unwrap();
        let mut nodes = NODES.lock().unwrap();
        nodes.extend(pages(address, size).step_by(page_size()).map(|page| (page, 1)));
    };
    each(|machine, pool| nodes::moved(machine, pool, &go));
}

#[test]
fn random_programs() {
    for seed in 1..6 {
        each(|machine, pool| nodes::by_chance(machine, pool, (seed, 60, false)));
    }
}

#[test]
fn a_loop_on_one_node_takes_nothing_fresh() {
    each(nodes::recycles);
}
