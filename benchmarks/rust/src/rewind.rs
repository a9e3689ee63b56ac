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

fn bumpalo() -> Work {
    let mut bump = Bump::new();
    Box::new(move |turns| {
        for _ in 0..turns {
            black_box(bump.alloc_layout(LAYOUT));
            bump.reset();
        }
    })
}

pub fn cases() -> Vec<Case> {
    vec![
        Case { name: "240 bytes, mark and rewind", contenders: vec![("arena", marks), ("bumpalo", bumpalo)] },
        Case { name: "240 bytes, scope", contenders: vec![("arena", scopes), ("bumpalo", bumpalo)] },
    ]
}
