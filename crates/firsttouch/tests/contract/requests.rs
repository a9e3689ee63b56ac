//! Every possible request is served or refused, whatever its size and alignment.

use super::Make;
use super::common::held::Held;
use firsttouch::Request;
use firsttouch::layout::checked_align;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// More than any process may have.
const IMPOSSIBLE: usize = 1 << 47;

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => 0usize..5000,
        4 => (12u32..23, 0usize..64).prop_map(|(shift, more)| (1 << shift) + more),
        1 => IMPOSSIBLE..=usize::MAX,
        1 => (0usize..(2 << 30)).prop_map(|less| usize::MAX - less),
        1 => (0usize..(2 << 30)).prop_map(|less| (usize::MAX >> 1) - less),
    ]
}

fn align() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => (0u32..64).prop_map(|shift| 1 << shift),
        4 => (0u32..22).prop_map(|shift| 1 << shift),
        1 => 0usize..200,
        1 => any::<usize>(),
    ]
}

/// A request, if the alignment is one.
fn request() -> impl Strategy<Value = Option<Request>> {
    (size(), align(), any::<bool>()).prop_map(|(size, align, zeroed)| {
        let request = Request::bytes(size).with_zeroed(zeroed).aligned(align);
        assert_eq!(request.is_ok(), checked_align(align).is_ok());
        request.ok()
    })
}

pub fn every_request(make: Make) {
    let allocator = make();
    let around = [Held::filled(&*allocator, 20_000, 1), Held::filled(&*allocator, 20_000, 2)];
    let requests = (request(), prop::collection::vec((request(), size()), 0..3));
    let mut runner = TestRunner::new(Config { cases: 48, failure_persistence: None, ..Config::default() });
    let body = |(first, others): (Option<Request>, Vec<(Option<Request>, usize)>)| {
        let Some(first) = first else { return Ok(()) };
        let mut block = match Held::new(&*allocator, first) {
            Ok(block) => block,
            Err(error) => {
                prop_assert_eq!(error.asked, first.size());
                prop_assert!(first.size() >= IMPOSSIBLE, "{:?} was refused: {}", first, error);
                return Ok(());
            }
        };
        block.fill(3);
        for (next, size) in others {
            if let Some(next) = next {
                let done = block.reallocate(next);
                prop_assert_eq!(done.is_err(), next.size() >= IMPOSSIBLE, "{:?}", next);
            }
            prop_assert_eq!(block.resize(size).is_err(), size >= IMPOSSIBLE, "{}", size);
        }
        block.give_back();
        around.iter().for_each(Held::check);
        Ok(())
    };
    runner.run(&requests, body).unwrap();
    around.into_iter().for_each(Held::give_back);
}
