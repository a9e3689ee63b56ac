//! Repeats the requests of a traced program on a pool, and tells what of each would have been fresh memory.
//!
//! It is the pool that programs get, so fragmentation, decay and what it learns are the real ones; only its clock is set
//! from the trace. Blocks are written, as far as the program had written them, when they are freed: until then the pool
//! does not look at them.

#![allow(unsafe_code)] // Safety: blocks of a pool, which the replay owns and frees once.

use firsttouch::adaptors::{Options, Pool, SMALL_LIMIT};
use firsttouch::{Allocator, Request, os};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// Blocks of this size and more are not written: the pool takes fresh memory for zeroed ones, whatever was there.
const UNWRITTEN_SIZE: u64 = 32 << 20;
/// While more than this is in use nothing is written, so that a damaged trace does not exhaust the machine.
const WRITTEN_MAX: usize = 1 << 30;

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
}

impl PoolReplay {
    pub(super) fn new() -> Self {
        Self { pool: Pool::for_replay(Options::default()), before: Fresh::default() }
    }

    pub(super) fn allocate(&mut self, size: u64, zeroed: bool, now: u64) -> ReplayedBlock {
        if size < SMALL_LIMIT as u64 {
            return ReplayedBlock::default();
        }
        self.pool.pass_until(Duration::from_micros(now));
        self.look();
        let request = Request::bytes(usize::try_from(size).unwrap_or(usize::MAX)).with_zeroed(zeroed);
        match self.pool.allocate(request) {
            Ok(block) => {
                let Fresh { small, huge, purges } = self.look();
                let huge = huge.min(size); // spans are larger than their blocks
                let fresh = Fresh { small: small.min(size - huge), huge, purges };
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
        let old = std::mem::replace(block, self.allocate(size, false, now));
        block.fresh.add(old.fresh);
        self.free(old, old_size, u64::MAX, now);
    }

    /// Frees a block of `size` bytes, of whose pages the program had touched `touched`.
    pub(super) fn free(&mut self, block: ReplayedBlock, size: u64, touched: u64, now: u64) {
        let Some(address) = block.address else { return };
        self.pool.pass_until(Duration::from_micros(now));
        let page = os::page_size();
        if size < UNWRITTEN_SIZE && self.pool.stats().active < WRITTEN_MAX {
            let pages = touched.min(size.div_ceil(page as u64)) as usize;
            for at in (0..size as usize).step_by(page).take(pages) {
                // SAFETY: the byte is one of the block's.
                unsafe { address.add(at).write_volatile(1) };
            }
        }
        // SAFETY: the block is live, and freed once: the caller gives it up.
        unsafe { self.pool.deallocate(address) };
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

impl Fresh {
    fn add(&mut self, other: Self) {
        self.small += other.small;
        self.huge += other.huge;
        self.purges += other.purges;
    }
}
