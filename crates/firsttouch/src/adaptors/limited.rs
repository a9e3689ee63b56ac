//! A budget in bytes: a request that would exceed it is refused, with the bytes in use, the budget, and the lines whose
//! blocks fill it.

#![allow(unsafe_code)] // Safety: every block is the upstream's, and goes back to it.

use super::accounts::Accounts;
use super::budget::Budget;
use super::lines::{self, LINES_FROM, listed};
use crate::allocator::{AllocError, Allocator, Block, BlockList, Description, Limit, Request};
use crate::description::Value;
use crate::factory::Arguments;
use crate::failure;
use crate::fork::{self, FORKING};
use crate::ledger::Ledger;
use crate::os;
use crate::size::Bytes;
use crate::spec::{MakeResult, NONE, ON_A_POOL, OptionKind, Spec, opt};
use crate::stats::Stats;
use crate::sync::OnceBox;
use crate::sync::lock::Lock;
use std::borrow::Cow;
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

/// Bytes beyond a budget for an interpreter's own requests. The smaller a request, the more of them it may use.
const SPARE: usize = 8 << 20;
const SPARE_PART: usize = 32;

/// Until limits, and their use by others, are read again. That takes a tenth of a millisecond.
const READ_AGAIN: Duration = Duration::from_millis(50);

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
pub(super) struct Charge {
    pub(super) asked: usize,
    /// The line that made the block: see [`lines::site`].
    pub(super) site: u64,
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
        Charge { asked, site: lines::site(asked), forks: fork::forks() }
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
