//! Debug mode: freed memory holds a pattern, and writes to it are found and reported.

#![allow(unsafe_code)] // Safety: the tests write to memory that their buffers hold and nobody else uses.

mod scratch_common;

use firsttouch::Request;
use firsttouch::scratch::{Backing, Buffer, Damage, Options, Slot};
use firsttouch::sources::Malloc;
use scratch_common::{Dice, Piece, fixed};
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static LINE: AtomicU64 = AtomicU64::new(0);

/// Every block has a line of its own.
fn next_line() -> u64 {
    LINE.fetch_add(1, Relaxed) + 1
}

fn growing() -> Arc<Buffer> {
    let options = Options { debug: true, site: Some(|| LINE.load(Relaxed)), ..Options::default() };
    Buffer::growing(Arc::new(Malloc), options).unwrap()
}

fn write(address: usize) {
    // SAFETY: the buffer holds this memory, and nobody uses it.
    unsafe { with_exposed_provenance_mut::<u8>(address).write_volatile(0xDA) }
}

fn read(address: usize) -> u8 {
    // SAFETY: as above; it was written when it was freed.
    unsafe { with_exposed_provenance_mut::<u8>(address).read_volatile() }
}

/// A block of its own line.
fn piece(buffer: &Buffer, slot: Slot, size: usize) -> (Piece, u64) {
    LINE.store(next_line(), Relaxed);
    let line = LINE.load(Relaxed);
    (Piece::bytes(buffer, slot, size, line), line)
}

/// One test, as the lines are everybody's.
#[test]
fn a_write_to_freed_memory_is_found() {
    let buffer = growing();
    let slot = buffer.open();
    let pieces: Vec<_> = (0..6).map(|_| piece(&buffer, slot, 1000)).collect();
    let known = buffer.survivors(slot);
    assert!(pieces.iter().all(|(piece, line)| known.iter().any(|it| (it.address, it.site) == (piece.at(), *line))));
    let places: Vec<_> = pieces.iter().map(|(piece, line)| (piece.at(), *line)).collect();
    let mut pieces: Vec<_> = pieces.into_iter().map(|(piece, _)| Some(piece)).collect();
    let damage = |n: usize, offset| Damage { address: places[n].0, size: 1024, offset, site: places[n].1 };

    // At the end of a scope, in the middle of a hole of several blocks.
    [2, 1, 3].into_iter().for_each(|n| pieces[n].take().unwrap().give_back(&*buffer));
    assert_eq!((read(places[2].0), read(places[3].0 + 1023)), (0xDB, 0xDB));
    write(places[2].0 + 500);
    let inner = buffer.open();
    assert_eq!(buffer.close(inner).damage, Some(damage(2, 500)));
    assert_eq!(buffer.damage(), None, "it is told once");

    // When it is used again: here by a block that covers the first and a part of the second.
    write(places[1].0 + 1023);
    let (over, _) = piece(&buffer, slot, 1500);
    assert_eq!(over.at(), places[1].0);
    assert_eq!(buffer.damage(), Some(damage(1, 1023)));
    // What is left of the second is known still.
    write(places[2].0 + 600);
    let rest = buffer.damage().unwrap();
    assert_eq!((rest.address + rest.offset, rest.site), (places[2].0 + 600, places[2].1));
    over.give_back(&*buffer);

    // Where a block shrank, and on top.
    let mut last = pieces[5].take().unwrap();
    assert!(last.resize(&*buffer, 64, 1));
    write(last.at() + 64);
    assert_eq!(buffer.damage().unwrap().site, places[5].1);
    last.give_back(&*buffer);
    write(places[5].0 + 7);
    // The top came down; a new block there finds it.
    let (again, _) = piece(&buffer, slot, 8000);
    assert_eq!(again.at(), places[5].0);
    let found = buffer.close(slot);
    assert_eq!(found.damage.map(|damage| damage.address + damage.offset), Some(places[5].0 + 7));
    pieces.into_iter().flatten().chain([again]).for_each(|piece| piece.give_back(&*buffer));

    // At a reset.
    write(places[0].0);
    assert_eq!(buffer.reset(), Ok(()));
    assert_eq!(buffer.damage().map(|damage| damage.address), Some(places[0].0));
}

#[test]
fn gaps_that_alignment_leaves_hold_the_pattern_too() {
    let buffer = fixed(64 << 10, false, true);
    let first = Piece::bytes(&*buffer, Slot::OUTSIDE, 64, 1);
    let far = Piece::new(&*buffer, Slot::OUTSIDE, Request::bytes(64).aligned(16 << 10).unwrap(), 2).unwrap();
    assert!(far.at() > first.at() + 64);
    let within = first.at() + 64 + (far.at() - first.at() - 64) / 2;
    assert_eq!(read(within), 0xDB);
    write(within);
    let found = buffer.damage().unwrap();
    assert_eq!((found.address + found.offset, found.site), (within, 0));
    [first, far].into_iter().for_each(|piece| piece.give_back(&*buffer));
    assert_eq!(buffer.damage(), None);
}

/// Wherever it is, every write to free memory is found, once, at its very byte.
#[test]
fn any_byte() {
    let (buffer, mut dice) = (fixed(20_000, false, true), Dice(1));
    let mut pieces: Vec<Piece> = Vec::new();
    let base = Piece::bytes(&*buffer, Slot::OUTSIDE, 64, 0);
    let mut high = 0;
    for step in 0..4000 {
        if dice.roll(5) < 3 {
            let request = Request::bytes(dice.roll(900)).aligned(64 << dice.roll(5)).unwrap();
            pieces.extend(Piece::new(&*buffer, Slot::OUTSIDE, request, step));
        } else if !pieces.is_empty() {
            let at = dice.roll(pieces.len());
            if dice.roll(3) > 0 {
                pieces.swap_remove(at).give_back(&*buffer);
            } else {
                pieces[at].resize(&*buffer, dice.roll(900), step);
            }
        }
        high = pieces.iter().map(|piece| piece.at() + piece.usable).fold(high, usize::max);
        assert_eq!(buffer.damage(), None);
        let victim = base.at() + 64 + dice.roll(20_000);
        if victim < high && !pieces.iter().any(|piece| (piece.at()..piece.at() + piece.usable).contains(&victim)) {
            assert_eq!(read(victim), 0xDB);
            write(victim);
            let found = buffer.damage().unwrap();
            assert_eq!(found.address + found.offset, victim);
            assert!(found.offset < found.size);
        }
    }
    pieces.into_iter().chain([base]).for_each(|piece| piece.give_back(&*buffer));
}

#[test]
fn without_it_nothing_is_written() {
    let buffer = fixed(4096, false, false);
    let piece = Piece::bytes(&*buffer, Slot::OUTSIDE, 64, 0);
    let (at, value) = (piece.at(), read(piece.at()));
    piece.give_back(&*buffer);
    assert_eq!((read(at), value != 0xDB), (value, true));
}
