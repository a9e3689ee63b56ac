//! Arenas: requests are served, changes of chunks are cheap, and failures are errors that name the reason.

mod common;

use common::alone::alone;
use common::pattern;
use firsttouch::adaptors::{Limited, Options as PoolOptions, Pool, Tracked};
use firsttouch::allocator::Limit;
use firsttouch::arena::{Arena, ArenaError, ArenaOptions, ArenaOptionsError, Scope, Upstream};
use firsttouch::layout::{LayoutError, MAX_SIZE};
use firsttouch::sources::{Malloc, Pages};
use firsttouch::{AllocError, Allocator, failure};
use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::sync::Arc;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn small(first_chunk: usize, max_chunk: usize) -> ArenaOptions {
    ArenaOptions { first_chunk, max_chunk, ..ArenaOptions::default() }
}

fn limit(error: ArenaError) -> Limit {
    match error {
        ArenaError::Memory(AllocError { limit, .. }) => limit,
        ArenaError::Layout(error) => panic!("{error}"),
    }
}

#[test]
fn every_way_to_allocate() {
    let mut arena = Arena::new();
    *arena.alloc(1u8).unwrap() = 2;
    arena.scope(|s| {
        let value = s.alloc(String::from("a value that is moved")).unwrap();
        assert_eq!(value, "a value that is moved");
        assert_eq!(s.alloc_slice::<f64>(3).unwrap(), [0.0; 3]);
        assert_eq!(s.alloc_slice::<[u16; 2]>(2).unwrap(), [[0; 2]; 2]);
        assert_eq!(s.alloc_slice_copy(&[1, 2, 3]).unwrap(), [1, 2, 3]);
        assert_eq!(s.alloc_slice_with(4, |i| i * i).unwrap(), [0, 1, 4, 9]);
        for place in s.alloc_uninit::<u32>(5).unwrap() {
            place.write(7);
        }
        assert_eq!(s.alloc_aligned::<u8>(5, 4096).unwrap().as_ptr().addr() % 4096, 0);
        let raw = s.alloc_layout(Layout::from_size_align(10, 128).unwrap()).unwrap();
        assert_eq!(raw.as_ptr().addr() % 128, 0);
        std::mem::drop(std::mem::take(value)); // nobody else drops it
    });
}

/// Zeros are zeros where something else was before, and in blocks of their own.
#[test]
fn zeros_are_zeros() {
    let upstreams: [Upstream; 3] = [Upstream::System, Pool::new(PoolOptions::default()).into(), (&Malloc).into()];
    for upstream in upstreams {
        let mut arena = Arena::with(upstream, small(KIB, 64 * KIB)).unwrap();
        for _ in 0..3 {
            arena.scope(|s| {
                for size in [1, 10, 500, 5000, 30_000, 100_000, MIB] {
                    let bytes = s.alloc_slice::<u8>(size).unwrap();
                    pattern::check_zero(bytes);
                    pattern::fill(bytes, size as u64);
                }
            });
        }
    }
}

#[test]
fn every_alignment() {
    let arena = Arena::new();
    for shift in 0..24 {
        for size in [0, 1, 3, 64, 1000] {
            arena.alloc(1u8).unwrap();
            let block = arena.alloc_aligned::<u8>(size, 1 << shift).unwrap();
            assert!(block.as_ptr().addr().is_multiple_of(1 << shift), "{size} at {shift}");
            block.fill(MaybeUninit::new(1));
        }
    }
    for align in [0, 3, 12, (1 << 30) + 1, 1 << 31] {
        assert_eq!(arena.alloc_aligned::<u8>(1, align).unwrap_err(), ArenaError::Layout(LayoutError::Align(align)));
    }
    assert_eq!(arena.alloc_aligned::<u64>(1, 1).unwrap().as_ptr().addr() % 8, 0);
}

#[test]
fn nothing_costs_nothing() {
    let mut storage = [MaybeUninit::uninit(); 10];
    let (fresh, full) = (Arena::new(), Arena::over(&mut storage));
    full.alloc_slice::<u8>(10).unwrap();
    for arena in [&fresh, &full] {
        assert_eq!(arena.alloc_slice::<f64>(0).unwrap(), []);
        assert_eq!(arena.alloc_uninit::<u8>(0).unwrap().len(), 0);
        assert_eq!(arena.alloc_aligned::<u8>(0, 1 << 20).unwrap().as_ptr().addr() % (1 << 20), 0);
        assert_eq!(arena.alloc_slice_with(1000, |_| ()).unwrap().len(), 1000);
        arena.alloc(()).unwrap();
    }
    assert_eq!((fresh.capacity(), fresh.used(), full.used()), (0, 0, 10));
}

#[test]
fn sizes_never_wrap() {
    let mut arena = Arena::new();
    let kept = arena.alloc(7).unwrap();
    for n in [usize::MAX, usize::MAX / 8 + 1, 1 << 61, MAX_SIZE / 8 + 1] {
        let error = arena.alloc_slice::<u64>(n).unwrap_err();
        assert_eq!(error, ArenaError::Layout(LayoutError::Overflow { shape: vec![n], item_size: 8 }));
        assert!(error.to_string().contains(&n.to_string()), "{error}");
    }
    assert_eq!(limit(arena.alloc_uninit::<u8>(MAX_SIZE).unwrap_err()), Limit::Size);
    assert_eq!(limit(arena.alloc_uninit::<u8>(MAX_SIZE / 2).unwrap_err()), Limit::Upstream);
    assert!(arena.alloc_aligned::<u8>(MAX_SIZE - 5, 16).is_err());
    assert_eq!(*kept, 7);
    arena.scope(|s| assert!(s.alloc_slice::<u64>(1 << 61).is_err()));
}

#[test]
fn bad_options_are_named() {
    let with = |options| Arena::with(Upstream::System, options).err();
    assert_eq!(with(small(0, MIB)), Some(ArenaOptionsError::ChunkSize(0)));
    assert_eq!(with(small(1, usize::MAX)), Some(ArenaOptionsError::ChunkSize(usize::MAX)));
    let error = with(small(MIB, KIB)).unwrap();
    assert_eq!(error.to_string(), "first_chunk (1048576 bytes) is larger than max_chunk (1024 bytes)");
    assert_eq!(with(small(1, 1)), None);
}

/// Chunks double up to a bound, large requests have blocks of their own, and all of it is given back.
#[test]
fn growth_does_not_run_away() {
    let tracked = Tracked::new(Arc::new(Malloc), None);
    let mut arena = Arena::with(tracked.clone(), small(KIB, 64 * KIB)).unwrap();
    arena.alloc(1u8).unwrap();
    assert_eq!(arena.capacity(), KIB);
    arena.alloc_uninit::<u8>(MIB).unwrap();
    assert_eq!(arena.capacity(), KIB + MIB, "a block of its own");
    arena.alloc_uninit::<u8>(KIB).unwrap();
    assert_eq!(arena.capacity(), KIB + MIB + 2 * KIB, "and no doubling of it");
    for _ in 0..1000 {
        arena.alloc_uninit::<u8>(KIB).unwrap();
        assert!(arena.capacity() - MIB <= 2 * (arena.used() - MIB) + 64 * KIB, "{}", arena.capacity());
    }
    assert!(arena.capacity() - arena.used() <= 128 * KIB, "the bound holds");
    assert_eq!(tracked.tally().live_bytes, arena.capacity());
    arena.reset();
    assert!(arena.capacity() <= ArenaOptions::default().keep && arena.used() == 0);
    drop(arena);
    assert_eq!(tracked.tally().live_bytes, 0);
}

/// After its first rounds an arena asks its upstream no more, whatever the sizes.
#[test]
fn rounds_settle() {
    for (sizes, max_chunk) in [
        (vec![100; 1000], MIB),
        (vec![MIB / 4, 10, MIB, 3 * MIB], MIB),
        (vec![MIB / 4, 10, MIB, 3 * MIB], 16 * MIB),
        ((1..200).map(|n| n * 97).collect(), 64 * KIB),
    ] {
        let tracked = Tracked::new(Arc::new(Malloc), None);
        let mut arena = Arena::with(tracked.clone(), small(KIB, max_chunk)).unwrap();
        let mut round = |marked: bool| {
            let mark = arena.mark();
            if marked {
                sizes.iter().for_each(|&size| assert_eq!(arena.alloc_uninit::<u8>(size).unwrap().len(), size));
                arena.rewind(mark).unwrap();
            } else {
                arena.rewind(mark).unwrap();
                arena.scope(|s| {
                    sizes.iter().for_each(|&size| assert_eq!(s.alloc_uninit::<u8>(size).unwrap().len(), size))
                });
            }
            assert_eq!(arena.used(), 0);
            tracked.tally().allocations
        };
        let warm = [round(false), round(true), round(false)][2];
        for turn in 0..20 {
            assert_eq!(round(turn % 2 == 0), warm, "{sizes:?}");
        }
    }
}

#[test]
fn a_reset_keeps_as_much_as_it_may() {
    for keep in [0, 10 * KIB, MIB] {
        let mut arena = Arena::with(&Malloc, ArenaOptions { keep, ..small(KIB, 8 * KIB) }).unwrap();
        for _ in 0..3 {
            for _ in 0..100 {
                arena.alloc_slice::<u8>(KIB).unwrap();
            }
            arena.alloc_slice::<u8>(50 * KIB).unwrap();
            arena.reset();
            assert!(arena.capacity() <= keep && arena.used() == 0, "{} of {keep}", arena.capacity());
        }
        arena.trim();
        assert_eq!(arena.capacity(), 0);
    }
}

/// A loop that passes the end of a chunk in every turn goes there once.
#[test]
fn the_edge_of_a_chunk() {
    let tracked = Tracked::new(Arc::new(Malloc), None);
    let mut arena = Arena::with(tracked.clone(), small(4 * KIB, 4 * KIB)).unwrap();
    arena.scope(|s| {
        s.alloc_uninit::<u8>(2000).unwrap();
        s.alloc_uninit::<u8>(2000).unwrap();
        let little = |s: &mut Scope| s.scope(|s| s.alloc_uninit::<u8>(50).unwrap().as_ptr().addr());
        let before = little(s);
        assert_eq!(little(s), before);
        let mut addresses = Vec::new();
        for _ in 0..100 {
            addresses.push(s.scope(|s| s.alloc_uninit::<u8>(200).unwrap().as_ptr().addr()));
        }
        addresses.dedup();
        assert_eq!(addresses.len(), 1);
        assert_ne!(little(s), before, "nobody goes back for the little that is left there");
    });
    assert_eq!(tracked.tally().allocations, 2);
}

#[test]
fn a_fixed_arena_says_what_is_used() {
    let mut arena = Arena::fixed(Upstream::System, 1000).unwrap();
    arena.alloc_slice::<u8>(900).unwrap();
    let error = arena.alloc_slice::<u8>(200).unwrap_err();
    assert_eq!(limit(error.clone()), Limit::Arena { capacity: 1000, used: 900 });
    assert_eq!(
        error.to_string(),
        "cannot allocate 200 bytes: the arena is fixed at 1000 bytes, of which 900 bytes are in use (100 bytes are left)"
    );
    arena.scope(|s| s.alloc_slice::<u8>(100).unwrap().fill(1));
    assert_eq!((arena.used(), arena.capacity()), (900, 1000));
    arena.trim();
    arena.reset();
    arena.alloc_slice::<u8>(1000).unwrap();
    assert!(Arena::fixed(Upstream::System, MAX_SIZE).is_err());
}

#[test]
fn memory_of_somebody_else() {
    let mut storage = vec![MaybeUninit::new(1u8); 4096];
    let range = storage.as_ptr_range();
    {
        let mut arena = Arena::over(&mut storage[1..]);
        for _ in 0..3 {
            let words = arena.alloc_slice::<u64>(500).unwrap();
            assert!(range.contains(&words.as_ptr().cast()) && words.as_ptr().is_aligned());
            assert!(arena.alloc_slice::<u64>(100).is_err());
            arena.reset();
        }
    }
    // SAFETY is not needed to read it: the first byte was not the arena's, the rest is written.
    assert_eq!(storage.len(), 4096);
    let nothing = Arena::over(&mut []);
    assert!(nothing.alloc(1u8).is_err() && nothing.alloc(()).is_ok());
}

/// What an upstream refuses is asked for in smaller pieces, then without what is idle; then the error is the upstream's.
#[test]
fn an_upstream_with_little() {
    let limited = Limited::new(Arc::new(Malloc), 100 * KIB);
    let mut arena = Arena::with(limited.clone(), small(KIB, MIB)).unwrap();
    let mut served = 0;
    let error = loop {
        match arena.alloc_uninit::<u8>(KIB) {
            Ok(_) => served += KIB,
            Err(error) => break error,
        }
    };
    assert!(served >= 96 * KIB, "{served}");
    assert!(matches!(limit(error), Limit::Budget { allowed: 102_400, .. }));
    arena.scope(|s| assert!(s.alloc_uninit::<u8>(5 * KIB).is_err()));
    arena.reset();
    let mark = arena.mark();
    arena.alloc_uninit::<u8>(60 * KIB).unwrap();
    arena.rewind(mark).unwrap();
    arena.trim();
    assert_eq!((arena.capacity(), limited.used()), (0, 0));
    arena.alloc_uninit::<u8>(90 * KIB).unwrap();
    drop(arena);
    assert_eq!(limited.used(), 0);
    assert!(failure::last().is_some());
}

#[test]
fn any_upstream() {
    let pool: Arc<dyn Allocator> = Pool::new(PoolOptions::default());
    let pages = Pages::new(true);
    let upstreams: [Upstream; 4] = [pool.into(), pages.into(), (&Malloc).into(), (&Malloc as &dyn Allocator).into()];
    for upstream in upstreams {
        let mut arena = Arena::with(upstream.clone(), small(64 * KIB, 4 * MIB)).unwrap();
        arena.scope(|s| {
            let parts: Vec<_> = (0..100).map(|n| (n, s.alloc_slice::<u8>(n * 997).unwrap())).collect();
            let parts = parts.into_iter().map(|(n, part)| {
                pattern::fill(part, n as u64);
                (n, part)
            });
            parts.collect::<Vec<_>>().iter().for_each(|(n, part)| pattern::check(part, *n as u64));
        });
        Arena::fixed(upstream, 100).unwrap().alloc(1).unwrap();
    }
}

/// An arena may go to another thread, with what is allocated in a scope there.
#[test]
fn arenas_move() {
    let mut arena = Arena::new();
    arena.alloc_slice::<u8>(100).unwrap();
    let mut arena = std::thread::spawn(move || {
        arena.scope(|s| {
            let numbers = s.alloc_slice_with(1000, |i| i).unwrap();
            std::thread::scope(|threads| {
                let (left, right) = numbers.split_at_mut(500);
                threads.spawn(|| left.fill(1));
                threads.spawn(|| right.fill(2));
            });
            assert_eq!(numbers.iter().sum::<usize>(), 1500);
        });
        arena
    })
    .join()
    .unwrap();
    arena.reset();
}

#[test]
fn a_smaller_chunk_is_no_failure() {
    alone("a_smaller_chunk_is_no_failure", || {
        let arena = Arena::with(Limited::new(Arc::new(Malloc), 10 * KIB), small(4 * KIB, MIB)).unwrap();
        for _ in 0..8 {
            arena.alloc_slice::<u8>(KIB).unwrap();
        }
        assert_eq!(failure::last(), None);
        arena.alloc_slice::<u8>(3 * KIB).unwrap_err();
        assert!(failure::last().is_some());
    });
}
