//! A custom scratch allocator that records its calls.

use super::*;
use std::sync::Mutex;

/// A bump allocator on one piece of memory that records its calls.
struct Bump(Arc<Mutex<(usize, Vec<String>)>>, Mutex<Vec<u64>>);

// SAFETY: the pointer moves up, and down only to marks; the piece is not moved.
unsafe impl Scratch for Bump {
    fn allocate(&self, size: usize, align: usize) -> Result<NonNull<u8>, AllocError> {
        let mut piece = self.1.lock().unwrap();
        let base = piece.as_mut_ptr() as usize;
        let mut state = self.0.lock().unwrap();
        let at = (base + state.0).next_multiple_of(align);
        if at + size > base + 8 * piece.len() {
            return Err(AllocError::new(size, Limit::Upstream));
        }
        state.0 = at + size - base;
        Ok(NonNull::new(at as *mut u8).unwrap())
    }

    fn mark(&self) -> u64 {
        self.0.lock().unwrap().0 as u64
    }

    unsafe fn rewind(&self, mark: u64) {
        let mut state = self.0.lock().unwrap();
        assert!(mark as usize <= state.0);
        state.0 = mark as usize;
        state.1.push(format!("rewind {mark}"));
    }
}

#[test]
fn rewinds_only_what_nothing_lives_on() {
    let log = Arc::new(Mutex::new((0, Vec::new())));
    let backing = MarkBacking::new(Box::new(Bump(log.clone(), vec![0; 4096].into())), "Bump()".into());
    let at = || log.lock().unwrap().0;
    let outer = backing.open();
    let first = backing.allocate(outer, Request::bytes(100)).unwrap();
    let inner = backing.open();
    let second = backing.allocate(inner, Request::zeroed(1000)).unwrap();
    let full = backing.allocate(inner, Request::bytes(1 << 20));
    assert!(matches!(full, Err(Refused::Failed(_))));
    let above = at();
    assert_eq!((backing.used(), backing.depth(), backing.survivors(inner).len()), (1100, 2, 1));
    assert_eq!(backing.close(inner).survivors, 1);
    assert_eq!(backing.close(outer).survivors, 1);
    assert_eq!(at(), above, "a block on top is live");
    assert_eq!(backing.usable_size(second.address), Some(1000));
    // SAFETY: the blocks are live and not in use.
    unsafe {
        assert!(backing.deallocate(first.address) && !backing.deallocate(first.address));
        let third = backing.open();
        assert_eq!(at(), above);
        assert!(backing.deallocate(second.address));
        backing.close(third);
    }
    assert_eq!((at(), backing.used(), backing.capacity(), backing.peak()), (0, 0, 0, 1100));
    backing.reset().unwrap();
    assert_eq!(backing.peak(), 0);
}

#[test]
fn what_ended_scopes_waste_is_bounded() {
    let log = Arc::new(Mutex::new((0, Vec::new())));
    let backing = MarkBacking::new(Box::new(Bump(log.clone(), vec![0; 4 << 20].into())), "Bump()".into());
    let mut kept = Vec::new();
    let fragmented = (0..100).any(|_| {
        let slot = backing.open();
        let turn = backing.allocate(slot, Request::bytes(300_000));
        let small = backing.allocate(slot, Request::bytes(100));
        backing.close(slot);
        // SAFETY: the block is live and not in use.
        turn.iter().for_each(|block| unsafe { assert!(backing.deallocate(block.address)) });
        kept.extend(small.ok());
        turn.is_err()
    });
    assert!(fragmented && backing.capacity() < 4 << 20);
    // SAFETY: as above.
    kept.iter().for_each(|block| unsafe { assert!(backing.deallocate(block.address)) });
}

#[test]
fn blocks_outside_all_scopes_are_rewound_when_the_last_one_dies() {
    let log = Arc::new(Mutex::new((0, Vec::new())));
    let backing = MarkBacking::new(Box::new(Bump(log.clone(), vec![0; 4096].into())), "Bump()".into());
    let outside = |size| backing.allocate(Slot::OUTSIDE, Request::bytes(size)).unwrap().address;
    for _ in 0..10 {
        let (first, second) = (outside(10_000), outside(10_000));
        let scope = backing.open();
        let third = backing.allocate(scope, Request::bytes(10_000)).unwrap().address;
        // SAFETY: the blocks are live and not in use.
        unsafe {
            assert!(backing.deallocate(first) && backing.deallocate(third));
            backing.close(scope);
            assert!(log.lock().unwrap().0 >= 20_000, "the second is live");
            assert!(backing.deallocate(second));
        }
    }
    backing.reset().unwrap();
    assert_eq!((log.lock().unwrap().0, backing.capacity(), backing.depth()), (0, 0, 0));
}
