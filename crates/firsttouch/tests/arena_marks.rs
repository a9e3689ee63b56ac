//! Marks and scopes: rewinding in order, even by panics.

#![allow(unsafe_code)] // Safety: marks are rewound to in their order, and blocks are not used after.

use firsttouch::adaptors::Tracked;
use firsttouch::arena::{Arena, ArenaError, ArenaOptions, MarkError, Upstream};
use firsttouch::sources::Malloc;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

fn arenas(storage: &mut [MaybeUninit<u8>]) -> [Arena<'_>; 3] {
    let tight = ArenaOptions { first_chunk: 256, max_chunk: 1024, keep: 0 };
    [Arena::new(), Arena::with(Upstream::System, tight).unwrap(), Arena::over(storage)]
}

#[test]
fn a_rewind_goes_where_the_mark_was() {
    for mut arena in arenas(&mut [MaybeUninit::uninit(); 100_000]) {
        arena.alloc_slice::<u8>(100).unwrap();
        let used = arena.used();
        for size in [1, 100, 1000, 50_000] {
            let (outer, inner) = (arena.mark(), arena.mark());
            arena.alloc_slice::<u8>(size).unwrap();
            assert!(arena.used() >= used + size);
            arena.rewind(inner).unwrap();
            assert_eq!(arena.used(), used);
            arena.alloc_slice::<u8>(size).unwrap();
            arena.rewind(outer).unwrap();
            assert_eq!(arena.used(), used);
        }
    }
}

#[test]
fn marks_that_were_passed_over_mean_nothing() {
    for mut arena in arenas(&mut [MaybeUninit::uninit(); 100_000]) {
        let first = arena.mark();
        arena.alloc(1u64).unwrap();
        let second = arena.mark();
        let third = arena.mark();
        arena.alloc(2u64).unwrap();
        arena.rewind(second).unwrap();
        // At the same place, and with as many before it: yet another one.
        let (other, last) = (arena.mark(), arena.mark());
        arena.alloc(3u64).unwrap();
        let used = arena.used();
        assert_eq!(arena.rewind(third), Err(MarkError::WrongOrder));
        assert_eq!(arena.used(), used, "nothing happens");
        arena.rewind(last).unwrap();
        arena.rewind(first).unwrap();
        assert_eq!(arena.rewind(other), Err(MarkError::WrongOrder));
        assert_eq!(arena.used(), 0);
    }
}

/// Many programs of marks and rewinds against a list of those that mean something.
#[test]
fn marks_against_a_model() {
    let mut random = 1u64;
    let mut next = move |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for _ in 0..200 {
        let mut arena = Arena::new();
        let (mut living, mut stale) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            match next(10) {
                0..5 => {
                    let mark = arena.mark();
                    living.push((mark, arena.used()));
                    arena.alloc_slice::<u8>(1 + next(100)).unwrap();
                }
                5..8 if !living.is_empty() => {
                    let mut gone = living.split_off(living.len() - 1 - next(living.len()).min(next(4)));
                    let (mark, used) = gone.remove(0);
                    stale.extend(gone);
                    assert_eq!((arena.rewind(mark), arena.used()), (Ok(()), used));
                }
                8 if !stale.is_empty() => {
                    let (mark, _) = stale.swap_remove(next(stale.len()));
                    let used = arena.used();
                    assert_eq!((arena.rewind(mark), arena.used()), (Err(MarkError::WrongOrder), used));
                }
                9 if next(20) == 0 => {
                    arena.reset();
                    stale.append(&mut living);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn marks_know_their_arena() {
    let (one, mut other) = (Arena::new(), Arena::new());
    let (first, _) = (one.mark(), other.mark());
    assert_eq!(other.rewind(first), Err(MarkError::OtherArena));
    assert_eq!(Arena::new().rewind(one.mark()), Err(MarkError::OtherArena));
    assert!(MarkError::OtherArena.to_string().contains("another arena"));
}

#[test]
fn a_reset_forgets_marks() {
    for mut arena in arenas(&mut [MaybeUninit::uninit(); 1000]) {
        let old = arena.mark();
        arena.reset();
        let new = arena.mark();
        assert_eq!(arena.rewind(old), Err(MarkError::WrongOrder));
        arena.rewind(new).unwrap();
    }
}

#[test]
fn scopes_nest_and_give_back() {
    for mut arena in arenas(&mut [MaybeUninit::uninit(); 100_000]) {
        let mark = arena.mark();
        arena.alloc(0u8).unwrap();
        let used = arena.used();
        let sum = arena.scope(|a| {
            let kept = a.alloc_slice::<u64>(20)?;
            for turn in 0..100 {
                kept[turn % 20] += a.scope(|b| {
                    let b1 = b.alloc_slice_with(turn, |i| i as u64)?;
                    let inner = b.scope(|c| Ok::<_, ArenaError>(c.alloc_slice_copy(b1)?.iter().sum::<u64>()))?;
                    b.alloc_slice::<u8>(turn)?.fill(0xFF);
                    assert_eq!(inner, b1.iter().sum());
                    Ok::<_, ArenaError>(inner)
                })?;
            }
            Ok::<_, ArenaError>(kept.iter().sum::<u64>())
        });
        assert_eq!(sum, Ok((0..100).map(|n| n * (n + 1) / 2 - n).sum::<u64>()));
        assert_eq!(arena.used(), used);
        arena.rewind(mark).unwrap();
    }
}

/// A panic goes back too, and the outer scope's memory is untouched by what comes after.
#[test]
fn a_panic_ends_its_scope() {
    for mut arena in arenas(&mut [MaybeUninit::uninit(); 100_000]) {
        arena.scope(|outer| {
            let kept = outer.alloc_slice_with(50, |i| i).unwrap();
            for size in [10, 2000, 20_000] {
                let caught = catch_unwind(AssertUnwindSafe(|| {
                    outer.scope(|inner| {
                        inner.alloc_slice::<u8>(size).unwrap().fill(1);
                        inner.alloc_slice_with(10, |i| assert!(i < 5)).unwrap();
                    });
                }));
                assert!(caught.is_err());
                outer.scope(|inner| inner.alloc_slice::<u8>(size).unwrap().fill(7));
                assert!(kept.iter().enumerate().all(|(i, &value)| i == value));
            }
        });
        assert_eq!(arena.used(), 0);
    }
}

/// Positions at the begin of an arena, when what they stood in is given back and other chunks come.
#[test]
fn nested_at_the_begin() {
    let tracked = Tracked::new(Arc::new(Malloc), None);
    let mut arena = Arena::with(tracked.clone(), ArenaOptions { first_chunk: 256, max_chunk: 4096, keep: 0 }).unwrap();
    for size in [10, 300, 3000, 30_000] {
        let outer = arena.mark();
        let inner = arena.mark();
        arena.alloc_slice::<u8>(size).unwrap();
        arena.alloc_slice::<u8>(size).unwrap();
        arena.rewind(inner).unwrap();
        arena.alloc_slice::<u8>(100).unwrap().fill(1);
        arena.rewind(outer).unwrap();
        arena.scope(|a| {
            a.scope(|b| (0..3).for_each(|_| b.alloc_slice::<u8>(size).unwrap().fill(2)));
            let kept = a.alloc_slice::<u8>(200).unwrap();
            kept.fill(3);
            a.scope(|b| (0..9).for_each(|_| b.alloc_slice::<u8>(size).unwrap().fill(4)));
            assert!(kept.iter().all(|&byte| byte == 3));
        });
        assert_eq!(arena.used(), 0);
        arena.alloc_slice::<u8>(200).unwrap().fill(5);
        arena.reset();
    }
    drop(arena);
    assert_eq!(tracked.tally().live_bytes, 0);
}

/// A mark at the begin of the first chunk keeps that chunk where it is.
#[test]
fn marks_keep_the_first_chunk() {
    let mut arena =
        Arena::with(Upstream::System, ArenaOptions { first_chunk: 256, ..ArenaOptions::default() }).unwrap();
    arena.alloc(1u8).unwrap();
    arena.reset();
    let (outer, inner) = (arena.mark(), arena.mark());
    for _ in 0..4 {
        arena.alloc_slice::<u8>(200).unwrap();
    }
    arena.rewind(inner).unwrap();
    arena.alloc_slice::<u8>(100).unwrap().fill(1);
    arena.rewind(outer).unwrap();
    assert_eq!(arena.used(), 0);
    arena.alloc_slice::<u8>(100).unwrap().fill(1);
    assert_eq!(arena.used(), 100);
}

#[test]
fn an_arena_is_a_scratch() {
    use firsttouch::arena::Scratch;
    let scratch: Box<dyn Scratch> = Box::new(Arena::fixed(Upstream::System, 4096).unwrap());
    let outer = scratch.mark();
    for align in [1, 8, 64, 512] {
        let mark = scratch.mark();
        let block = scratch.allocate(100, align).unwrap();
        assert!(block.as_ptr().addr().is_multiple_of(align));
        // SAFETY: marks are taken in their order, and nobody uses the block.
        unsafe { scratch.rewind(mark) };
    }
    assert_ne!(scratch.allocate(0, 1), scratch.allocate(0, 1), "zero bytes are one");
    assert!(scratch.allocate(10, 3).is_err() && scratch.allocate(10, 1 << 31).is_err());
    assert!(scratch.allocate(5000, 1).is_err());
    // SAFETY: as above.
    unsafe { scratch.rewind(outer) };
    scratch.allocate(4096, 1).unwrap();
}
