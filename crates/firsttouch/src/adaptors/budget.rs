//! The budgets of `limited`. One that is found is what machine, container and process leave, less a reserve.

use crate::os::{self, MemoryBound};
use crate::size::Bytes;
use std::fmt;

/// The part of a bound that is kept in reserve for other memory: code and libraries loaded later, objects of the interpreter, small
/// arrays, page tables, and a pool's memory beyond its arrays.
const RESERVED_PART: usize = 16;
const LEAST_RESERVE: usize = 64 << 20;
const MOST_RESERVE: usize = 4 << 30;

/// A budget in bytes, given as a number or found on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The number that was given, or the most that may be found.
    given: usize,
    pub(super) is_auto: bool,
    pub(super) bounds: [Option<ReadBound>; 4],
    /// The bytes that the run's other processes hold of the budget. Bounds of this process alone do not count them.
    others: usize,
}

/// A bound as it was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadBound {
    /// Bytes in use of it outside of the budget.
    pub(super) bound: MemoryBound,
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
    pub(super) fn read_again(&mut self, now: [Option<MemoryBound>; 4], ours: usize, others: usize) {
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

/// Where a budget was found, as the end of a sentence; empty if it was given.
impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(read) = self.tightest().filter(|read| self.left(read) <= self.given) else { return Ok(()) };
        write!(f, "; {} otherwise, and {} are kept in reserve", read.bound, Bytes(read.reserve()))
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
