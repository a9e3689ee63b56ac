//! Invariants of a space's records, checked after every step of random programs.

use super::record::{GRANULE, NONE, Owner};
use super::{Space, granules};
use crate::heap::spans;
use proptest::prelude::*;
use std::ptr::NonNull;

impl Space {
    /// Walks the records and checks that they agree with each other and with the lists.
    fn check_records(&self) {
        let (mut at, mut hole_below, mut blocks, mut holes) = (0, false, 0, Vec::new());
        while at < self.top {
            let record = self.records.get(at);
            assert!(record.len > 0 && record.len <= self.top - at);
            if self.records.begins(at) {
                assert_eq!(record.hole_below(), hole_below, "granule {at}");
                (blocks, hole_below) = (blocks + 1, false);
            } else {
                assert!(!hole_below, "holes at granule {at} are not joined");
                assert_eq!(self.records.get(at + record.len - 1).len, record.len);
                holes.push(at);
                hole_below = true;
            }
            at += record.len;
        }
        assert!(at == self.top && !hole_below && self.top <= self.high && self.high <= self.granules);
        assert_eq!((blocks, holes.len() as u32), (self.blocks, self.holes.count));
        let begins = (0..self.granules).filter(|&at| self.records.begins(at)).count();
        assert_eq!(begins as u32, blocks);
        for class in 0..spans::CLASSES {
            let (mut at, mut before) = (self.holes.head(class), NONE);
            while at != NONE {
                let record = self.records.get(at);
                assert_eq!((spans::class_of(record.len), record.prev), (class, before));
                let place = holes.iter().position(|&hole| hole == at).expect("a listed hole");
                holes.swap_remove(place);
                (before, at) = (at, record.next);
            }
        }
        assert_eq!(holes, [], "not listed");
    }
}

/// Programs, and the most steps of each: few where Miri interprets them.
const MOST: (u32, usize) = if cfg!(miri) { (4, 30) } else { (200, 300) };

proptest! {
    #![proptest_config(ProptestConfig { cases: MOST.0, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_agree(steps in prop::collection::vec((0u8..8, any::<usize>(), 0usize..3000, 6u32..11), 1..MOST.1), debug: bool) {
        let mut storage = vec![0_u64; 4000];
        let address = NonNull::new(storage.as_mut_ptr().cast()).unwrap();
        // SAFETY: the storage outlives the space and is not used otherwise.
        let mut space = unsafe { Space::new(address, 32_000, true, debug) }.unwrap();
        let mut blocks: Vec<usize> = Vec::new();
        for (what, which, size, align) in steps {
            let need = granules(size).unwrap();
            let block = blocks.get(which % blocks.len().max(1)).and_then(|&address| space.find_block(address));
            match (what, block) {
                (0..4, _) => {
                    let free = space.gap();
                    let taken = space.take(need, 1 << align, Owner { slot: 7, site: 9 }, true);
                    prop_assert!(taken.is_some() || align > 6 || free < need as usize * GRANULE);
                    blocks.extend(taken.map(|taken| taken.address.as_ptr() as usize));
                }
                (4..7, Some(at)) => {
                    blocks.swap_remove(which % blocks.len());
                    space.give(at);
                }
                (7, Some(at)) => {
                    let done = space.resize(at, need);
                    prop_assert!(space.block(at).0 == need as usize * GRANULE || !done);
                    prop_assert_eq!(space.block(at).1, Owner { slot: 7, site: 9 });
                }
                _ => {}
            }
            space.check_records();
            prop_assert_eq!(space.damage(), None);
        }
        let mut walked = Vec::new();
        space.walk(|address, _, _| { walked.push(address); true });
        blocks.sort_unstable();
        prop_assert_eq!(&walked, &blocks);
        for address in blocks {
            let at = space.find_block(address).unwrap();
            space.give(at);
            space.check_records();
        }
        prop_assert_eq!((space.blocks, space.gap()), (0, space.bytes()));
    }
}
