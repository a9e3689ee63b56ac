//! Blocks next to inaccessible guard pages: a read or write past the end stops at once, with SIGSEGV.
//!
//! A block ends as close to its guard as its alignment and the upstream's allow, or begins right behind it. The rest of
//! its first and last page holds canaries, which are checked when the block is freed and by [`Guarded::check`]. Freed
//! blocks may be kept inaccessible for a while. A guard never splits a huge page.
//!
//! A guard is a mapping of its own, and the system bounds their number. Guards take at most [`PART_OF_MAPPINGS`] of it, and
//! blocks beyond that have none: the program runs on.

#![allow(unsafe_code)] // Safety: a block and its guard lie on pages of their own, which belong to no other block.

use crate::allocator::{AllocError, Allocator, Block, Description, Limit, Request, find};
use crate::description::Value;
use crate::factory::Arguments;
use crate::failure;
use crate::heap;
use crate::heap::purger::{self, Purgeable};
use crate::heap::segment;
use crate::heap::segment::huge_page;
use crate::layout::{round_down, round_up};
use crate::ledger::Ledger;
use crate::os;
use crate::sources::Pages;
use crate::spec::{DefaultValue, Made, OptionKind, Spec, opt, upstream};
use crate::stats::Stats;
use crate::sync::lock::Lock;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The declaration.
pub const SPECS: &[Spec] = &[Spec {
    name: "guarded",
    summary: "an allocator that places each array at an inaccessible page, so that an overrun stops the process.",
    options: &[
        upstream("pages()", "Where memory comes from. The default is ``pages()``."),
        opt(
            "side",
            OptionKind::Word(&["after", "before"]),
            DefaultValue::Is(Value::Text(Cow::Borrowed("after"))),
            "On which side of the array the inaccessible page lies.",
        ),
        opt(
            "keep",
            OptionKind::Size,
            DefaultValue::Is(Value::Integer(0)),
            "Bytes of freed arrays that stay inaccessible, so that a use after free stops the process as well.",
        ),
    ],
    positional: 1,
    notes: "Overruns are caught at once and at no cost per access, but every array takes two pages and two system \
        calls more. Behind an array that does not end at a multiple of its alignment (64 bytes, or that of \
        :func:`aligned` below) lies a gap, in which they are found when the array is freed.",
    example: "\
>>> ft.guarded(keep=\"1 MiB\").zeros(3)
array([0., 0., 0.])",
}];

pub fn make(arguments: &Arguments) -> Made {
    let side = if arguments.text("side") == Some("before") { Side::Before } else { Side::After };
    let options = GuardedOptions { side, keep: arguments.number("keep").unwrap_or_default() };
    Ok(Guarded::new(arguments.upstream()?, options))
}

/// The part of the mappings that a process may have (numerator, denominator). The rest is for threads' stacks, libraries
/// and files, which have to be mapped, too.
const PART_OF_MAPPINGS: (usize, usize) = (3, 4);
/// A guard and the pages of its block.
const MAPPINGS_OF_A_BLOCK: usize = 2;
/// The most overruns that are kept until they are queried.
const FOUND_MAX: usize = 256;

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
    /// Bytes of freed blocks that are kept inaccessible; the oldest is released first. [`Allocator::trim`] releases
    /// all.
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

/// A block, its pages and its guard, within a block of the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    /// The address of the upstream's block.
    base: usize,
    guard: usize,
    /// Zero where there is no guard.
    guard_size: usize,
    /// The bounds of the block's pages.
    first: usize,
    end: usize,
    address: usize,
    asked: usize,
}

impl Room {
    /// The layout of a room at address 0, its size and its alignment. The guard occupies a unit of its own: a page, or a
    /// huge page where the block may lie on huge pages. `None` if the size overflows.
    fn plan(side: Side, request: Request, unit: usize) -> Option<(Self, usize, usize)> {
        let (asked, align) = (request.size(), request.align());
        let least = align.max(unit);
        let (guard, first, end, address, total) = match side {
            Side::After => {
                let end = round_up(asked, unit)?;
                // Aligned, because the end and the unit are. No larger than the block's pages.
                let address = end - round_up(asked, align.min(unit))?;
                (end, 0, end, address, end.checked_add(unit)?)
            }
            Side::Before => {
                let end = least.checked_add(round_up(asked, os::page_size())?)?;
                (least - unit, least, end, least, end)
            }
        };
        Some((Self { base: 0, guard, guard_size: unit, first, end, address, asked }, total, least))
    }

    fn moved_to(self, base: usize) -> Self {
        let Self { guard, guard_size, first, end, address, asked, .. } = self;
        let [guard, first, end, address] = [guard, first, end, address].map(|offset| base + offset);
        Self { base, guard, guard_size, first, end, address, asked }
    }

    /// A block of the upstream as it is.
    fn unguarded(block: Block, asked: usize) -> Self {
        let address = block.address.as_ptr() as usize;
        let end = address + asked;
        Self { base: address, guard: end, guard_size: 0, first: address, end, address, asked }
    }

    /// The pages of the block and its guard, which are adjacent.
    fn pages(&self) -> Range<usize> {
        self.first.min(self.guard)..self.end.max(self.guard + self.guard_size)
    }

    /// The unused bytes on the block's first and last page, which hold the canaries.
    fn gaps(&self) -> [Range<usize>; 2] {
        let page = os::page_size();
        let (start, stop) = (self.address, self.address + self.asked);
        [round_down(start, page).max(self.first)..start, stop..round_up(stop, page).unwrap_or(stop).min(self.end)]
    }

    /// The same block with `size` bytes; `None` if a new block would end nearer to the guard or to the end of its
    /// pages.
    fn resized(&self, size: usize) -> Option<Self> {
        let stop = self.address.checked_add(size).filter(|&stop| stop <= self.end)?;
        let before = self.guard < self.first;
        let gap = self.end - stop;
        let near = if before { os::page_size() } else { (self.end - self.address - self.asked + 1).max(64) };
        (gap < near && size > 0).then_some(Self { asked: size, ..*self })
    }

    fn distance(&self, address: usize) -> usize {
        let end = self.address + self.asked;
        if address < self.address { self.address - address } else { (address + 1).saturating_sub(end) }
    }

    /// Makes the guard inaccessible and writes the canaries.
    ///
    /// # Safety
    /// The room was just allocated.
    unsafe fn close(&self) -> Result<(), os::Errno> {
        // SAFETY: the guard's pages were just allocated with the block, and are never in use.
        unsafe {
            os::protect(self.guard, self.guard_size, false)?;
            self.put_canaries();
        }
        GUARDS.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Makes all of it accessible again.
    ///
    /// # Safety
    /// The block is not in use any more.
    unsafe fn open(&self) -> Result<(), os::Errno> {
        if self.guard_size > 0 {
            let pages = self.pages();
            // SAFETY: nobody uses these pages.
            unsafe { os::protect(pages.start, pages.len(), true)? };
            GUARDS.fetch_sub(1, Relaxed);
        }
        Ok(())
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

/// Freed blocks that stay inaccessible, oldest first, and the damage found.
struct Kept {
    /// Has room for every block that was not returned yet, so that a free allocates nothing (law 5).
    queue: VecDeque<Room>,
    /// Bytes of the blocks in the queue, guards included.
    bytes: usize,
    /// Blocks that were not returned to the upstream yet.
    rooms: usize,
    found: Vec<Overrun>,
}

impl Kept {
    /// Reserves room for another block.
    fn admit(&mut self, asked: usize) -> Result<(), AllocError> {
        let more = self.rooms + 1 - self.queue.len();
        self.queue.try_reserve(more).map_err(|_| AllocError::new(asked, Limit::Upstream))?;
        self.rooms += 1;
        Ok(())
    }

    fn push(&mut self, room: Room) {
        self.bytes += room.pages().len();
        self.queue.push_back(room);
    }

    /// Removes the oldest block, if more than `keep` bytes are kept.
    fn pop(&mut self, keep: usize) -> Option<Room> {
        let room = if self.bytes > keep { self.queue.pop_front() } else { None }?;
        self.bytes -= room.pages().len();
        Some(room)
    }
}

/// See the module.
pub struct Guarded {
    upstream: Arc<dyn Allocator>,
    options: GuardedOptions,
    ledger: Arc<Ledger<Room>>,
    kept: Lock<Kept>,
    blocks: AtomicUsize,
    in_use: AtomicUsize,
    allocations: AtomicU64,
    allocated: AtomicU64,
}

fn pointer(address: usize) -> NonNull<u8> {
    // SAFETY: only addresses of the upstream's blocks are passed.
    unsafe { NonNull::new_unchecked(with_exposed_provenance_mut(address)) }
}

/// Whether another guard leaves the process the mappings that it needs.
fn may_guard() -> bool {
    let (part, of) = PART_OF_MAPPINGS;
    let allowed = os::mapping_limit().map_or(usize::MAX, |limit| limit / MAPPINGS_OF_A_BLOCK / of * part);
    GUARDS.load(Relaxed) < allowed
}

impl Guarded {
    /// Guards blocks of `upstream`.
    pub fn new(upstream: Arc<dyn Allocator>, options: GuardedOptions) -> Arc<Self> {
        let found = Vec::with_capacity(FOUND_MAX);
        let guarded = Arc::new(Self {
            upstream,
            options,
            ledger: Ledger::new(),
            kept: Lock::new(Kept { queue: VecDeque::new(), bytes: 0, rooms: 0, found }),
            blocks: AtomicUsize::new(0),
            in_use: AtomicUsize::new(0),
            allocations: AtomicU64::new(0),
            allocated: AtomicU64::new(0),
        });
        let address = Arc::as_ptr(&guarded);
        // SAFETY: it is not moved before it is dropped, which unregisters it.
        unsafe { purger::enter(address) };
        guarded
    }

    /// The overruns found since the last call, of freed blocks and of live ones.
    pub fn check(&self) -> Vec<Overrun> {
        let mut found = std::mem::replace(&mut self.kept.lock().found, Vec::with_capacity(FOUND_MAX));
        self.ledger.each(|address, room| {
            // SAFETY: a block leaves the ledger before its room is freed, and the ledger's lock is held.
            unsafe {
                if let Some(at) = room.damage() {
                    found.push(Overrun { address, asked: room.asked, at });
                    room.put_canaries(); // it is reported once
                }
            }
        });
        found
    }

    /// The block nearest to `address`, unless `address` is out of reach of its guard. If two blocks border on the same
    /// guard, the nearer one is the more likely. Allocates nothing, so that the handler of a memory fault may call it.
    pub fn near(&self, address: usize) -> Option<Near> {
        let mut nearest: Option<(usize, Near)> = None;
        let mut look = |room: &Room, freed| {
            let away = room.distance(address);
            if away <= room.guard_size && nearest.is_none_or(|(least, _)| away < least) {
                nearest = Some((away, Near { address: room.address, asked: room.asked, freed }));
            }
        };
        self.ledger.each(|_, room| look(&room, false));
        self.kept.lock().queue.iter().for_each(|room| look(room, true));
        nearest.map(|(_, near)| near)
    }

    /// # Safety
    /// The block is listed, or was until now.
    unsafe fn inspect(&self, room: &Room) {
        // SAFETY: its pages are still accessible.
        if let Some(at) = unsafe { room.damage() } {
            let mut kept = self.kept.lock();
            if kept.found.len() < FOUND_MAX {
                kept.found.push(Overrun { address: room.address, asked: room.asked, at });
            }
        }
    }

    /// Allocates a room, with its guard if the process has mappings for one. Also returns whether the block reads zero.
    fn take(&self, request: Request) -> Result<(Room, bool), AllocError> {
        if !may_guard() {
            return self.take_unguarded(request);
        }
        match self.take_guarded(request) {
            Err(error) if os::mappings_are_short() => self.take_unguarded(request).map_err(|_| error),
            taken => taken,
        }
    }

    fn take_unguarded(&self, request: Request) -> Result<(Room, bool), AllocError> {
        let block = self.upstream.allocate(request)?;
        Ok((Room::unguarded(block, request.size()), block.zeroed))
    }

    fn take_guarded(&self, request: Request) -> Result<(Room, bool), AllocError> {
        let (page, huge) = (os::page_size(), huge_page());
        let small = request.size().checked_add(page).is_some_and(|size| size < huge);
        let mut taken = self.ask(request, if small { page } else { huge })?;
        // Of an upstream that is a pool over pages, too.
        let of_pages = || find::<Pages>(&self.upstream).is_some_and(|pages| pages.is_huge(pointer(taken.0.base)));
        if small && (segment::is_huge(taken.0.base) || of_pages()) {
            // SAFETY: it was just allocated and is not in use.
            unsafe { self.upstream.deallocate(pointer(taken.0.base)) };
            taken = self.ask(request, huge)?;
        }
        let room = taken.0;
        // SAFETY: it was just allocated and is not in use.
        unsafe {
            room.close().map_err(|error| {
                self.upstream.deallocate(pointer(room.base));
                heap::refused(request.size(), error)
            })?;
        }
        Ok(taken)
    }

    /// Asks the upstream for a room whose guard has `unit` bytes.
    fn ask(&self, request: Request, unit: usize) -> Result<(Room, bool), AllocError> {
        let too_large = || AllocError::new(request.size(), Limit::Size);
        let (plan, total, align) = Room::plan(self.options.side, request, unit).ok_or_else(too_large)?;
        // Bytes that are only there for alignment need not be zeroed.
        let zeroed = request.is_zeroed() && plan.guard.min(plan.first) == 0;
        let padded = Request::bytes(total).with_zeroed(zeroed).aligned(align).map_err(|_| too_large())?;
        padded.check().map_err(|error| AllocError { asked: request.size(), ..error })?;
        let block = self.upstream.allocate(padded).map_err(|error| AllocError { asked: request.size(), ..error })?;
        Ok((plan.moved_to(block.address.as_ptr() as usize), block.zeroed))
    }

    /// Returns a room to the upstream. If the system refuses to make it accessible again, it is kept for another
    /// attempt.
    ///
    /// # Safety
    /// The block is no longer in use, and is not listed.
    unsafe fn give_back(&self, room: Room) -> bool {
        // SAFETY: as demanded.
        unsafe {
            if room.open().is_err() {
                self.kept.lock().push(room);
                return false;
            }
            self.upstream.deallocate(pointer(room.base));
        }
        self.kept.lock().rooms -= 1;
        true
    }

    /// Releases the oldest freed blocks while more than `keep` bytes are kept; returns the bytes released.
    fn let_go(&self, keep: usize) -> usize {
        let mut gone = 0;
        loop {
            let oldest = self.kept.lock().pop(keep);
            let Some(room) = oldest else { return gone };
            // SAFETY: it was freed, and is in neither list.
            if !unsafe { self.give_back(room) } {
                return gone;
            }
            gone += room.pages().len();
        }
    }
}

// SAFETY: a block's pages are a block of the upstream, so they are exclusively its own until it is freed.
unsafe impl Allocator for Guarded {
    fn describe(&self) -> Description {
        let side = if self.options.side == Side::After { "after" } else { "before" };
        Description::of("guarded")
            .with(self.upstream.describe())
            .named("side", side)
            .named("keep", Value::size(self.options.keep))
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        let refused = |error| {
            failure::pass_on(error);
            error
        };
        request.check().map_err(refused)?;
        // The upstream would align the pages, but not the block in them. Both alignments were checked.
        let request = request.aligned(request.align().max(self.upstream.alignment())).unwrap_or(request);
        self.kept.lock().admit(request.size()).map_err(refused)?;
        let before = failure::now();
        let again = |_| {
            self.trim();
            failure::retract(before);
            self.take(request)
        };
        let (room, zero) = self.take(request).or_else(again).or_else(again).map_err(|error| {
            self.kept.lock().rooms -= 1;
            refused(error)
        })?;
        let address = pointer(room.address);
        self.ledger.enter(address, request.size(), room).map_err(|error| {
            // SAFETY: the block was just allocated and is not in use.
            unsafe { self.give_back(room) };
            refused(error)
        })?;
        if request.is_zeroed() && !zero {
            // SAFETY: as above.
            unsafe { address.write_bytes(0, request.size()) };
        }
        self.blocks.fetch_add(1, Relaxed);
        self.in_use.fetch_add(request.size(), Relaxed);
        self.allocations.fetch_add(1, Relaxed);
        self.allocated.fetch_add(request.size() as u64, Relaxed);
        Ok(Block { address, size: request.size(), zeroed: request.is_zeroed() || zero })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: the caller's promise; a block that is not listed was the upstream's own.
        unsafe {
            let Some(room) = self.ledger.leave(address) else { return self.upstream.deallocate(address) };
            self.inspect(&room);
            self.blocks.fetch_sub(1, Relaxed);
            self.in_use.fetch_sub(room.asked, Relaxed);
            let pages = room.pages();
            let keeps = room.guard_size > 0 && self.options.keep >= pages.len();
            if keeps && os::protect(pages.start, pages.len(), false).is_ok() {
                self.kept.lock().push(room);
            } else {
                self.give_back(room);
            }
        }
        self.let_go(self.options.keep);
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: the caller's promise.
        self.ledger.get(address).map_or_else(|| unsafe { self.upstream.usable_size(address) }, |room| room.asked)
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise; the canaries that are added or overwritten at the block's end lie on its own
        // pages.
        unsafe {
            let Some(room) = self.ledger.get(address) else { return self.upstream.resize_in_place(address, size) };
            let Some(resized) = room.resized(size) else { return false };
            self.inspect(&room);
            resized.put_canaries(); // first: afterwards the gaps of both rooms hold canaries
            self.ledger.set(address, resized);
            self.in_use.fetch_add(size.wrapping_sub(room.asked), Relaxed);
            true
        }
    }

    /// What is kept goes to the upstream, and then what the upstream keeps to the system. To make a guard accessible again
    /// takes memory where that is bounded (`RLIMIT_DATA`), which the upstream may have.
    fn trim(&self) -> usize {
        let mut gone = 0;
        loop {
            let (released, purged) = (self.let_go(0), self.upstream.trim());
            gone += released.max(purged);
            if released + purged == 0 || self.kept.lock().queue.is_empty() {
                return gone;
            }
        }
    }

    fn stats(&self) -> Stats {
        let stats = self.upstream.stats();
        if stats == Stats::default() {
            return stats; // the upstream keeps none
        }
        let kept = self.kept.lock().bytes.min(stats.active);
        let allocations = self.allocations.load(Relaxed);
        Stats {
            in_use: self.in_use.load(Relaxed),
            active: stats.active - kept,
            idle: stats.idle + kept,
            blocks: self.blocks.load(Relaxed),
            allocations,
            // The upstream also counts other users' requests, and blocks that could not be guarded.
            recycled: stats.recycled.min(allocations),
            allocated_bytes: self.allocated.load(Relaxed),
            ..stats
        }
    }

    fn small_limit(&self) -> usize {
        0 // it serves small arrays, too
    }

    fn upstream(&self) -> Option<&Arc<dyn Allocator>> {
        Some(&self.upstream)
    }

    fn must_stay(&self) -> bool {
        self.ledger.any()
    }

    fn owns(&self, address: NonNull<u8>) -> Option<bool> {
        Some(self.ledger.get(address).is_some())
    }
}

impl Purgeable for Guarded {
    fn trim_idle(&self) {} // kept blocks are never written, so a fork copies none of them

    fn hold(&self) {
        self.kept.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` acquired it.
        unsafe { self.kept.release() }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        purger::leave(std::ptr::from_ref(self));
        self.trim();
        if !self.kept.lock().queue.is_empty() {
            // The system refused to make memory accessible again, which the upstream must not give out (law 8).
            std::mem::forget(self.upstream.clone());
        }
    }
}
