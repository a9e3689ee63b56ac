//! The bytes that each process of a run holds of their common budget, in a memory file of the process that started them.
//! `firsttouch run --limit` waits for the program, and reads the file where the kernel has killed it
//! (`python/firsttouch/tools/cli/budget.py`).
//!
//! The file is an array of accounts. The first has the sum; every process has one, with its number, its bytes, and a text that says
//! what they are. A process that ends closes no account, as it may be killed: at the end of the budget, a process looks which
//! others are gone, and takes their bytes from the sum.

#![allow(unsafe_code)] // Safety: the mapping is never undone, holds all accounts, and is used through atomic words.

use crate::fork;
use crate::heap::purger::{self, Registered};
use crate::os::{self, Errno};
use crate::sync::lock::{AtFork, RawLock};
use std::cell::UnsafeCell;
use std::fs::File;
use std::ptr::with_exposed_provenance;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence};
use std::time::Instant;

/// The name of the memory file.
const NAME: &str = "firsttouch-budget";
/// Accounts of processes that live at the same time. Others do not share the budget: nobody would notice their end.
const COUNT: usize = 1024;
/// The longest text.
const TEXT: usize = (8 << 10) - 40;
/// A text is written again where the process has taken this part of the budget since: a divisor.
const GROWTH_PART: usize = 32;
/// The milliseconds after which it is written again in any case, at the next large request.
const WRITE_EVERY_MS: u64 = 1000;

#[repr(C)]
pub(super) struct Account {
    /// The process that has or had it; 0 if none had.
    process: AtomicU32,
    /// Whether a thread writes the text.
    is_written: AtomicBool,
    /// Whether the process ends by itself, so that its bytes explain no kill.
    has_ended: AtomicBool,
    used: AtomicUsize,
    /// The length of the text; 0 while it is written.
    length: AtomicUsize,
    /// `used` when the text was written, and the milliseconds from the start until then.
    used_then: AtomicUsize,
    written: AtomicU64,
    text: UnsafeCell<[u8; TEXT]>,
}

impl Account {
    /// Makes an account that `process` has this process's, if it still has it.
    fn passes_from(&self, process: u32) -> bool {
        self.process.compare_exchange(process, std::process::id(), Acquire, Relaxed).is_ok()
    }

    /// The same for a process that is gone, which is returned. Of several that notice it, one has the account.
    fn passes_from_gone(&self) -> Option<u32> {
        Some(self.process.load(Relaxed)).filter(|&process| os::has_ended(process) && self.passes_from(process))
    }
}

// SAFETY: `text` is written by the thread that has set `is_written`, and read by another process.
unsafe impl Sync for Account {}

const _: () = assert!(size_of::<usize>() < 8 || size_of::<Account>() == 8 << 10, "budget.py reads it");

/// See the module.
pub struct Accounts {
    /// The first has the sum.
    all: &'static [Account; COUNT],
    /// The number of this process's account; 0 if there is none.
    own: AtomicUsize,
    /// The forks before the process that has it.
    forks: AtomicU32,
    start: Instant,
}

impl Accounts {
    /// Makes the file, which other processes find as long as this one has it open.
    ///
    /// # Errors
    /// If the system refuses it.
    pub fn create() -> Result<File, Errno> {
        os::memory_file(NAME, COUNT * size_of::<Account>())
    }

    /// Maps the file that `process` has open as `number`, for ever, and opens an account for this process.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be mapped.
    pub fn open(process: u32, number: i32) -> Result<&'static Self, Errno> {
        let file = os::find_memory_file(process, number, NAME)?;
        let at = os::map_file(&file, 0, COUNT * size_of::<Account>(), true)?;
        let (own, forks) = (AtomicUsize::new(0), AtomicU32::new(fork::forks()));
        // SAFETY: the file has room for so many, of which any bytes are valid, and is mapped for ever.
        let all = unsafe { &*with_exposed_provenance(at) };
        let accounts: &'static Self = Box::leak(Box::new(Self { all, own, forks, start: Instant::now() }));
        accounts.take();
        purger::enter_once(accounts, &AtomicBool::new(false));
        Ok(accounts)
    }

    fn all(&self) -> impl Iterator<Item = (usize, &Account)> {
        self.all.iter().enumerate().skip(1)
    }

    /// Opens an account for this process, which has one thread: one that it had before an exec, or a new one, or that of a
    /// process that is gone.
    fn take(&self) {
        let is_ours = |account: &Account| account.process.load(Relaxed) == std::process::id() || account.passes_from(0);
        let found = self.all().find(|(_, account)| is_ours(account));
        let found = found.or_else(|| self.all().find(|(_, account)| account.passes_from_gone().is_some()));
        if let Some((_, account)) = found {
            self.close(account);
            account.length.store(0, Relaxed);
            account.used_then.store(0, Relaxed);
            account.written.store(0, Relaxed);
            account.is_written.store(false, Relaxed);
            account.has_ended.store(false, Relaxed);
        }
        self.own.store(found.map_or(0, |(number, _)| number), Relaxed);
    }

    /// The account of this process, if it has one.
    pub(super) fn own(&self) -> Option<&Account> {
        Some(self.own.load(Relaxed)).filter(|&number| number > 0).map(|number| &self.all[number])
    }

    fn close(&self, account: &Account) {
        sub(self.sum(), account.used.swap(0, Relaxed));
    }

    /// Takes the bytes of processes that are gone from the sum.
    pub fn close_gone(&self) {
        for (_, account) in self.all().take_while(|(_, account)| account.process.load(Relaxed) != 0) {
            if account.used.load(Relaxed) > 0
                && let Some(gone) = account.passes_from_gone()
            {
                self.close(account);
                account.process.store(gone, Release); // for who takes it next
            }
        }
    }

    /// The bytes that all processes hold.
    pub fn sum(&self) -> &AtomicUsize {
        &self.all[0].used
    }

    /// The bytes that this process holds.
    pub fn used(&self) -> usize {
        self.own().map_or(0, |account| account.used.load(Relaxed))
    }

    /// Adds bytes to this process's account, which are in the sum already.
    pub fn add(&self, bytes: usize) {
        if let Some(account) = self.own() {
            account.used.fetch_add(bytes, Relaxed);
        }
    }

    /// Takes bytes from this process's account and from the sum.
    pub fn refund(&self, bytes: usize) {
        if let Some(account) = self.own() {
            sub(&account.used, bytes);
        }
        sub(self.sum(), bytes);
    }

    /// Notes that this process ends by itself. Its bytes count until it is gone, as threads may still free them.
    pub fn end(&self) {
        if let Some(account) = self.own() {
            account.has_ended.store(true, Relaxed);
        }
    }

    /// Writes what this process holds, if that is much more than when it was written last, or if that is long ago and a
    /// `large` request was served.
    pub fn write(&self, budget: usize, large: bool, text: impl FnOnce() -> String) {
        let Some(account) = self.own() else { return };
        let (used, then) = (account.used.load(Relaxed), account.used_then.load(Relaxed));
        let (grows, now) = (used.saturating_sub(then) > budget / GROWTH_PART, self.start.elapsed().as_millis() as u64);
        let is_due = grows || (large && now >= account.written.load(Relaxed) + WRITE_EVERY_MS);
        if !is_due || account.is_written.swap(true, Acquire) {
            return;
        }
        let text = text();
        let length = text.len().min(TEXT);
        account.length.store(0, Relaxed);
        fence(Release); // a store alone would not keep the writes of the text behind it
        // SAFETY: only the thread that has set `is_written` writes, and nobody reads in this process.
        unsafe { account.text.get().cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), length) };
        account.length.store(length, Release);
        account.used_then.store(used, Relaxed);
        account.written.store(now, Relaxed);
        account.is_written.store(false, Release);
    }
}

/// Stops at zero, should bytes have been counted in another account by mistake.
fn sub(counter: &AtomicUsize, bytes: usize) {
    let _ = counter.fetch_update(Relaxed, Relaxed, |used| Some(used.saturating_sub(bytes)));
}

impl AtFork for Accounts {
    fn locks(&self, _each: &mut dyn FnMut(&RawLock)) {}

    /// A child has an account of its own, and holds nothing yet: what it inherits is its parent's.
    fn after_fork(&self) {
        if self.forks.swap(fork::forks(), Relaxed) != fork::forks() {
            self.take();
        }
    }
}

impl Registered for Accounts {}
