//! Pools without a placement: idle blocks stay on their node.

use super::common::held::Held;
use super::view::{homes, on_node};
use firsttouch::Allocator;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::numa::Topology;
use firsttouch::pages::migration::nodes_of;

const MIB: usize = 1 << 20;
/// What a processor keeps, what joins its neighbours, and what shares huge pages.
const SIZES: [usize; 5] = [20_000, 200_000, 900_000, 2 * MIB + 70_000, 5 * MIB + 12_345];
const FOREVER: Options = Options { max_idle: Some(usize::MAX), decay: None, huge: true, arrays: true };

/// A block that is taken and written on a node lies there, whoever freed the memory.
fn filled(pool: &dyn Allocator, node: usize, size: usize) -> Held<'_> {
    let block = on_node(node, || Held::filled(pool, size, 7));
    let found = nodes_of(block.address(), size).unwrap();
    assert!(found.iter().all(|&its| its == node as i32), "{size} bytes on node {node}: {found:?}");
    block
}

/// One allocates and writes, the other gives back; then either is given new blocks.
pub fn handed_over() {
    let [a, b, ..] = homes()[..] else { panic!("fewer than two nodes") };
    for options in [Options::default(), Options { huge: false, ..FOREVER }] {
        let pool = Pool::new(options);
        for (one, other) in [(a, b), (b, a)] {
            for size in SIZES {
                let blocks = [(); 2].map(|()| filled(&*pool, one, size));
                on_node(other, || drop(blocks));
                let (here, there) = (filled(&*pool, one, size), filled(&*pool, other, size));
                on_node(one, || drop(there));
                on_node(other, || drop(here));
            }
        }
    }
}

/// Processors whose node has no memory recycle as well.
pub fn without_memory() {
    let machine = Topology::read();
    for node in machine.online().iter().filter(|&node| !machine.with_memory().contains(node)) {
        if machine.node(node).unwrap().processors.is_empty() {
            continue;
        }
        let pool = Pool::new(Options { huge: false, ..FOREVER }); // or it would exchange what comes back filled
        for size in SIZES {
            let turn = || on_node(node, || drop(Held::filled(&*pool, size, 7)));
            turn();
            let before = pool.taken_fresh();
            turn();
            assert_eq!(pool.taken_fresh(), before, "{size} bytes on node {node}");
        }
    }
}
