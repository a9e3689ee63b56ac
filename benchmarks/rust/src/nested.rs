//! Nested scopes, which bumpalo does not have: it frees nothing before its reset. And a loop at the edge of a chunk,
//! compared with the same loop in a chunk's middle.

use crate::timing::{Case, Work};
use bumpalo::Bump;
use firsttouch::scratch::{Arena, Scope, Scratch};
use firsttouch::sources::Malloc;
use std::alloc::Layout;
use std::hint::black_box;
use std::sync::Arc;

const LAYOUT: Layout = Layout::new::<[i64; 30]>();
const CHUNK: usize = 64 << 10;
const INNER: usize = 16;

fn scopes() -> Work {
    let mut arena = Arena::new();
    Box::new(move |turns| {
        for _ in 0..turns {
            arena.scope(|s| {
                black_box(s.alloc_layout(LAYOUT).unwrap());
                for _ in 0..INNER {
                    s.scope(|s| {
                        black_box(s.alloc_layout(LAYOUT).unwrap());
                        s.scope(|s| black_box(s.alloc_layout(LAYOUT).unwrap()));
                    });
                }
            });
        }
    })
}

fn bumpalo() -> Work {
    let mut bump = Bump::new();
    Box::new(move |turns| {
        for _ in 0..turns {
            black_box(bump.alloc_layout(LAYOUT));
            for _ in 0..INNER {
                black_box(bump.alloc_layout(LAYOUT));
                black_box(bump.alloc_layout(LAYOUT));
            }
            bump.reset();
        }
    })
}

/// The loop, with `before` bytes of a chunk in use.
fn turn(s: &mut Scope<Arena>, before: usize, turns: usize) {
    s.alloc_uninit::<u8>(before).unwrap();
    for _ in 0..turns {
        s.scope(|s| {
            black_box(s.alloc_layout(LAYOUT).unwrap());
        });
    }
}

fn looping(before: usize) -> Work {
    let mut arena = Arena::with(Arc::new(Malloc), CHUNK);
    Box::new(move |turns| {
        arena.scope(|s| {
            turn(s, CHUNK / 2, 1); // fills a chunk, so that the following blocks are not too large for one
            turn(s, before, turns);
        });
    })
}

fn edge() -> Work {
    looping(CHUNK / 2 - 100)
}

fn middle() -> Work {
    looping(CHUNK / 4)
}

pub fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "nested: 33 blocks of 240 bytes in 33 scopes",
            contenders: vec![("arena", scopes), ("bumpalo", bumpalo)],
        },
        Case { name: "edge of a chunk", contenders: vec![("arena", edge), ("arena, middle", middle)] },
    ]
}
