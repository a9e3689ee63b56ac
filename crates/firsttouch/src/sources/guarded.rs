//! Blocks next to inaccessible guard pages: a read or write past the end stops at once, with SIGSEGV.
//!
//! Each block is a mapping of its own. It ends as close to its guard as its alignment allows, or begins right behind it. The
//! rest of its first and last page holds canaries, which are checked when the block is freed and by [`Guarded::check`]. Freed
//! blocks may be kept inaccessible for a while.
//!
//! The system bounds the number of mappings. Guards take at most [`PART_OF_MAPPINGS`] of it, and blocks beyond that have none: the
//! program runs on.

#![allow(unsafe_code)] // Safety: a block and its guard lie on pages of their own, which belong to no other block.

use super::library::Counts;
use super::pages;
use crate::allocator::{AllocError, Allocator, Block, BlockList, Description, Limit, Request};
use crate::description::Value;
use crate::factory::Arguments;
use crate::failure;
use crate::heap::purger;
use crate::layout::{round_down, round_up};
use crate::ledger::Ledger;
use crate::os;
use crate::spec::{MakeResult, OptionKind, Spec, opt};
use crate::stats::Stats;
use crate::sync::lock::Lock;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The declaration.
pub const SPECS: &[Spec] = &[Spec {
    name: "guarded",
    summary: "an allocator that places each array at an inaccessible page, so that an overrun stops the process.",
    options: &[
        opt(
            "side",
            OptionKind::Word(&["after", "before"]),
            Some(Value::Text(Cow::Borrowed("after"))),
            "On which side of the array the inaccessible page lies.",
        ),
        opt(
            "keep",
            OptionKind::Size,
            Some(Value::Integer(0)),
            "Bytes of freed arrays that stay inaccessible, so that a use after free stops the process as well.",
        ),
    ],
    positional: 0,
    notes: "Overruns are caught at once and at no cost per access, but every array is a mapping of its own. Behind an array \
        that does not end at a multiple of its alignment (64 bytes) lies a gap, in which they are found when the array is freed.",
    example: "\
>>> ft.guarded(keep=\"1 MiB\").zeros(3)
array([0., 0., 0.])",
}];

pub fn make(arguments: &Arguments) -> MakeResult {
    let side = if arguments.text("side") == Some("before") { Side::Before } else { Side::After };
    Ok(Guarded::new(GuardedOptions { side, keep: arguments.number("keep").unwrap_or_default() }))
}

/// The part of the mappings that a process may have (numerator, denominator). The rest is for threads' stacks, libraries
/// and files, which have to be mapped, too.
const PART_OF_MAPPINGS: (usize, usize) = (3, 4);
/// A guard and the pages of its block.
const MAPPINGS_OF_A_BLOCK: usize = 2;
/// The most overruns that are kept until they are queried.
const FOUND_MAX: usize = 256;
/// The most freed blocks that are kept.
const KEPT_MAX: usize = 1 << 16;

/// The guards of the process.
static GUARDS: AtomicUsize = AtomicUsize::new(0);

/// The side of a block on which its guard lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// Behind the block: overruns fault.
    #[default]
    After,
    /// Before the block: underruns fault.
    Before,
}

/// The options of a [`Guarded`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuardedOptions {
    /// Where the guard lies.
    pub side: Side,
    /// Bytes of freed blocks that are kept inaccessible; the oldest is released first. [`Allocator::trim`] releases all.
    pub keep: usize,
}

/// A byte next to a block that was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun {
    /// The block.
    pub address: usize,
    /// The requested size in bytes.
    pub asked: usize,
    /// The address of the byte, before or behind the block.
    pub at: usize,
}

/// A block next to an address, and whether it was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Near {
    /// Its address.
    pub address: usize,
    /// The requested size in bytes.
    pub asked: usize,
    /// Whether it was freed and is kept inaccessible.
    pub freed: bool,
}

/// A block, its pages and its guard.
#[derive(Clone, Copy, Debug)]
struct GuardedBlock {
    /// The mapping, and its bytes.
    start: usize,
    size: usize,
    is_guarded: bool,
    address: usize,
    asked: usize,
}

impl GuardedBlock {
    /// Maps one, with its guard if the process has mappings for one.
    fn map(side: Side, request: Request) -> Result<Self, AllocError> {
        let (asked, align, page) = (request.size(), request.align(), os::page_size());
        let too_large = AllocError::new(asked, Limit::Size);
        let bytes = round_up(asked, page).ok_or(too_large)?;
        let before = if side == Side::Before { align.max(page) } else { 0 };
        let size = bytes.checked_add(before.max(page)).ok_or(too_large)?;
        let refused = |error| AllocError::new(asked, os::why_refused(asked, error));
        let start = os::map_aligned(size, align.max(page), None).map_err(refused)?;
        let (address, guard) = match side {
            // Aligned, because the mapping and its end are; and no larger than the block's pages.
            Side::After => (start + bytes - round_up(asked, align.min(page)).unwrap_or(bytes), start + bytes),
            Side::Before => (start + before, start + before - page),
        };
        let mut block = Self { start, size, is_guarded: false, address, asked };
        // SAFETY: the pages were just mapped, and those of the guard are never in use.
        unsafe {
            block.put_canaries();
            if may_guard() {
                if let Err(error) = os::protect(guard, page, false) {
                    block.unmap();
                    return Err(refused(error));
                }
                block.is_guarded = true;
            }
        }
        GUARDS.fetch_add(block.is_guarded.into(), Relaxed);
        Ok(block)
    }

    /// # Safety
    /// The block is not in use any more.
    unsafe fn unmap(&self) {
        // SAFETY: the block's pages and its guard are a mapping of their own, not in use, as demanded.
        unsafe { pages::unmap(self.start, self.size) };
        GUARDS.fetch_sub(self.is_guarded.into(), Relaxed);
    }

    /// The unused bytes on the block's first and last page, which hold the canaries.
    fn gaps(&self) -> [Range<usize>; 2] {
        let (page, stop) = (os::page_size(), self.address + self.asked);
        [round_down(self.address, page)..self.address, stop..round_up(stop, page).unwrap_or(stop)]
    }

    fn distance(&self, address: usize) -> usize {
        let end = self.address + self.asked;
        if address < self.address { self.address - address } else { (address + 1).saturating_sub(end) }
    }

    /// # Safety
    /// The block's pages are accessible, and only the block on them is in use.
    unsafe fn put_canaries(&self) {
        for at in self.gaps().into_iter().flatten() {
            // SAFETY: the gaps lie on the block's pages, beside it.
            unsafe { with_exposed_provenance_mut::<u8>(at).write(canary(at)) };
        }
    }

    /// The address of a modified byte next to the block: the nearest behind it, otherwise one before it.
    ///
    /// # Safety
    /// The canaries were written, and the block's pages are accessible.
    unsafe fn damage(&self) -> Option<usize> {
        let [mut before, mut behind] = self.gaps();
        // SAFETY: the gaps lie on the block's pages. Volatile, because other threads that write there are the bug to be found.
        let changed = |&at: &usize| unsafe { with_exposed_provenance_mut::<u8>(at).read_volatile() != canary(at) };
        behind.find(changed).or_else(|| before.rfind(changed))
    }
}

/// Differs from its neighbors and is rarely what a program writes; never zero, so that a search for a missing
/// terminator runs into the guard.
fn canary(address: usize) -> u8 {
    (address as u8).wrapping_mul(0x3B) ^ 0xC5 | 1
}

/// Whether another guard leaves the process the mappings that it needs.
fn may_guard() -> bool {
    let (part, of) = PART_OF_MAPPINGS;
    let allowed = os::mapping_limit().map_or(usize::MAX, |limit| limit / MAPPINGS_OF_A_BLOCK / of * part);
    GUARDS.load(Relaxed) < allowed
}

/// Freed blocks that stay inaccessible, oldest first, and the damage found.
struct Kept {
    /// Its capacity is the most that `keep` allows, so that a free allocates nothing (law 5).
    queue: VecDeque<GuardedBlock>,
    /// Bytes of the blocks in the queue, guards included.
    bytes: usize,
    found: Vec<Overrun>,
}

/// See the module.
pub struct Guarded {
    options: GuardedOptions,
    ledger: Arc<Ledger<GuardedBlock>>,
    kept: Lock<Kept>,
    counts: Counts,
}

impl Guarded {
    /// Creates a source of guarded blocks.
    pub fn new(options: GuardedOptions) -> Arc<Self> {
        // A block and its guard have two pages at least.
        let most = (options.keep / (2 * os::page_size())).min(KEPT_MAX);
        let (queue, found) = (VecDeque::with_capacity(most), Vec::with_capacity(FOUND_MAX));
        let guarded = Arc::new(Self {
            options,
            ledger: Ledger::new(),
            kept: Lock::new(Kept { queue, bytes: 0, found }),
            counts: Counts::default(),
        });
        // SAFETY: it is not moved before it is dropped, which unregisters it.
        unsafe { purger::enter(&raw const guarded.kept) };
        guarded
    }

    /// The overruns found since the last call, of freed blocks and of live ones.
    pub fn check(&self) -> Vec<Overrun> {
        let mut found = std::mem::replace(&mut self.kept.lock().found, Vec::with_capacity(FOUND_MAX));
        self.ledger.each(|address, block| {
            // SAFETY: a block leaves the ledger before its pages are unmapped, and the ledger's lock is held.
            unsafe {
                if let Some(at) = block.damage() {
                    found.push(Overrun { address, asked: block.asked, at });
                    block.put_canaries(); // it is reported once
                }
            }
        });
        found
    }

    /// The block nearest to `address`, unless `address` is out of reach of its guard. If two blocks border on the same
    /// guard, the nearer one is the more likely. Allocates nothing, so that the handler of a memory fault may call it.
    pub fn near(&self, address: usize) -> Option<Near> {
        let mut nearest: Option<(usize, Near)> = None;
        let mut look = |block: &GuardedBlock, freed| {
            let away = block.distance(address);
            let reach = if block.is_guarded { os::page_size() } else { 0 };
            if away <= reach && nearest.is_none_or(|(least, _)| away < least) {
                nearest = Some((away, Near { address: block.address, asked: block.asked, freed }));
            }
        };
        self.ledger.each(|_, block| look(&block, false));
        self.kept.lock().queue.iter().for_each(|block| look(block, true));
        nearest.map(|(_, near)| near)
    }

    fn take(&self, request: Request) -> Result<GuardedBlock, AllocError> {
        request.check()?;
        let block = GuardedBlock::map(self.options.side, request)?;
        // SAFETY: the block was just mapped and is not in use.
        let undo = |_: &AllocError| unsafe { block.unmap() };
        self.ledger.enter(pointer(block.address), block.asked, block).inspect_err(undo)?;
        Ok(block)
    }

    /// Releases the block that was freed first; returns its bytes.
    fn let_go_of_the_oldest(&self) -> Option<usize> {
        let mut kept = self.kept.lock();
        let block = kept.queue.pop_front()?;
        kept.bytes -= block.size;
        drop(kept);
        // SAFETY: it was freed, and is in neither list.
        unsafe { block.unmap() };
        Some(block.size)
    }

    /// Releases all freed blocks; returns their bytes.
    fn let_go(&self) -> usize {
        std::iter::from_fn(|| self.let_go_of_the_oldest()).sum()
    }
}

fn pointer(address: usize) -> NonNull<u8> {
    // SAFETY: no mapping lies at zero.
    unsafe { NonNull::new_unchecked(with_exposed_provenance_mut(address)) }
}

// SAFETY: a block's pages are a mapping of its own until it is freed, and read zero.
unsafe impl Allocator for Guarded {
    fn describe(&self) -> Description {
        let side = if self.options.side == Side::After { "after" } else { "before" };
        Description::of("guarded").named("side", side).named("keep", Value::size(self.options.keep))
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        let again = |_| {
            self.let_go();
            self.take(request)
        };
        let block = self.take(request).or_else(again).inspect_err(|&error| failure::pass_on(error))?;
        self.counts.served(block.asked);
        Ok(Block { address: pointer(block.address), size: block.asked, zeroed: true })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        let Some(block) = self.ledger.leave(address) else { return };
        self.counts.freed(block.asked);
        // SAFETY: nobody uses the block any more, as demanded; it was in the ledger, so its pages are mapped and accessible.
        unsafe {
            if let Some(at) = block.damage() {
                let found = &mut self.kept.lock().found;
                if found.len() < FOUND_MAX {
                    found.push(Overrun { address: block.address, asked: block.asked, at });
                }
            }
            let keeps = self.options.keep >= block.size && os::protect(block.start, block.size, false).is_ok();
            if !keeps {
                return block.unmap();
            }
        }
        loop {
            let mut kept = self.kept.lock();
            if kept.bytes + block.size <= self.options.keep && kept.queue.len() < kept.queue.capacity() {
                kept.bytes += block.size;
                return kept.queue.push_back(block);
            }
            drop(kept);
            self.let_go_of_the_oldest();
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        self.ledger.get(address).map_or(0, |block| block.asked)
    }

    fn trim(&self) -> usize {
        self.let_go()
    }

    fn stats(&self) -> Stats {
        let (counts, idle, mut active) = (self.counts.stats(), self.kept.lock().bytes, 0);
        self.ledger.each(|_, block| active += block.size);
        active = active.max(counts.in_use);
        Stats { active, idle, mapped: active + idle, ..counts }
    }

    fn list(&self) -> Option<&dyn BlockList> {
        Some(&*self.ledger)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        purger::leave(&raw const self.kept);
        self.let_go();
    }
}
