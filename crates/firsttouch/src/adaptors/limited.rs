//! A budget in bytes: a request that would exceed it is refused, with the bytes in use, the budget, and the lines whose
//! blocks fill it.

#![allow(unsafe_code)] // Safety: every block is the upstream's, and goes back to it.

use super::accounts::Accounts;
use crate::allocator::{AllocError, Allocator, Block, BlockList, Description, Limit, Request};
use crate::description::Value;
use crate::factory::Arguments;
use crate::failure;
use crate::fork::{self, FORKING};
use crate::ledger::Ledger;
use crate::os::{self, MemoryBound};
use crate::size::Bytes;
use crate::spec::{MakeResult, NONE, ON_A_POOL, OptionKind, Spec, opt};
use crate::stats::Stats;
use crate::sync::lock::Lock;
use crate::sync::{OnceBox, thread};
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::{self, Write};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The declaration.
pub const SPECS: &[Spec] = &[Spec {
    name: "limited",
    summary: "an allocator that raises :exc:`MemoryError` beyond a budget.",
    options: &[
        ON_A_POOL,
        opt(
            "budget",
            OptionKind::Budget,
            Some(Value::Text(Cow::Borrowed(AUTO))),
            "Bytes that arrays may hold at a time, more than 0. Text such as ``\"4 GiB\"`` is accepted. ``\"auto\"`` is \
             what the machine or the container has left now, less a reserve.",
        ),
        opt("at_most", OptionKind::Size, NONE, "Upper bound in bytes on the budget. Where that is ``\"auto\"``, ``repr`` shows what was found."),
    ],
    positional: 2,
    notes: "\
Bytes are counted as requested; what a pool keeps idle is not counted. Budgets nest. The :exc:`MemoryError` of \
firsttouch's constructors states what was requested, what is in use, and which lines made the largest living blocks. \
Under :func:`use` and :func:`install`, NumPy raises its own error; once a budget exists, that error has the same as a \
note, which tracebacks show. :func:`last_failure` has it as well, also after ``ndarray.resize``, whose error says nothing. Below 128 KiB \
one block in 16 is listed, for 16 of them.

``\"auto\"`` is the least of what is left of the machine's memory (without swap), of the memory cgroup and all its \
ancestors, of ``RLIMIT_AS`` and of ``RLIMIT_DATA``, when the allocator is made. The limits, and what others use of the \
machine's memory and of the cgroup, are read again while it serves. From that it keeps a reserve of a sixteenth of the bound (at \
least 64 MiB, at most 4 GiB, and at most half of what is left) for what the budget does not see: code, Python's objects, \
small arrays, page tables, and what other programs take later. Arrays count in full, also those whose pages are never \
touched, such as sparse ``np.zeros``. The processes of ``firsttouch run --limit`` share one budget; elsewhere each process \
has its own: bound those that grow at the same time by `at_most`.",
    example: "\
>>> ft.limited(ft.malloc(), \"4 GiB\")
limited(malloc(), '4 GiB')
>>> ft.limited(ft.malloc(), at_most=\"1 MiB\")
limited(malloc(), at_most='1 MiB')",
}];

/// How the front finds the source line that makes a request.
static CALL_SITES: OnceBox<CallSites> = OnceBox::new();

/// Registers how source lines are found, for the messages of `limited`. The first is kept.
pub fn set_call_sites(call_sites: CallSites) {
    let _ = CALL_SITES.set(Box::new(call_sites));
}

pub fn make(arguments: &Arguments) -> MakeResult {
    let at_most = arguments.number("at_most").unwrap_or(usize::MAX);
    let upstream = arguments.upstream()?; // before the budget is read, as it may take memory
    let budget = match arguments.number("budget") {
        Some(bytes) => Budget::from(bytes.min(at_most)),
        None => Budget::auto(at_most),
    };
    Ok(Limited::new(upstream, budget))
}

/// The word that stands for [`Budget::auto`] in expressions.
pub const AUTO: &str = "auto";

/// The part of a bound that is kept in reserve for other memory: code and libraries loaded later, objects of the interpreter, small
/// arrays, page tables, and a pool's memory beyond its arrays.
const RESERVED_PART: usize = 16;
const LEAST_RESERVE: usize = 64 << 20;
const MOST_RESERVE: usize = 4 << 30;

/// Bytes beyond a budget for an interpreter's own requests. The smaller a request, the more of them it may use.
const SPARE: usize = 8 << 20;
const SPARE_PART: usize = 32;

/// A budget in bytes, given as a number or found on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The number that was given, or the most that may be found.
    given: usize,
    is_auto: bool,
    bounds: [Option<ReadBound>; 4],
    /// The bytes that the run's other processes hold of the budget. Bounds of this process alone do not count them.
    others: usize,
}

/// A bound as it was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReadBound {
    /// Bytes in use of it outside of the budget.
    bound: MemoryBound,
    /// The same at the start. Less is never assumed, as the budget's own blocks may not be resident yet.
    at_start: usize,
}

impl From<usize> for Budget {
    fn from(bytes: usize) -> Self {
        Self { given: bytes, is_auto: false, bounds: [None; 4], others: 0 }
    }
}

impl Budget {
    /// What the machine, the memory cgroup with all its ancestors, `RLIMIT_AS` and `RLIMIT_DATA` leave now, less a
    /// reserve, and at most `at_most`.
    pub fn auto(at_most: usize) -> Self {
        let mut budget = Self { is_auto: true, ..Self::from(at_most) };
        budget.read_again(os::memory_bounds(), 0, 0);
        budget
    }

    /// Takes changed limits, and their use by others. Of `ours`, the bytes that the budget serves, other processes of the run hold
    /// `others`. Shared bounds count all of `ours`; bounds of this process leave `others` out.
    fn read_again(&mut self, now: [Option<MemoryBound>; 4], ours: usize, others: usize) {
        self.others = others;
        for (bound, now) in self.bounds.iter_mut().zip(now).filter(|_| self.is_auto) {
            let Some(now) = now else {
                // Its files may be out of reach, where the program has changed its root.
                *bound = bound.filter(|old| old.bound.is_shared());
                continue;
            };
            let used = now.used.saturating_sub(if now.is_shared() { ours } else { ours.saturating_sub(others) });
            let at_start = bound.map_or(used, |old| old.at_start);
            // Others' address space cannot be told apart from that which the budget's upstream keeps mapped.
            let used = if now.is_shared() { used.max(at_start) } else { at_start };
            *bound = Some(ReadBound { bound: MemoryBound { used, ..now }, at_start });
        }
    }

    /// What a bound leaves for all processes that share the budget.
    fn left(&self, read: &ReadBound) -> usize {
        let others = if read.bound.is_shared() { 0 } else { self.others };
        read.bound.left().saturating_sub(read.reserve()).saturating_add(others)
    }

    fn tightest(&self) -> Option<ReadBound> {
        self.bounds.into_iter().flatten().min_by_key(|read| self.left(read))
    }

    /// The bytes that may be in use at a time.
    pub fn bytes(&self) -> usize {
        self.tightest().map_or(usize::MAX, |read| self.left(&read)).min(self.given).max(self.is_auto.into())
    }
}

impl ReadBound {
    /// At most half of what was left, so that the smallest container has a budget.
    fn reserve(&self) -> usize {
        let part = (self.bound.limit / RESERVED_PART).clamp(LEAST_RESERVE, MOST_RESERVE);
        part.min(self.bound.limit.saturating_sub(self.at_start) / 2)
    }
}

/// Until limits, and their use by others, are read again. That takes a tenth of a millisecond.
const READ_AGAIN: Duration = Duration::from_millis(50);

/// Where a budget was found, as the end of a sentence; empty if it was given.
impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(read) = self.tightest().filter(|read| self.left(read) <= self.given) else { return Ok(()) };
        write!(f, "; {} otherwise, and {} are kept in reserve", read.bound, Bytes(read.reserve()))
    }
}

/// See the module. Requested bytes count, from before the allocation until after the free; an upstream's idle memory does not.
///
/// Processes that [`join`](Self::join) the accounts of a run share the budget. Each of their blocks counts once: a fork's copies
/// are the parent's, and a child that frees one refunds nothing.
pub struct Limited {
    upstream: Arc<dyn Allocator>,
    is_auto: bool,
    /// The budget, and when and after how many forks its limits were read last. Taken under the lock of forks, because its holder
    /// calls the upstream, which takes locks.
    budget: Lock<(Budget, Instant, u32)>,
    allowed: AtomicUsize,
    /// The bytes in use, where they are not the sum of the accounts.
    used: AtomicUsize,
    /// Bytes that an interpreter took beyond the budget, less those freed, since a request last fitted.
    overdrawn: AtomicUsize,
    accounts: OnceBox<&'static Accounts>,
    ledger: Arc<Ledger<Charge>>,
    refused: AtomicU64,
}

#[derive(Clone, Copy)]
struct Charge {
    asked: usize,
    /// The line that made the block, or [`NOT_SAMPLED`].
    site: u64,
    /// The forks before the process that made it.
    forks: u32,
}

impl Limited {
    /// Allows at most `budget` live bytes of `upstream` at once. A budget of 0 serves nothing.
    pub fn new(upstream: Arc<dyn Allocator>, budget: impl Into<Budget>) -> Arc<Self> {
        let budget = budget.into();
        Arc::new(Self {
            upstream,
            is_auto: budget.is_auto,
            allowed: AtomicUsize::new(budget.bytes()),
            budget: Lock::new((budget, Instant::now(), fork::forks())),
            used: AtomicUsize::new(0),
            overdrawn: AtomicUsize::new(0),
            accounts: OnceBox::new(),
            ledger: Ledger::new(),
            refused: AtomicU64::new(0),
        })
    }

    /// Shares the budget with the other processes of a run. It has served nothing yet.
    pub fn join(&self, accounts: &'static Accounts) {
        let _ = self.accounts.set(Box::new(accounts));
        let no_fork = FORKING.lock();
        self.budget.lock().0.bounds = [None; 4];
        drop(no_fork);
        self.read_limits(true);
    }

    /// Notes that this process ends by itself, so that its account explains nothing.
    pub fn leave(&self) {
        if let Some(accounts) = self.accounts.get() {
            accounts.end();
        }
    }

    /// The budget in bytes.
    pub fn budget(&self) -> usize {
        self.allowed.load(Relaxed)
    }

    /// Reads the limits behind a budget that was found, and their use by others: a container's may change while it runs. Unless
    /// that is needed, they are read once in [`READ_AGAIN`], and no thread waits to do so.
    #[cold]
    fn read_limits(&self, is_needed: bool) {
        let Some(_no_fork) = FORKING.try_lock().or_else(|| is_needed.then(|| FORKING.lock())) else { return };
        let (budget, read, forks) = &mut *self.budget.lock();
        let is_child = self.accounts.get().is_some() && std::mem::replace(forks, fork::forks()) != fork::forks();
        if is_child {
            // A fork's copies are the parent's, but take address space here.
            budget.bounds = budget.bounds.map(|read| read.filter(|read| read.bound.is_shared()));
        }
        if is_needed || is_child || read.elapsed() >= READ_AGAIN {
            *read = Instant::now();
            budget.read_again(os::memory_bounds(), self.ours(), self.of_others());
            self.allowed.store(budget.bytes(), Relaxed);
        }
    }

    /// The accounts, if this process has one of them.
    fn accounts(&self) -> Option<&'static Accounts> {
        self.accounts.get().copied().filter(|accounts| accounts.own().is_some())
    }

    /// The counter of the bytes in use.
    fn counter(&self) -> &AtomicUsize {
        self.accounts().map_or(&self.used, |accounts| accounts.sum())
    }

    /// The bytes of the budget that are in use, by all processes that share it.
    pub fn used(&self) -> usize {
        self.counter().load(Relaxed)
    }

    /// The bytes of it that other processes hold.
    fn of_others(&self) -> usize {
        self.accounts().map_or(0, |accounts| self.used().saturating_sub(accounts.used()))
    }

    /// These bytes, and those that the upstream holds besides: idle memory, and the rest of pages.
    fn ours(&self) -> usize {
        let stats = self.upstream.stats();
        self.used() + (stats.active + stats.idle).saturating_sub(stats.in_use)
    }

    /// Charges `more` bytes to the budget, or fails. A request for no more bytes always succeeds. `request` is the whole one.
    fn charge(&self, more: usize, request: Request) -> Result<(), AllocError> {
        if more == 0 {
            return Ok(());
        }
        let (counter, accounts) = (self.counter(), self.accounts());
        let fits = |used: usize| used.checked_add(more).filter(|&sum| sum <= self.budget());
        let is_short = fits(self.used()).is_none();
        if let (Some(accounts), true) = (accounts, is_short) {
            accounts.close_gone();
        }
        if self.is_auto && (is_short || more >= LINES_FROM) {
            self.read_limits(is_short);
        }
        if let Err(used) = counter.fetch_update(Relaxed, Relaxed, fits) {
            if !self.overdraws(more, request) {
                return Err(AllocError::new(request.size(), Limit::Budget { allowed: self.budget(), used }));
            }
            counter.fetch_add(more, Relaxed);
        } else {
            self.overdrawn.store(0, Relaxed);
        }
        if let Some(accounts) = accounts {
            accounts.add(more);
        }
        Ok(())
    }

    /// Whether an interpreter asks, and may have `more` bytes beyond the budget, which may be less than the bytes in use.
    fn overdraws(&self, more: usize, request: Request) -> bool {
        let wanted = request.size().saturating_mul(SPARE_PART);
        let next = |sum: usize| sum.checked_add(more).filter(|_| sum.saturating_add(wanted) <= SPARE);
        request.is_of_interpreter() && self.overdrawn.fetch_update(Relaxed, Relaxed, next).is_ok()
    }

    fn refund(&self, bytes: usize) {
        let less = |sum: usize| (sum > 0).then(|| sum.saturating_sub(bytes));
        let _ = self.overdrawn.fetch_update(Relaxed, Relaxed, less);
        match self.accounts() {
            Some(accounts) => accounts.refund(bytes),
            None => drop(self.used.fetch_sub(bytes, Relaxed)),
        }
    }

    /// The bytes that a block counts in this process: none if another one has made it.
    fn counted(&self, note: Charge) -> usize {
        let is_inherited = self.accounts.get().is_some() && note.forks != fork::forks();
        if is_inherited { 0 } else { note.asked }
    }

    /// Writes what this process holds into its account, from time to time.
    fn account(&self, served: usize) {
        if let Some(accounts) = self.accounts() {
            let (allowed, used) = (self.budget(), accounts.used());
            accounts.write(allowed, served >= LINES_FROM, || {
                accounts.close_gone();
                let listed = listed(&self.ledger);
                format!("{}, of {} that limited() allows{}{listed}", Bytes(used), Bytes(allowed), self.source())
            });
        }
    }

    /// Where the budget was found, and its other users, as the end of a sentence.
    fn source(&self) -> String {
        let (_no_fork, budget) = (FORKING.lock(), self.budget.lock());
        match self.of_others() {
            0 => budget.0.to_string(),
            others => format!("{}; other processes of the run hold {}", budget.0, Bytes(others)),
        }
    }

    /// Records why a request is refused. Called without locks, as finding a place may run the front's code.
    #[cold]
    fn explain(&self, error: AllocError) {
        self.refused.fetch_add(1, Relaxed);
        let listed = listed(&self.ledger);
        failure::explain(error, format!("{error}{}{listed}", self.source()));
    }

    fn note(&self, asked: usize) -> Charge {
        let site = match asked >= LINES_FROM || is_sampled() {
            true => CALL_SITES.get().map_or(0, |sites| (sites.site)()),
            false => NOT_SAMPLED,
        };
        Charge { asked, site, forks: fork::forks() }
    }
}

/// A block without the bytes that the upstream adds: they were not charged, and an adaptor that keeps blocks would use them.
fn exact(block: Block, request: Request) -> Block {
    Block { size: request.size(), ..block }
}

// SAFETY: the upstream keeps the promises of `Allocator`.
unsafe impl Allocator for Limited {
    fn describe(&self) -> Description {
        let limited = Description::of("limited").with(self.upstream.describe());
        match self.is_auto {
            true => limited.with(AUTO).named("at_most", Value::size(self.budget())),
            false => limited.with(Value::size(self.budget())),
        }
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        self.charge(request.size(), request).inspect_err(|&error| self.explain(error))?;
        let note = self.note(request.size());
        let block = self.ledger.allocate(&*self.upstream, request, |_| note);
        self.account(request.size());
        block.map(|block| exact(block, request)).inspect_err(|_| self.refund(request.size()))
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        let note = self.ledger.leave(address);
        // SAFETY: every block is the upstream's, and nobody uses this one any more, as demanded.
        unsafe { self.upstream.deallocate(address) };
        self.refund(note.map_or(0, |note| self.counted(note)));
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: every block is the upstream's, and this one is live, as demanded.
        self.ledger.get(address).map_or_else(|| unsafe { self.upstream.usable_size(address) }, |note| note.asked)
    }

    unsafe fn reallocate(&self, address: NonNull<u8>, request: Request) -> Result<Block, AllocError> {
        // SAFETY: every block is the upstream's, and this one is live, as demanded; the old address is not used after success.
        unsafe {
            let Some(old) = self.ledger.get(address) else { return self.upstream.reallocate(address, request) };
            let asked = self.counted(old);
            request.check().inspect_err(|&error| failure::remember(error))?;
            let more = request.size().saturating_sub(asked);
            self.charge(more, request).inspect_err(|&error| self.explain(error))?;
            let note = self.note(request.size());
            let resize = |_| self.upstream.reallocate(address, request).map(|block| (block, note));
            let resized = self.ledger.relocate(address, request.size(), resize).map(|block| exact(block, request));
            let counted = if resized.is_ok() { request.size() } else { asked };
            self.refund(asked + more - counted);
            self.account(request.size());
            resized
        }
    }

    /// The upstream's, and the budget's refusals among the failures.
    fn stats(&self) -> Stats {
        let stats = self.upstream.stats();
        Stats { failures: stats.failures + self.refused.load(Relaxed), ..stats }
    }

    fn upstream(&self) -> Option<&Arc<dyn Allocator>> {
        Some(&self.upstream)
    }

    fn list(&self) -> Option<&dyn BlockList> {
        Some(&*self.ledger)
    }
}

/// From this size on the line that makes a block is recorded: it costs a fraction of touching the block once. Such requests
/// also have limits read again and accounts written, if it is time.
pub const LINES_FROM: usize = 128 << 10;
/// Of so many smaller blocks, the line of one is recorded, and stands for the others.
const SAMPLED: usize = 16;
const NOT_SAMPLED: u64 = u64::MAX;

/// Whether the line of a small block is recorded: at random, as programs make blocks in turns, and threads the same ones.
pub fn is_sampled() -> bool {
    thread_local!(static LAST: Cell<u32> = Cell::new(thread() as u32));
    let next = LAST.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    LAST.set(next);
    ((next >> 16) as usize).is_multiple_of(SAMPLED)
}

/// Lines that are listed.
const SHOWN: usize = 10;

/// How a front finds the line of its program that makes a request.
#[derive(Clone, Copy)]
pub struct CallSites {
    /// A number for the line; 0 where there is none.
    pub site: fn() -> u64,
    /// The file and the line of such a number, as in `model.py:41`.
    pub place: fn(u64) -> Option<String>,
}

/// The blocks of one line.
#[derive(Clone, Copy, Default)]
struct Line {
    site: u64,
    blocks: usize,
    bytes: usize,
}

impl Line {
    fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
    }
}

/// The lines whose blocks hold the most bytes, one in a row; nothing where there is no block, or no memory for the list.
fn listed(ledger: &Ledger<Charge>) -> String {
    let (mut lines, mut is_complete) = (Vec::<Line>::new(), true);
    ledger.each(|_, Charge { asked, site, .. }| {
        let blocks = if asked < LINES_FROM { SAMPLED } else { 1 };
        let block = Line { site, blocks, bytes: blocks * asked };
        match lines.binary_search_by_key(&site, |line| line.site) {
            _ if site == NOT_SAMPLED => {}
            Ok(at) => lines[at].add(block),
            Err(at) if lines.try_reserve(1).is_ok() => lines.insert(at, block),
            Err(_) => is_complete = false,
        }
    });
    if !is_complete || lines.is_empty() {
        return String::new();
    }
    lines.sort_unstable_by_key(|line| std::cmp::Reverse(line.bytes));
    let mut text = String::from("\n  the largest living blocks:");
    for line in lines.iter().take(SHOWN) {
        let place = CALL_SITES.get().and_then(|sites| (sites.place)(line.site));
        row(&mut text, *line, place.as_deref().unwrap_or("an unknown line"));
    }
    let mut others = Line::default();
    lines.iter().skip(SHOWN).for_each(|line| others.add(*line));
    row(&mut text, others, "other lines");
    text
}

fn row(text: &mut String, Line { blocks, bytes, .. }: Line, place: &str) {
    let mib = bytes as f64 / (1 << 20) as f64;
    let _ = match blocks {
        0 => Ok(()),
        1 => write!(text, "\n    {mib:>10.1} MiB  {place}"),
        _ => write!(text, "\n    {mib:>10.1} MiB  {place} ({blocks} blocks)"),
    };
}

#[cfg(test)]
#[path = "limited_tests.rs"]
mod tests;
