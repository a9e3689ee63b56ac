//! Buffers of scopes: what is reused, what stays, what is held, and what is refused.

mod common;
mod scratch_common;

use common::process::within;
use firsttouch::Request;
use firsttouch::adaptors::Tracked;
use firsttouch::allocator::{AllocError, Limit};
use firsttouch::scratch::{Backing, BadOptions, Buffer, Options, Refused, Slot};
use firsttouch::size::Bytes;
use firsttouch::sources::Malloc;
use scratch_common::{Piece, fixed};
use std::sync::Arc;
use std::time::Duration;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// A buffer, and what its upstream sees of it.
fn growing(options: Options) -> (Arc<Buffer>, Arc<Tracked>) {
    let upstream = Tracked::new(Arc::new(Malloc), None);
    (Buffer::growing(upstream.clone(), options).unwrap(), upstream)
}

fn chunks_of(chunk_size: usize) -> Options {
    Options { chunk_size, ..Options::default() }
}

fn limit(result: Result<Piece, Refused>) -> Limit {
    match result.err() {
        Some(Refused::Failed(AllocError { limit, .. })) => limit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn options_that_contradict_each_other() {
    let refused = |options| Buffer::growing(Arc::new(Malloc), options).err();
    assert_eq!(refused(chunks_of(0)), Some(BadOptions::ChunkSize(0)));
    assert_eq!(refused(chunks_of(usize::MAX)), Some(BadOptions::ChunkSize(usize::MAX)));
    let small = Options { limit: Some(MIB - 1), ..Options::default() };
    assert_eq!(refused(small), Some(BadOptions::Limit { limit: MIB - 1, chunk_size: MIB }));
    let text = refused(small).unwrap().to_string();
    assert!(text.contains("1048575 bytes") && text.contains("1 MiB"), "{text}");
    for chunk_size in [1, 63, 65, 4097] {
        let (buffer, _) = growing(chunks_of(chunk_size));
        (0..100).map(|n| Piece::bytes(&*buffer, Slot::OUTSIDE, n * 3, n as u64)).for_each(|p| p.give_back(&*buffer));
    }
}

#[test]
fn how_it_is_made() {
    let (buffer, _) = growing(Options { limit: Some(MIB), ..Options::default() });
    let upstream = "tracked(malloc(), lines=False)";
    assert_eq!(buffer.expression(), format!("ScratchBuffer(1048576, upstream={upstream}, limit=1048576, debug=False)"));
    assert_eq!(fixed(4096, false, true).expression(), "FixedBuffer(4096, debug=True)");
}

/// The top comes down, holes are filled, and neighbours are joined.
#[test]
fn what_dies_is_used_again() {
    let (buffer, upstream) = growing(Options::default());
    let slot = buffer.open();
    let first = Piece::bytes(&*buffer, slot, 1000, 1);
    let at = first.at();
    first.give_back(&*buffer);
    let pieces: Vec<_> = (0..8).map(|n| Piece::bytes(&*buffer, slot, 1000, n)).collect();
    let addresses: Vec<_> = pieces.iter().map(Piece::at).collect();
    assert_eq!(addresses, (0..8).map(|n| at + n * 1024).collect::<Vec<_>>());
    let mut pieces: Vec<_> = pieces.into_iter().map(Some).collect();
    for n in [4, 2, 3] {
        pieces[n].take().unwrap().give_back(&*buffer);
    }
    let wide = Piece::bytes(&*buffer, slot, 3000, 9);
    assert_eq!(wide.at(), addresses[2], "three holes are one");
    pieces[0].take().unwrap().give_back(&*buffer);
    let small = Piece::bytes(&*buffer, slot, 100, 9);
    assert_eq!(small.at(), addresses[0]);
    assert_eq!((upstream.tally().allocations, buffer.capacity()), (1, MIB));
    pieces.into_iter().flatten().chain([wide, small]).for_each(|piece| piece.give_back(&*buffer));
    assert_eq!(buffer.used(), 0);
    assert_eq!(Piece::bytes(&*buffer, slot, MIB / 8, 1).at(), at, "all of it is free again");
}

/// `x = x * 0.5 + 1`, ten thousand times in one scope.
#[test]
fn a_loop_in_one_scope_holds_a_few_blocks() {
    let (buffer, _) = growing(Options::default());
    let slot = buffer.open();
    let mut x = Piece::bytes(&*buffer, slot, 5 * KIB, 0);
    for n in 0..10_000 {
        let half = Piece::bytes(&*buffer, slot, 5 * KIB, n);
        std::mem::replace(&mut x, Piece::bytes(&*buffer, slot, 5 * KIB, n)).give_back(&*buffer);
        half.give_back(&*buffer);
    }
    assert!(buffer.peak() <= 20 * KIB && buffer.capacity() == MIB);
}

#[test]
fn what_outlives_its_scope_stays_where_it_is() {
    let (buffer, _) = growing(Options::default());
    let slot = buffer.open();
    let below = Piece::bytes(&*buffer, slot, 1000, 1);
    let survivor = Piece::bytes(&*buffer, slot, 1000, 2);
    below.give_back(&*buffer);
    let closed = buffer.close(slot);
    assert_eq!((closed.survivors, closed.bytes), (1, 1024));
    assert_eq!(
        buffer.survivors(slot).iter().map(|it| (it.address, it.size)).collect::<Vec<_>>(),
        [(survivor.at(), 1024)]
    );
    assert_eq!(buffer.close(slot).survivors, 0, "a second time nothing happens");
    let next = buffer.open();
    assert_ne!(next, slot, "its place is taken while its block lives");
    let around: Vec<_> = (0..50).map(|n| Piece::bytes(&*buffer, next, 5000, n)).collect();
    survivor.check();
    survivor.give_back(&*buffer);
    assert_eq!(buffer.survivors(slot), []);
    let reused = buffer.open();
    assert_ne!(reused, slot);
    assert_eq!((buffer.close(slot).survivors, buffer.depth()), (0, 2), "an old number names nobody");
    around.into_iter().for_each(|piece| piece.give_back(&*buffer));
}

/// One small array kept per turn must not hold a chunk each.
#[test]
fn what_is_held_is_bounded_by_what_lives() {
    let (buffer, _) = growing(chunks_of(64 * KIB));
    let (mut kept, mut elsewhere) = (Vec::new(), 0);
    for turn in 0..2_000 {
        let slot = buffer.open();
        let mut most = Vec::new();
        for n in 0..20 {
            match Piece::new(&*buffer, slot, Request::bytes(if n == 10 { 64 } else { 3000 }), turn) {
                Ok(piece) if n == 10 => kept.push(piece),
                Ok(piece) => most.push(piece),
                Err(refused) => {
                    assert_eq!(refused, Refused::Fragmented);
                    elsewhere += 1;
                }
            }
            let bound = 2 * buffer.used() + 2 * 64 * KIB;
            assert!(buffer.capacity() <= bound.max(4 * 64 * KIB), "{} of {bound}", buffer.capacity());
        }
        most.into_iter().for_each(|piece| piece.give_back(&*buffer));
        buffer.close(slot);
    }
    assert!(kept.len() == 2_000 && elsewhere < 100, "{} {elsewhere}", kept.len());
    assert!(buffer.capacity() <= 2 * buffer.used() + 4 * 64 * KIB);
    kept.into_iter().for_each(|piece| piece.give_back(&*buffer));
}

/// One in eight lives, so that nothing larger fits between: chunks come until they are too many.
#[test]
fn what_is_in_splinters_is_crowded() {
    let (buffer, upstream) = growing(chunks_of(64 * KIB));
    let slot = buffer.open();
    let mut kept = Vec::new();
    for size in [64, 512] {
        let pieces: Vec<_> = (0..64 * KIB / size).map(|n| Piece::bytes(&*buffer, slot, size, n as u64)).collect();
        let (stay, go): (Vec<_>, Vec<_>) = pieces.into_iter().enumerate().partition(|(n, _)| n % 8 == 0);
        kept.extend(stay);
        go.into_iter().for_each(|(_, piece)| piece.give_back(&*buffer));
    }
    assert_eq!((buffer.capacity(), buffer.used()), (128 * KIB, 16 * KIB));
    assert_eq!(Piece::new(&*buffer, slot, Request::bytes(4096), 1).err(), Some(Refused::Fragmented));
    // Another scope may hold two chunks, too.
    let inner = buffer.open();
    let piece = Piece::bytes(&*buffer, inner, 4096, 1);
    assert!(buffer.capacity() <= 2 * 20 * KIB + 4 * 64 * KIB);
    piece.give_back(&*buffer);
    buffer.close(inner);
    buffer.close(slot);
    within(Duration::from_secs(5), "two chunks are pinned", || buffer.capacity() == 128 * KIB);
    // Outside all scopes there is nobody else: it gets memory of its own.
    let outside = Piece::bytes(&*buffer, Slot::OUTSIDE, 4096, 1);
    assert_eq!(upstream.tally().live_blocks, 3);
    kept.into_iter().map(|(_, piece)| piece).chain([outside]).for_each(|piece| piece.give_back(&*buffer));
    assert_eq!(buffer.used(), 0);
}

#[test]
fn large_blocks_have_memory_of_their_own() {
    let (buffer, upstream) = growing(Options::default());
    let slot = buffer.open();
    let small = Piece::bytes(&*buffer, slot, MIB / 8, 1);
    let mut large = Piece::bytes(&*buffer, slot, MIB / 8 + 1, 2);
    let aligned = Piece::new(&*buffer, slot, Request::bytes(10).aligned(MIB).unwrap(), 3).unwrap();
    assert_eq!((upstream.tally().allocations, buffer.capacity()), (3, MIB + MIB / 8 + 1 + 10));
    assert!(large.resize(&*buffer, MIB / 8, 4) && !large.resize(&*buffer, 40 * MIB, 4));
    assert_eq!(buffer.survivors(slot).len(), 3);
    let closed = buffer.close(slot);
    assert_eq!((closed.survivors, closed.bytes), (3, buffer.used()));
    [large, aligned].into_iter().for_each(|piece| piece.give_back(&*buffer));
    assert_eq!((upstream.tally().live_blocks, buffer.capacity()), (1, MIB));
    small.give_back(&*buffer);
    buffer.reset().unwrap();
    assert_eq!((upstream.tally().live_blocks, buffer.capacity(), buffer.peak()), (0, 0, 0));
}

#[test]
fn a_limit_says_what_is_used_and_asked() {
    let (buffer, upstream) = growing(Options { chunk_size: 64 * KIB, limit: Some(200 * KIB), ..Options::default() });
    let slot = buffer.open();
    let mut pieces: Vec<_> = Vec::new();
    let refused = loop {
        match Piece::new(&*buffer, slot, Request::bytes(8000), 1) {
            Ok(piece) => pieces.push(piece),
            Err(refused) => break refused,
        }
    };
    // Three chunks, and one block in what they leave of the limit.
    let (held, used) = (buffer.capacity(), buffer.used());
    assert!(held == 192 * KIB + 8000 && used >= 24 * 8000, "{held} {used}");
    let error = AllocError::new(8000, Limit::Buffer { allowed: 200 * KIB, held, used });
    assert_eq!(refused, Refused::Failed(error));
    for number in [8000, 200 * KIB, held, used] {
        assert!(error.to_string().contains(&Bytes(number).to_string()), "{error}");
    }
    assert_eq!(firsttouch::failure::last(), Some(error));
    // Large blocks count, too, and idle chunks go first.
    assert!(matches!(limit(Piece::new(&*buffer, slot, Request::bytes(20 * KIB), 1)), Limit::Buffer { .. }));
    pieces.push(Piece::bytes(&*buffer, slot, 64, 1)); // there is room for a little
    pieces.drain(..).for_each(|piece| piece.give_back(&*buffer));
    let large = Piece::bytes(&*buffer, slot, 190 * KIB, 1);
    assert!(buffer.capacity() <= 200 * KIB && upstream.tally().peak_bytes <= 200 * KIB);
    large.give_back(&*buffer);
}

/// The C library gives more than was asked for; a block grows into that only as far as the limit goes.
#[test]
fn what_an_upstream_adds_does_not_pass_the_limit() {
    let (buffer, upstream) = growing(Options { chunk_size: 256, limit: Some(2000), ..Options::default() });
    let mut first = Piece::bytes(&*buffer, Slot::OUTSIDE, 1030, 1);
    let second = Piece::bytes(&*buffer, Slot::OUTSIDE, 900, 2);
    assert!(first.resize(&*buffer, 1020, 3), "a block that stays can be smaller");
    for size in (1020..2000).step_by(10) {
        first.resize(&*buffer, size, size as u64);
        assert!(buffer.capacity() <= 2000 && upstream.tally().live_bytes <= 2000, "{:?}", upstream.tally());
    }
    [first, second].into_iter().for_each(|piece| piece.give_back(&*buffer));
    assert_eq!((upstream.tally().live_blocks, buffer.capacity()), (0, 0));
}

#[test]
fn fixed_storage_is_used_to_the_last_gap() {
    let buffer = fixed(64 * KIB + 64, false, false);
    let (capacity, slot) = (buffer.capacity(), buffer.open());
    assert!(capacity >= 64 * KIB);
    let whole = Piece::bytes(&*buffer, slot, capacity, 1);
    let full = limit(Piece::new(&*buffer, slot, Request::bytes(0), 1));
    assert_eq!(full, Limit::Full { capacity, used: capacity, gap: 0, blocks: 1 });
    whole.give_back(&*buffer);
    let mut pieces: Vec<_> = (0..16).map(|n| Some(Piece::bytes(&*buffer, slot, 4096, n))).collect();
    for n in [3, 7, 8, 12] {
        pieces[n].take().unwrap().give_back(&*buffer);
    }
    let gap = Piece::bytes(&*buffer, slot, 8192, 1);
    assert_eq!(gap.at(), pieces[6].as_ref().unwrap().at() + 4096, "the largest gap");
    let refused = Piece::new(&*buffer, slot, Request::bytes(5000), 1).err().unwrap();
    let error = AllocError::new(5000, Limit::Full { capacity, used: 14 * 4096, gap: 4096, blocks: 13 });
    assert_eq!(refused, Refused::Failed(error));
    for number in ["4.88 KiB", "has 64", "56 KiB are in use", "13 live blocks", "gap has 4 KiB"] {
        assert!(error.to_string().contains(number), "{error}");
    }
    assert_eq!(buffer.reset(), Err(1));
    buffer.close(slot);
    assert_eq!(buffer.reset(), Ok(()));
    assert_eq!((buffer.used(), buffer.peak()), (14 * 4096, 14 * 4096), "what lives stays");
    pieces.into_iter().flatten().chain([gap]).for_each(|piece| piece.give_back(&*buffer));
}

#[test]
fn storage_that_holds_nothing() {
    for size in [0, 1, 63] {
        let buffer = fixed(size, false, true);
        assert!(matches!(
            limit(Piece::new(&*buffer, Slot::OUTSIDE, Request::bytes(1), 1)),
            Limit::Full { used: 0, .. }
        ));
    }
    let (buffer, _) = growing(Options::default());
    let endless = Request::bytes(usize::MAX - 5);
    assert_eq!(limit(Piece::new(&*buffer, Slot::OUTSIDE, endless, 1)), Limit::Size);
    assert_eq!(limit(Piece::new(&*fixed(100, false, false), Slot::OUTSIDE, endless, 1)), Limit::Size);
    let piece = Piece::bytes(&*buffer, Slot::OUTSIDE, 100, 1);
    #[allow(unsafe_code)] // Safety: the block stays as it is.
    // SAFETY: it lives, and does not shrink.
    unsafe {
        assert!(!buffer.resize_in_place(piece.address, usize::MAX));
    }
    piece.give_back(&*buffer);
}

/// A block that begins inside one of the buffer's is not the buffer's.
#[test]
fn buffers_on_buffers() {
    let storage = fixed(MIB, false, false);
    let slot = storage.open();
    let hold = Piece::bytes(&*storage, slot, 512 * KIB, 1);
    let keep = Box::new(());
    #[allow(unsafe_code)] // Safety: the block lives until the end of the test.
    // SAFETY: as above; nobody else uses the block.
    let inner = unsafe { Buffer::fixed(hold.address, hold.usable, false, false, None, keep) };
    let pieces: Vec<_> = (0..50).map(|n| Piece::bytes(&*inner, Slot::OUTSIDE, 3000, n)).collect();
    for piece in &pieces[1..] {
        assert_eq!(storage.usable_size(piece.address), None);
        #[allow(unsafe_code)] // Safety: the block lives, and is not that buffer's.
        // SAFETY: as above.
        unsafe {
            assert!(!storage.deallocate(piece.address));
        }
    }
    pieces.into_iter().for_each(|piece| piece.give_back(&*inner));
}

/// Within a turn or two a loop has the chunks it needs, and asks for no more, wherever a chunk ends.
#[test]
fn a_loop_at_the_edge_of_a_chunk_asks_the_upstream_for_nothing() {
    for kib in [32, 64, 68, 128, 192, 196, 256, 260, 512, 1000] {
        let (buffer, upstream) = growing(chunks_of(64 * KIB));
        let turn = || {
            let slot = buffer.open();
            let pieces: Vec<_> = (0..kib / 4).map(|n| Piece::bytes(&*buffer, slot, 4096, n)).collect();
            pieces.into_iter().for_each(|piece| piece.give_back(&*buffer));
            buffer.close(slot);
        };
        (0..3).for_each(|_| turn());
        let asked = upstream.tally().allocations;
        (0..100).for_each(|_| turn());
        assert_eq!(upstream.tally().allocations, asked, "{kib} KiB in each turn");
    }
}

#[test]
fn idle_chunks_are_given_back() {
    let (buffer, upstream) = growing(chunks_of(64 * KIB));
    let slot = buffer.open();
    let pieces: Vec<_> = (0..1000).map(|n| Piece::bytes(&*buffer, slot, 8000, n)).collect();
    assert!(buffer.capacity() >= 8_000_000);
    pieces.into_iter().for_each(|piece| piece.give_back(&*buffer));
    within(Duration::from_secs(5), "a scope is open: two chunks", || buffer.capacity() <= 2 * 64 * KIB);
    let pieces: Vec<_> = (0..200).map(|n| Piece::bytes(&*buffer, slot, 8000, n)).collect();
    pieces.into_iter().for_each(|piece| piece.give_back(&*buffer));
    buffer.close(slot);
    within(Duration::from_secs(5), "nothing is open: one chunk", || upstream.tally().live_blocks == 1);
    let kept = buffer.capacity();
    assert!((64 * KIB..=4 * 64 * KIB).contains(&kept), "{kept}");
    drop(buffer);
    assert_eq!(upstream.tally().live_blocks, 0);
}

/// Law 8: a buffer that is dropped while blocks live leaves them alone.
#[test]
fn dropped_while_blocks_live() {
    let (buffer, upstream) = growing(Options::default());
    let (bumped, large) =
        (Piece::bytes(&*buffer, Slot::OUTSIDE, 1000, 1), Piece::bytes(&*buffer, Slot::OUTSIDE, MIB, 2));
    drop(buffer);
    assert_eq!(upstream.tally().live_blocks, 2);
    let storage = fixed(MIB, false, false);
    let other = Piece::bytes(&*storage, Slot::OUTSIDE, MIB / 2, 3);
    drop(storage);
    let busy: Vec<_> = (0..20).map(|n| vec![n as u8; MIB]).collect();
    [&bumped, &large, &other].into_iter().for_each(Piece::check);
    drop(busy);
}
