//! Pools without a placement: idle blocks stay on their node, and recycled blocks were touched there.

use super::common::nodes::{self, Kept, Machine, SIZES};
use super::outside::refuse;
use super::view::{in_a_thread, numbers, source, write};
use firsttouch::Allocator;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::heap::migrate;
use firsttouch::numa::policy::{Outer, Policy};
use firsttouch::numa::topology::Topology;
use firsttouch::os::{self, page_size};
use firsttouch::pages::migration::nodes_of;
use std::sync::LazyLock;

const FOREVER: Options = Options { max_idle: Some(usize::MAX), decay: None, huge: true };

/// The nodes that have memory and processors.
pub fn homes() -> &'static [usize] {
    static HOMES: LazyLock<Vec<usize>> = LazyLock::new(|| {
        let machine = Topology::read();
        numbers().into_iter().filter(|&node| !machine.node(node).unwrap().processors.is_empty()).collect()
    });
    &HOMES
}

/// This machine.
struct Real;

impl Machine for Real {
    fn on(&self, node: usize, body: &mut (dyn FnMut() + Send)) {
        on(homes()[node], body);
    }

    fn write(&self, address: usize, size: usize) {
        write(address / page_size() * page_size(), size + address % page_size(), 1);
    }

    fn nodes(&self, address: usize, size: usize) -> Vec<i32> {
        let first = address / page_size() * page_size();
        let found = nodes_of(first, size + address - first).unwrap();
        let home = |node: i32| homes().iter().position(|&home| home as i32 == node).map_or(-1, |at| at as i32);
        found.into_iter().map(home).collect()
    }
}

/// Runs `body` in a thread on a node's processors, with no policy for its memory.
pub fn on<T: Send>(node: usize, body: impl FnOnce() -> T + Send) -> T {
    in_a_thread(|| {
        let processors = Topology::read().node(node).unwrap().processors;
        os::run_on_processors(&processors).unwrap();
        assert_eq!(os::current_node(), node);
        body()
    })
}

fn each(test: impl Fn(&dyn Machine, &dyn Allocator)) {
    let pools = [Pool::new(Options::default()), Pool::new(Options { huge: false, ..FOREVER })];
    for pool in pools {
        test(&Real, &*pool);
        pool.trim();
    }
}

pub fn handed_over() {
    each(|machine, pool| nodes::handed_over(machine, pool, true));
}

pub fn written_elsewhere() {
    each(nodes::written_elsewhere);
}

pub fn spread() {
    each(|machine, pool| nodes::spread(machine, pool, true));
}

pub fn grown() {
    nodes::grown(&Real, &*Pool::new(FOREVER));
}

pub fn by_chance() {
    each(|machine, pool| nodes::by_chance(machine, pool, (1, 60, true)));
}

pub fn recycles() {
    each(nodes::recycles);
}

fn fresh(pool: &dyn Allocator) -> u64 {
    let stats = pool.stats();
    stats.first_touched_small_bytes + stats.first_touched_huge_bytes
}

/// A loop in this thread uses its blocks again, wherever their pages come from.
fn goes_round(pool: &dyn Allocator) {
    for size in SIZES {
        let turn = || {
            let block = Kept::new(pool, size, false);
            write(block.address, size, 1);
        };
        turn();
        turn();
        let before = fresh(pool);
        (0..5).for_each(|_| turn());
        assert_eq!(fresh(pool), before, "{size} bytes");
    }
}

fn pooled(test: impl Fn(&dyn Allocator)) {
    test(&*Pool::new(FOREVER));
}

/// Somebody else decided where memory comes from: as `numactl --interleave` and `--membind` do.
pub fn other_policies() {
    let others = [(libc::MPOL_INTERLEAVE, numbers()), (libc::MPOL_BIND, vec![homes()[1]])];
    for (mode, nodes) in others {
        pooled(|pool| {
            on(homes()[0], || {
                let mask = [nodes.iter().fold(0u64, |set, node| set | 1 << node)];
                // SAFETY: the kernel reads 64 bits.
                assert_eq!(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask.as_ptr(), 65) }, 0);
                goes_round(pool);
            });
        });
    }
}

/// A cpuset that leaves the local node out while the pool is in use.
pub fn cpuset() {
    pooled(|pool| {
        on(homes()[0], || goes_round(pool));
        super::outside::in_a_cpuset(homes()[1], || on(homes()[0], || goes_round(pool)));
    });
}

/// The local node has no memory left.
pub fn full() {
    let home = homes()[0];
    pooled(|pool| {
        let (free, kept) = os::free_memory_of(home).unwrap();
        let bound = source(&home.to_string());
        let ballast = super::view::Held::new(&*bound, free.saturating_sub(kept)).touched();
        on(home, || goes_round(pool));
        drop(ballast);
    });
}

/// A container in which nobody may ask where pages are.
pub fn untold() {
    pooled(|pool| {
        on(homes()[0], || {
            refuse(&[libc::SYS_move_pages]);
            goes_round(pool);
        });
    });
}

/// Processors whose node has no memory.
pub fn without_memory() {
    let machine = Topology::read();
    for node in machine.online().without(&machine.with_memory()).iter() {
        if machine.node(node).unwrap().processors.is_empty() {
            continue;
        }
        pooled(|pool| {
            on(node, || goes_round(pool));
            on(homes()[0], || goes_round(pool));
            on(node, || goes_round(pool));
        });
    }
}

/// What `migrate` moved is looked at again.
pub fn migrated() {
    let (a, b) = (homes()[0], homes()[1]);
    let pool = Pool::new(FOREVER);
    for size in SIZES {
        on(a, || {
            for _ in 0..3 {
                let block = Kept::new(&*pool, size, false);
                write(block.address, size, 1);
                let found = nodes_of(block.address, size).unwrap();
                assert!(found.iter().all(|&node| node == a as i32), "{size} bytes on node {a}: {found:?}");
                let there = Outer::now(numbers().into_iter().collect());
                let orders = Policy::parse(&b.to_string()).unwrap().within(&there).unwrap();
                migrate((block.address, size), &orders, &mut |_| true).unwrap();
            }
        });
    }
}

/// A child is given what is at its local node, though its parent's pages were copied wherever somebody wrote first.
pub fn forked() {
    let pool: &dyn Allocator = &*Pool::new(FOREVER);
    let make = |node: usize, size: usize| {
        let block = on(homes()[node], || {
            let block = Kept::new(pool, size, false);
            write(block.address, size, 1);
            block
        });
        let found = Real.nodes(block.address, size);
        assert!(found.iter().all(|&its| its == node as i32), "{size} bytes on node {node}: {found:?}");
        block
    };
    for size in SIZES {
        // Proven: used twice.
        drop(make(0, size));
        let block = make(0, size);
        // SAFETY: the child uses what is made for forks, and leaves without running anybody's destructors.
        let child = unsafe { libc::fork() };
        let both = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            on(homes()[1], || write(block.address, size, 2)); // copies, in whichever process is first
            on(homes()[1], || drop(block));
            drop((make(0, size), make(1, size), make(0, size)));
        }));
        if child == 0 {
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(both.is_err())) }
        }
        let mut status = 0;
        // SAFETY: the child is ours.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert!(status == 0 && both.is_ok(), "{size} bytes: {status} {both:?}");
    }
}
