//! An outer bound on the process's memory: idle memory is purged before it is reached. Alone in its process.

mod common;

use common::held::Held;
use common::process::{resident, within};
use firsttouch::Allocator;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::heap::purger;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);
const MIB: usize = 1 << 20;

fn idle_after_use(pool: &dyn Allocator, bytes: usize) -> usize {
    drop((0..bytes / MIB).map(|seed| Held::filled(pool, MIB, seed as u64)).collect::<Vec<_>>());
    pool.stats().idle
}

#[test]
fn idle_memory_goes_near_a_bound() {
    let pool = Pool::new(Options { decay: None, max_idle: Some(usize::MAX), ..Options::default() });

    // Below the bound nothing happens.
    purger::set_bound(Some(resident() + 1024 * MIB));
    assert!(idle_after_use(&*pool, 100 * MIB) >= 100 * MIB);
    std::thread::sleep(Duration::from_millis(400));
    assert!(pool.stats().idle >= 100 * MIB);

    // The background purger sees the bound.
    purger::set_bound(Some(resident().saturating_sub(50 * MIB)));
    within(PATIENCE, "idle memory is gone", || pool.stats().idle < 60 * MIB);
    within(PATIENCE, "and stays below what is worth a look", || pool.stats().idle <= 16 * MIB);

    // So does whoever takes fresh memory, at once: what is held never gets far beyond the bound.
    purger::set_bound(None);
    idle_after_use(&*pool, 100 * MIB);
    purger::set_bound(Some(resident() + 8 * MIB));
    let before = resident();
    let kept: Vec<_> = (0..3).map(|seed| Held::filled(&*pool, 30 * MIB, seed)).collect();
    assert!(resident() < before + 60 * MIB, "{} MiB more", (resident() - before) / MIB);
    drop(kept);
    purger::set_bound(None);
}
