//! Steady state: many small blocks, few large ones, then a rewind to the start, repeatedly.

use crate::timing::{Case, Work};
use bumpalo::Bump;
use firsttouch::scratch::{Arena, Scratch};
use std::alloc::Layout;
use std::hint::black_box;
use std::ptr::NonNull;

const LARGE: Layout = Layout::new::<[u8; 1 << 20]>();
const PAGE: usize = 4096;

/// A list, as a parser or a tree builds them.
struct Node<'a> {
    value: u64,
    next: Option<&'a Node<'a>>,
}

fn small() -> Work {
    let mut arena = Arena::new();
    Box::new(move |turns| {
        for _ in 0..turns {
            arena.scope(|s| {
                let mut list = None;
                for value in 0..10_000 {
                    list = Some(&*s.alloc(Node { value, next: list }).unwrap());
                }
                black_box(list.map(|node| (node.value, node.next.is_some())));
            });
        }
    })
}

fn bumpalo_small() -> Work {
    let mut bump = Bump::new();
    Box::new(move |turns| {
        for _ in 0..turns {
            let mut list = None;
            for value in 0..10_000 {
                list = Some(&*bump.alloc(Node { value, next: list }));
            }
            black_box(list.map(|node| (node.value, node.next.is_some())));
            bump.reset();
        }
    })
}

/// Writes to every page if `write` is set.
fn touch(block: NonNull<u8>, write: bool) {
    if write {
        for at in (0..LARGE.size()).step_by(PAGE) {
            // SAFETY: the block was just allocated with this size.
            unsafe { block.add(at).write(1) };
        }
    }
    black_box(block);
}

fn large<const WRITE: bool>() -> Work {
    let mut arena = Arena::new();
    Box::new(move |turns| {
        for _ in 0..turns {
            arena.scope(|s| (0..8).for_each(|_| touch(s.alloc_layout(LARGE).unwrap(), WRITE)));
        }
    })
}

fn bumpalo_large<const WRITE: bool>() -> Work {
    let mut bump = Bump::new();
    Box::new(move |turns| {
        for _ in 0..turns {
            (0..8).for_each(|_| touch(bump.alloc_layout(LARGE), WRITE));
            bump.reset();
        }
    })
}

pub fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "many small: 10,000 nodes of 24 bytes",
            contenders: vec![("arena", small), ("bumpalo", bumpalo_small)],
        },
        Case {
            name: "few large: 8 of 1 MiB, pages written",
            contenders: vec![("arena", large::<true>), ("bumpalo", bumpalo_large::<true>)],
        },
        Case {
            name: "few large: 8 of 1 MiB, not touched",
            contenders: vec![("arena", large::<false>), ("bumpalo", bumpalo_large::<false>)],
        },
    ]
}
