//! Arenas: requests are served, rewinds go where the mark was, changes of chunks are cheap, failures name the limit.

#![allow(unsafe_code)] // Safety: marks are rewound to in their order, and blocks are not used after.

use crate::common::alone::alone;
use crate::common::counted;
use crate::common::pattern::{self, Dice};
use firsttouch::Allocator as _;
use firsttouch::adaptors::{Limited, Options, Pool};
use firsttouch::allocator::Limit;
use firsttouch::layout::{LayoutError, MAX_SIZE};
use firsttouch::scratch::{Arena, Mark, Scratch};
use firsttouch::sources::{Guarded, GuardedOptions, Malloc};
use firsttouch::{AllocError, failure};
use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::slice::from_raw_parts_mut;
use std::sync::Arc;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Arenas of all kinds, and what their upstream sees of them.
fn arenas(storage: &mut [MaybeUninit<u8>]) -> ([Arena<'_>; 5], Arc<Limited>) {
    let tracked = counted();
    let (chunks, pool) = (|size| Arena::with(tracked.clone(), size), Pool::new(Options::default()));
    let checked = Arena::checked(tracked.clone());
    ([chunks(4 * KIB), chunks(256), Arena::with(pool, KIB), checked, Arena::over(storage)], tracked)
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
        assert_eq!(s.alloc_slice_with(4, |i| i * i).unwrap(), [0, 1, 4, 9]);
        for place in s.alloc_aligned::<u32>(5, 1).unwrap() {
            place.write(7);
        }
        assert_eq!(s.alloc_aligned::<u8>(5, 4096).unwrap().as_ptr().addr() % 4096, 0);
        std::mem::drop(std::mem::take(value)); // nobody else drops it
    });
}

#[test]
fn sizes_never_wrap() {
    let arena = Arena::new();
    let kept = arena.alloc(7).unwrap();
    for n in [usize::MAX, usize::MAX / 8 + 1, 1 << 61, MAX_SIZE / 8 + 1] {
        let error = arena.alloc_slice::<u64>(n).unwrap_err();
        assert_eq!(error, AllocError::new(n.saturating_mul(8), Limit::Layout(LayoutError::Overflow(n, 8))));
        assert!(error.to_string().contains(&n.to_string()), "{error}");
    }
    assert_eq!(arena.alloc_aligned::<u8>(MAX_SIZE, 1).unwrap_err().limit, Limit::Size);
    assert_eq!(arena.alloc_aligned::<u8>(MAX_SIZE / 2, 1).unwrap_err().limit, Limit::Upstream);
    assert!(arena.alloc_aligned::<u8>(MAX_SIZE - 15, 16).is_err());
    assert!(Arena::with(Malloc::new(), usize::MAX).alloc(1).is_ok(), "the smallest chunk that serves");
    assert_eq!(*kept, 7);
}

/// Chunks double up to a bound, and all of them go back.
#[test]
fn growth_does_not_run_away() {
    let tracked = counted();
    let mut arena = Arena::with(tracked.clone(), KIB);
    arena.alloc(1u8).unwrap();
    assert_eq!(arena.capacity(), KIB);
    arena.alloc_aligned::<u8>(MIB, 1).unwrap();
    assert_eq!(arena.capacity(), KIB + MIB, "no more than was asked for");
    for _ in 0..1000 {
        arena.alloc_aligned::<u8>(KIB, 1).unwrap();
        assert!(arena.capacity() - MIB <= 2 * (arena.used() - MIB) + 64 * KIB, "{}", arena.capacity());
    }
    assert_eq!(tracked.stats().in_use, arena.capacity());
    (0..5).for_each(|_| assert_eq!(arena.alloc_aligned::<u8>(30 * MIB, 1).unwrap().len(), 30 * MIB));
    arena.reset();
    assert!(arena.capacity() <= 64 * MIB && arena.used() == 0);
    for _ in 0..20 {
        arena.alloc_aligned::<u8>(KIB, 64).unwrap();
        arena.alloc(1).unwrap();
        assert!(arena.capacity() > KIB);
        arena.reset();
        arena.trim();
        assert_eq!((arena.capacity(), tracked.stats().in_use), (KIB, KIB), "chunks double not with the arena's age");
    }
    drop(arena);
    assert_eq!(tracked.stats().in_use, 0);
}

#[test]
fn a_fixed_arena_says_what_is_used() {
    let mut storage = vec![MaybeUninit::new(1u8); 1001];
    let range = storage.as_ptr_range();
    let mut arena = Arena::over(&mut storage[1..]);
    for _ in 0..3 {
        let words = arena.alloc_slice::<u64>(112).unwrap();
        assert!(range.contains(&words.as_ptr().cast()) && words.as_ptr().is_aligned());
        let used = arena.used();
        let error = arena.alloc_slice::<u8>(200).unwrap_err();
        assert_eq!(error.limit, Limit::Full { capacity: 1000, used, blocks: 0 });
        assert!(error.to_string().starts_with("cannot allocate 200 bytes: the fixed buffer has 1000 bytes, of which"));
        arena.scope(|s| s.alloc_slice::<u8>(100).unwrap().fill(1));
        assert_eq!((arena.used(), arena.capacity()), (used, 1000));
        arena.trim();
        arena.reset();
    }
    arena.alloc_slice::<u8>(1000).unwrap();
}

/// Where the upstream refuses a chunk, the smallest that serves is requested, then without what is idle; then the error is
/// the upstream's.
#[test]
fn an_upstream_with_little() {
    alone("arena::an_upstream_with_little", || {
        let limited = Limited::new(Malloc::new(), 100 * KIB);
        let mut arena = Arena::with(limited.clone(), KIB);
        let mut served = 0;
        let error = loop {
            match arena.alloc_aligned::<u8>(KIB, 1) {
                Ok(_) => served += KIB,
                Err(error) => break error,
            }
            assert_eq!(failure::last(), None, "a smaller chunk is no failure");
        };
        assert!(served >= 96 * KIB, "{served}");
        assert!(matches!(error.limit, Limit::Budget { allowed: 102_400, .. }));
        assert!(failure::last().is_some());
        arena.reset();
        arena.trim();
        arena.alloc_aligned::<u8>(90 * KIB, 1).unwrap();
        drop(arena);
        assert_eq!(limited.used(), 0);
    });
}

/// A panic goes back too, and the outer scope's memory is untouched by what comes after.
#[test]
fn a_panic_ends_its_scope() {
    let mut storage = [MaybeUninit::uninit(); 100_000];
    for mut arena in arenas(&mut storage).0 {
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

/// In a checked arena each block is the upstream's, and is gone with its scope: `guarded()` stops who uses it later.
#[test]
fn a_checked_arena_gives_every_block_back() {
    let tracked = Guarded::new(GuardedOptions::default());
    let mut arena = Arena::checked(tracked.clone());
    arena.scope(|outer| {
        let kept = outer.alloc_slice_with(100, |i| i).unwrap();
        outer.scope(|inner| {
            (0..10).for_each(|n| inner.alloc_slice::<u8>(n * 1000).unwrap().fill(1));
            assert_eq!(inner.alloc_aligned::<u8>(100, 8192).unwrap().as_ptr().addr() % 8192, 0);
            assert_eq!(tracked.stats().blocks, 11);
        });
        assert_eq!((tracked.stats().blocks, kept[99]), (1, 99));
    });
    assert_eq!((tracked.stats().blocks, arena.used()), (0, 0));
    arena.alloc(1).unwrap();
    arena.reset();
    assert_eq!(tracked.stats().blocks, 0);
}

/// A buffer type of one's own: blocks on a list, from its end.
#[test]
fn a_type_of_ones_own() {
    struct Stack(std::cell::RefCell<Vec<Box<[u64]>>>);
    // SAFETY: a boxed slice stays where it is until it is dropped, by a rewind.
    unsafe impl Scratch for Stack {
        type Mark = usize;
        fn allocate(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
            assert!(layout.align() <= 8);
            let mut blocks = self.0.borrow_mut();
            blocks.push(vec![0; layout.size() / 8 + 1].into());
            Ok(NonNull::from_mut(&mut blocks.last_mut().unwrap()[0]).cast())
        }
        fn mark(&self) -> usize {
            self.0.borrow().len()
        }
        unsafe fn rewind(&self, mark: usize) {
            self.0.borrow_mut().truncate(mark);
        }
    }
    let mut stack = Stack(Default::default());
    let sum = stack.scope(|s| {
        let kept = s.alloc_slice_with(100, |i| i as u64).unwrap();
        (0..10).for_each(|_| s.scope(|s| s.alloc_slice::<f64>(1000).unwrap().fill(1.0)));
        kept.iter().sum::<u64>()
    });
    assert_eq!((sum, stack.mark()), (4950, 0));
}

/// What lives: addresses, sizes, and the pattern in each.
#[derive(Default)]
struct Shadow {
    living: Vec<(usize, usize, u64)>,
    seed: u64,
}

impl Shadow {
    fn bytes(&(address, size, _): &(usize, usize, u64)) -> &'static mut [u8] {
        // SAFETY: it lives, as the shadow knows, and nobody else uses it.
        unsafe { from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(address), size) }
    }

    /// Fills a block, and checks every byte of all, which blocks that overlap cannot have both.
    fn add(&mut self, block: *mut u8, size: usize) {
        self.seed += 1;
        self.living.push((block.expose_provenance(), size, self.seed));
        pattern::fill(Self::bytes(self.living.last().unwrap()), self.seed);
        self.living.iter().for_each(|block| pattern::check(Self::bytes(block), block.2));
    }
}

fn rolled(dice: &mut Dice) -> (usize, usize) {
    let size = [dice.roll(300), 1 << dice.roll(13), dice.roll(20_000)][[0, 0, 0, 0, 1, 1, 2][dice.roll(7)]];
    (size, 1 << if dice.roll(5) == 0 { dice.roll(14) } else { dice.roll(7) })
}

/// A random program of marks, some of which are passed over, and one of which may be rewound to twice.
fn marked(arena: &Arena, dice: &mut Dice) {
    let (mut shadow, mut open) = (Shadow::default(), Vec::<(Mark, usize, usize)>::new());
    for _ in 0..60 {
        match dice.roll(5) {
            0 => open.push((arena.mark(), shadow.living.len(), arena.used())),
            1 if !open.is_empty() => {
                let at = open.len() - 1 - dice.roll(open.len().min(3));
                let (mark, living, used) = open[at];
                open.truncate(at + dice.roll(2));
                shadow.living.truncate(living);
                // SAFETY: the shadow has forgotten what was allocated since.
                unsafe { arena.rewind(mark) };
                assert!(arena.used() >= used); // or more, where the rest of a chunk is given up
            }
            2 => {
                if let Ok(block) = arena.alloc_slice::<u64>(dice.roll(2000)) {
                    assert!(block.iter().all(|&word| word == 0));
                    shadow.add(block.as_mut_ptr().cast(), size_of_val(block));
                }
            }
            _ => {
                let (size, align) = rolled(dice);
                if let Ok(block) = arena.allocate(Layout::from_size_align(size, align).unwrap()) {
                    assert!(block.as_ptr().addr().is_multiple_of(align));
                    shadow.add(block.as_ptr(), size);
                }
            }
        }
        assert!(arena.used() <= arena.capacity());
    }
}

/// Random programs against a shadow: what lives since each mark is known beside the arena, and every byte of it is checked
/// after every step.
fn programs(count: usize) {
    let mut dice = Dice(5);
    let mut storage = vec![MaybeUninit::uninit(); 50_000];
    let (mut arenas, tracked) = arenas(&mut storage);
    let limited = Limited::new(Malloc::new(), 40_000);
    let mut little = Arena::with(limited.clone(), 700);
    for _ in 0..count {
        for arena in arenas.iter_mut().chain([&mut little]) {
            marked(arena, &mut dice);
            match dice.roll(4) {
                0 => arena.trim(),
                1 => drop(arena.scope(|s| s.alloc(1).map(|_| ()))),
                _ => {}
            }
            arena.reset();
            assert_eq!(arena.used(), 0);
        }
    }
    drop((arenas, little));
    assert_eq!((tracked.stats().in_use, limited.used()), (0, 0));
}

#[test]
fn random_programs() {
    programs(60);
}

/// A part of `make trust`.
#[test]
#[ignore = "takes minutes"]
fn many_random_programs() {
    programs(20_000);
}
