//! Allocating 240 bytes, and rewinding.

use crate::timing::{Case, Work};
use bumpalo::Bump;
use firsttouch::scratch::{Arena, Scratch};
use std::alloc::Layout;
use std::hint::black_box;

const LAYOUT: Layout = Layout::new::<[i64; 30]>();

fn marks() -> Work {
    let arena = Arena::new();
    Box::new(move |turns| {
        for _ in 0..turns {
            let mark = arena.mark();
            black_box(arena.alloc_layout(LAYOUT).unwrap());
            // SAFETY: the block is not used any more.
            unsafe { arena.rewind(mark) };
        }
    })
}

fn scopes() -> Work {
    let mut arena = Arena::new();
    Box::new(move |turns| {
        for _ in 0..turns {
            arena.scope(|s| {
                black_box(s.alloc_layout(LAYOUT).unwrap());
            });
        }
    })
}

fn resets() -> Work {
    let mut arena = Arena::new();
    Box::new(move |turns| {
        for _ in 0..turns {
            black_box(arena.alloc_layout(LAYOUT).unwrap());
            arena.reset();
        }
    })
}

fn bumpalo() -> Work {
    let mut bump = Bump::new();
    Box::new(move |turns| {
        for _ in 0..turns {
            black_box(bump.alloc_layout(LAYOUT));
            bump.reset();
        }
    })
}

fn scope_sum() -> Work {
    let mut arena = Arena::new();
    let x: Vec<i64> = (0..30).collect();
    Box::new(move |turns| {
        for _ in 0..turns {
            let x = black_box(&x[..]);
            black_box(arena.scope(|s| {
                let y = s.alloc_slice_with(x.len(), |i| x[i] + 1).unwrap();
                black_box(&*y).iter().sum::<i64>()
            }));
        }
    })
}

fn bumpalo_sum() -> Work {
    let mut bump = Bump::new();
    let x: Vec<i64> = (0..30).collect();
    Box::new(move |turns| {
        for _ in 0..turns {
            let x = black_box(&x[..]);
            let y = bump.alloc_slice_fill_with(x.len(), |i| x[i] + 1);
            black_box(black_box(&*y).iter().sum::<i64>());
            bump.reset();
        }
    })
}

pub fn cases() -> Vec<Case> {
    vec![
        Case { name: "240 bytes, mark and rewind", contenders: vec![("arena", marks), ("bumpalo", bumpalo)] },
        Case { name: "240 bytes, scope", contenders: vec![("arena", scopes), ("bumpalo", bumpalo)] },
        Case { name: "240 bytes, reset", contenders: vec![("arena", resets), ("bumpalo", bumpalo)] },
        Case {
            name: "x + 1 summed, 30 numbers, scope",
            contenders: vec![("arena", scope_sum), ("bumpalo", bumpalo_sum)],
        },
    ]
}
