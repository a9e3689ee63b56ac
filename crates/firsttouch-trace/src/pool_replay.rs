//! Repeats the requests of a traced program on a pool, and tells what of each would have been fresh memory.
//!
//! It is the pool that programs get, so fragmentation, decay and what it learns are the real ones; only its clock is set
//! from the trace. Blocks are written as far as the program had written them in the end.

#![allow(unsafe_code)] // Safety: blocks of a pool, which the replay owns and frees once.

use firsttouch::adaptors::{Options, Pool, SMALL_LIMIT};
use firsttouch::{Allocator, Request, os};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// Blocks of this size and more are not written: the pool takes fresh memory for zeroed ones, whatever was there.
const UNWRITTEN_SIZE: u64 = 32 << 20;
/// The replay makes at most about so much memory resident, and at most this fraction of what is available.
const RESIDENT_MAX: usize = 1 << 30;
const AVAILABLE: usize = 4;
/// Bytes that are written before the system is asked how much is resident.
const UNASKED_MAX: usize = 16 << 20;

/// Bytes that the kernel would fault in if all of a block were touched, and how often idle memory went back for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fresh {
    pub(super) small: u64,
    pub(super) huge: u64,
    pub(super) purges: u64,
}

/// A block of the replay; without an address if another allocator serves it, or the pool refused it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplayedBlock {
    address: Option<NonNull<u8>>,
    pub(super) fresh: Fresh,
}

// SAFETY: any thread may write and free blocks of a pool (law 6), and each belongs to one replay.
unsafe impl Send for ReplayedBlock {}

pub(super) struct PoolReplay {
    pool: Arc<Pool>,
    /// Fresh bytes so far.
    before: Fresh,
    /// Resident bytes of the process from which on nothing is written.
    resident_max: usize,
    /// Bytes written since the system was asked, and whether more may be.
    unasked: usize,
    writes: bool,
}

impl PoolReplay {
    pub(super) fn new() -> Self {
        Self::within(RESIDENT_MAX.min(os::headroom() / AVAILABLE))
    }

    /// A replay that makes about `bytes` resident at most.
    fn within(bytes: usize) -> Self {
        Self {
            pool: Pool::for_replay(Options::default()),
            before: Fresh::default(),
            resident_max: os::resident().saturating_add(bytes),
            unasked: 0,
            writes: true,
        }
    }

    /// Whether so many bytes may be written.
    fn may_write(&mut self, bytes: u64) -> bool {
        self.unasked = self.unasked.saturating_add(bytes as usize);
        if self.unasked >= UNASKED_MAX {
            self.unasked = 0;
            self.writes = os::resident() < self.resident_max;
        }
        self.writes
    }

    /// Allocates a block, of whose pages the program will touch `touched`.
    pub(super) fn allocate(&mut self, size: u64, zeroed: bool, touched: u64, now: u64) -> ReplayedBlock {
        if size < SMALL_LIMIT as u64 {
            return ReplayedBlock::default();
        }
        self.pool.pass_until(Duration::from_micros(now));
        self.look();
        let cleared = zeroed && (size >= UNWRITTEN_SIZE || self.may_write(size));
        let request = Request::bytes(usize::try_from(size).unwrap_or(usize::MAX)).with_zeroed(cleared);
        match self.pool.allocate(request) {
            Ok(block) => {
                let Fresh { small, huge, purges } = self.look();
                let huge = huge.min(size); // spans are larger than their blocks
                let fresh = Fresh { small: small.min(size - huge), huge, purges };
                self.write(block.address, size, touched);
                ReplayedBlock { address: Some(block.address), fresh }
            }
            Err(_) => ReplayedBlock { address: None, fresh: Fresh { small: size, ..Fresh::default() } },
        }
    }

    /// Resizes a block of `old_size` bytes in place, or to another one.
    pub(super) fn resize(&mut self, block: &mut ReplayedBlock, old_size: u64, size: u64, now: u64) {
        self.pool.pass_until(Duration::from_micros(now));
        self.look();
        if let Some(address) = block.address {
            // SAFETY: the block is live, and its address known to this replay alone.
            if unsafe { self.pool.resize_in_place(address, usize::try_from(size).unwrap_or(usize::MAX)) } {
                return block.fresh.add(self.look());
            }
        }
        let old = std::mem::replace(block, self.allocate(size, false, pages(old_size.min(size)), now));
        block.fresh.add(old.fresh);
        self.free(old, old_size, u64::MAX, now);
    }

    /// Frees a block of `size` bytes, of whose pages the program had touched `touched`.
    pub(super) fn free(&mut self, block: ReplayedBlock, size: u64, touched: u64, now: u64) {
        let Some(address) = block.address else { return };
        self.pool.pass_until(Duration::from_micros(now));
        self.write(address, size, touched); // what it was resized by, too
        // SAFETY: the block is live, and given up here once (`summary.rs` takes it out of its table, `reallocate`
        // replaces it).
        unsafe { self.pool.deallocate(address) };
    }

    /// Writes to the first `touched` pages of a live block of `size` bytes.
    fn write(&mut self, address: NonNull<u8>, size: u64, touched: u64) {
        let touched = touched.min(pages(size));
        if size < UNWRITTEN_SIZE && self.may_write(touched * os::page_size() as u64) {
            for at in (0..size as usize).step_by(os::page_size()).take(touched as usize) {
                // SAFETY: the byte is one of the block's.
                unsafe { address.add(at).write_volatile(1) };
            }
        }
    }

    /// What was fresh since the last look.
    fn look(&mut self) -> Fresh {
        let stats = self.pool.stats();
        let now = Fresh {
            small: stats.first_touched_small_bytes,
            huge: stats.first_touched_huge_bytes,
            purges: stats.purged_bytes,
        };
        let before = std::mem::replace(&mut self.before, now);
        Fresh {
            small: now.small - before.small,
            huge: now.huge - before.huge,
            purges: u64::from(now.purges > before.purges),
        }
    }
}

/// The number of base pages of so many bytes.
pub(super) fn pages(size: u64) -> u64 {
    size.div_ceil(os::page_size() as u64)
}

impl Fresh {
    fn add(&mut self, other: Self) {
        self.small = self.small.saturating_add(other.small); // of a damaged trace, any number
        self.huge = self.huge.saturating_add(other.huge);
        self.purges += other.purges;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 16 << 20;

    /// Frees blocks after few and after many were in use, and requests as much again.
    fn use_again(replay: &mut PoolReplay, zeroed: bool) {
        for count in [16, 64] {
            let blocks: Vec<_> = (0..count).map(|_| replay.allocate(SIZE, zeroed, u64::MAX, 0)).collect();
            blocks.into_iter().for_each(|block| replay.free(block, SIZE, u64::MAX, 0));
        }
        for block in (0..64).map(|_| replay.allocate(SIZE - 1, zeroed, 0, 0)).collect::<Vec<_>>() {
            replay.free(block, SIZE - 1, 0, 0);
        }
    }

    #[test]
    fn what_is_resident_is_bounded_whatever_is_freed_and_cleared() {
        for zeroed in [false, true] {
            let before = os::resident();
            let mut replay = PoolReplay::within(128 << 20);
            use_again(&mut replay, zeroed);
            let resident = os::resident().saturating_sub(before);
            assert!((32 << 20..384 << 20).contains(&resident), "{} MiB, zeroed {zeroed}", resident >> 20);
        }
    }

    #[test]
    fn sizes_that_no_memory_has_are_fresh_and_add_up() {
        let mut replay = PoolReplay::new();
        let mut block = replay.allocate(u64::MAX, true, 0, 0);
        replay.resize(&mut block, u64::MAX, u64::MAX - 1, u64::MAX);
        replay.resize(&mut block, u64::MAX - 1, SIZE, u64::MAX);
        assert_eq!(block.fresh.small, u64::MAX);
        replay.free(block, SIZE, 0, u64::MAX);
    }
}
