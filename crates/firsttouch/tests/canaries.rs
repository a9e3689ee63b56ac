//! Overruns too small to reach the guard are found by the canaries, at their exact address.

mod common;

use common::held::Held;
use common::wild::{guard_behind, write};
use firsttouch::Allocator;
use firsttouch::adaptors::{Guarded, GuardedOptions, Options, Overrun, Pool, Side};
use firsttouch::sources::{Malloc, Pages};
use std::sync::Arc;

const HUGE: usize = 2 << 20;

fn upstreams() -> [Arc<dyn Allocator>; 4] {
    [Pages::new(false), Pages::new(true), Pool::new(Options::default()), Arc::new(Malloc)]
}

fn guarded(upstream: Arc<dyn Allocator>, side: Side, keep: usize) -> Arc<Guarded> {
    Guarded::new(upstream, GuardedOptions { side, keep })
}

/// Small overruns that alignment leaves room for are found, once each.
#[test]
fn canaries_are_found() {
    for upstream in upstreams() {
        for side in [Side::After, Side::Before] {
            let guarded = guarded(upstream.clone(), side, 0);
            for size in [1, 63, 65, 1000, 5001, 100_001, 3 * HUGE + 1] {
                let block = Held::filled(&*guarded, size, 1);
                let (address, asked) = (block.address(), size);
                assert_eq!(guarded.check(), []);
                for at in [address + size, guard_behind(&block) - 1] {
                    write(at);
                    assert_eq!(guarded.check(), [Overrun { address, asked, at }]);
                    assert_eq!(guarded.check(), [], "it is told once");
                }
                write(address + size);
                block.give_back();
                assert_eq!(guarded.check(), [Overrun { address, asked, at: address + size }]);
                assert_eq!(guarded.check(), []);
            }
            assert_eq!(guarded.damaged(), 7);
        }
    }
}

#[test]
fn canaries_before_a_block_are_found() {
    let guarded = guarded(Pages::new(false), Side::After, 0);
    let block = Held::filled(&*guarded, 1000, 1);
    let at = block.address() - 1;
    write(at);
    write(at - 500);
    assert_eq!(guarded.check(), [Overrun { address: block.address(), asked: 1000, at }]);
}

#[test]
fn canaries_move_with_the_end() {
    for side in [Side::After, Side::Before] {
        let guarded = guarded(Pool::new(Options::default()), side, 0);
        let mut block = Held::filled(&*guarded, 1000, 1);
        for size in [970, 990, 1000, 961, 1010, 1024, 20, 3000, 100_000, 99_990] {
            block.resize(size).unwrap();
            assert_eq!(guarded.check(), [], "a block's own bytes are no canaries");
            if !size.is_multiple_of(64) {
                write(block.address() + size);
                let found = guarded.check();
                assert_eq!((found.len(), found[0].asked, found[0].at), (1, size, block.address() + size));
            }
        }
    }
}
