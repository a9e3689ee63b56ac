//! Growth from nothing: a new arena, blocks of 240 bytes with a word written into each, and dropping it.

use crate::timing::{Case, Work};
use bumpalo::Bump;
use firsttouch::scratch::Arena;
use std::alloc::Layout;
use std::hint::black_box;

const LAYOUT: Layout = Layout::new::<[u64; 30]>();

fn arena<const COUNT: usize>() -> Work {
    Box::new(|turns| {
        for turn in 0..turns {
            let arena = Arena::new();
            for n in 0..COUNT {
                let block = arena.alloc_layout(LAYOUT).unwrap().cast::<u64>();
                // SAFETY: it was just allocated, with room for 30.
                unsafe { block.write((turn + n) as u64) };
                black_box(block);
            }
        }
    })
}

fn bumpalo<const COUNT: usize>() -> Work {
    Box::new(|turns| {
        for turn in 0..turns {
            let bump = Bump::new();
            for n in 0..COUNT {
                let block = bump.alloc_layout(LAYOUT).cast::<u64>();
                // SAFETY: it was just allocated, with room for 30.
                unsafe { block.write((turn + n) as u64) };
                black_box(block);
            }
        }
    })
}

fn case<const COUNT: usize>(name: &'static str) -> Case {
    Case { name, contenders: vec![("arena", arena::<COUNT>), ("bumpalo", bumpalo::<COUNT>)] }
}

pub fn cases() -> Vec<Case> {
    vec![
        case::<1>("one block of 240 bytes in a new arena"),
        case::<16>("growth to 4 KiB"),
        case::<270>("growth to 64 KiB"),
        case::<4_360>("growth to 1 MiB"),
        case::<69_000>("growth to 16 MiB"),
    ]
}
