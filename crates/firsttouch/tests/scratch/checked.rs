//! A checked buffer: freed memory holds a pattern, and writes to it are found and reported.

#![allow(unsafe_code)] // Safety: the tests write to memory that their buffers hold and nobody else uses.

use crate::pieces::{Dice, Piece, fixed};
use firsttouch::scratch::{Buffer, BufferOptions, Damage};
use firsttouch::sources::Malloc;
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;

fn write(address: usize) {
    // SAFETY: the buffer holds this memory, and nobody uses it.
    unsafe { with_exposed_provenance_mut::<u8>(address).write_volatile(0xDA) }
}

fn read(address: usize) -> u8 {
    // SAFETY: as above; it was written when it was freed.
    unsafe { with_exposed_provenance_mut::<u8>(address).read_volatile() }
}

#[test]
fn a_write_to_freed_memory_is_found_at_the_end_of_a_scope() {
    let options = BufferOptions { debug: true, site: Some(|| 7), ..BufferOptions::default() };
    let buffer = Buffer::growing(Arc::new(Malloc), options).unwrap();
    let pieces: Vec<_> = (0..6).map(|n| Piece::bytes(&buffer, 1000, n)).collect();
    assert!(buffer.survivors(0).iter().all(|survivor| survivor.site == 7));
    let places: Vec<_> = pieces.iter().map(Piece::at).collect();
    pieces.into_iter().for_each(|piece| piece.give_back(&buffer));
    assert_eq!((read(places[2]), read(places[5] + 1023)), (0xDB, 0xDB));
    write(places[2] + 500);
    assert_eq!(buffer.settle(), Some(Damage { address: places[2], size: 1024, offset: 500, site: 7 }));
    assert_eq!(buffer.settle(), None, "it is told once");
}

/// Also where the chunk starts again before the end of a scope.
#[test]
fn a_write_is_found_before_the_memory_is_used_again() {
    let buffer = fixed(10_000, false, true);
    let first = Piece::bytes(&buffer, 1000, 1);
    let at = first.at();
    first.give_back(&buffer);
    write(at + 3);
    let pieces: Vec<_> = (0..9).map(|n| Piece::bytes(&buffer, 1000, n)).collect();
    assert_eq!(buffer.settle().map(|damage| damage.address + damage.offset), Some(at + 3));
    pieces.into_iter().for_each(|piece| piece.give_back(&buffer));
}

/// Wherever it is in a freed block, it is found at its very byte.
#[test]
fn any_byte() {
    let (buffer, mut dice) = (fixed(20_000, false, true), Dice(1));
    for seed in 0..500 {
        let mut pieces: Vec<_> = (0..10).map(|n| Piece::bytes(&buffer, 64 + dice.roll(900), seed + n)).collect();
        let gone = pieces.swap_remove(dice.roll(10));
        let victim = gone.at() + dice.roll(gone.usable);
        gone.give_back(&buffer);
        write(victim);
        assert_eq!(buffer.settle().map(|damage| damage.address + damage.offset), Some(victim));
        pieces.into_iter().for_each(|piece| piece.give_back(&buffer));
        assert_eq!(buffer.settle(), None);
    }
}

#[test]
fn without_it_nothing_is_written() {
    let buffer = fixed(4096, false, false);
    let piece = Piece::bytes(&buffer, 64, 0);
    let (at, value) = (piece.at(), read(piece.at()));
    piece.give_back(&buffer);
    assert_eq!((read(at), value != 0xDB), (value, true));
}
