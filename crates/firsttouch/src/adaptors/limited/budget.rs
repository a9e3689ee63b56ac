//! A budget in bytes, given as a number or found on the machine.

use crate::os::{self, Bound, MemoryBound};
use crate::size::Bytes;
use std::fmt;

/// The word that stands for [`Budget::found`] in expressions.
pub const AUTO: &str = "auto";

/// The part of a bound that is kept in reserve, for what is no array: code and libraries loaded later, objects of the
/// interpreter, small arrays, page tables, and what a pool holds beyond the arrays themselves.
const RESERVED_PART: usize = 16;
const LEAST_RESERVE: usize = 64 << 20;
const MOST_RESERVE: usize = 4 << 30;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    bytes: usize,
    found: Option<Found>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    bound: MemoryBound,
    reserve: usize,
}

impl From<usize> for Budget {
    fn from(bytes: usize) -> Self {
        Self { bytes, found: None }
    }
}

impl Budget {
    /// What the machine, the memory cgroup with all its ancestors, `RLIMIT_AS` and `RLIMIT_DATA` leave now, less a
    /// reserve, and at most `at_most`. It is read here, once.
    pub fn found(at_most: Option<usize>) -> Self {
        let all = os::memory_bounds().into_iter().flatten().map(|bound| Found { bound, reserve: reserve(bound) });
        let tightest = all.min_by_key(Found::left);
        let bytes = tightest.map_or(usize::MAX, |found| found.left()).min(at_most.unwrap_or(usize::MAX));
        Self { bytes: bytes.max(1), found: tightest }
    }

    /// The bytes that may be in use at a time.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it was found, not given.
    pub fn is_found(&self) -> bool {
        self.found.is_some()
    }
}

impl Found {
    fn left(&self) -> usize {
        self.bound.limit.saturating_sub(self.bound.used).saturating_sub(self.reserve)
    }
}

/// At most half of what is left, so that the smallest container has a budget.
fn reserve(bound: MemoryBound) -> usize {
    let part = (bound.limit / RESERVED_PART).clamp(LEAST_RESERVE, MOST_RESERVE);
    part.min(bound.limit.saturating_sub(bound.used) / 2)
}

/// Where a budget was found, as the end of a sentence; nothing where it was given.
impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(found) = self.found.filter(|found| found.left() <= self.bytes) else { return Ok(()) };
        let Found { bound: MemoryBound { whose, limit, used }, reserve } = found;
        let whose = match whose {
            Bound::Machine => "the machine has",
            Bound::Group => "the memory cgroup allows",
            Bound::AddressSpace => "RLIMIT_AS allows",
            Bound::Data => "RLIMIT_DATA allows",
        };
        write!(
            f,
            "; {whose} {}, of which {} were in use at the start, and {} are kept in reserve",
            Bytes(limit),
            Bytes(used),
            Bytes(reserve)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, LEAST_RESERVE, MOST_RESERVE, reserve};
    use crate::os::{Bound, MemoryBound};

    fn of(limit: usize, used: usize) -> usize {
        reserve(MemoryBound { whose: Bound::Group, limit, used })
    }

    #[test]
    fn the_reserve_is_a_part_of_the_bound() {
        assert_eq!(of(16 << 30, 0), 1 << 30);
        assert_eq!(of(1 << 40, 0), MOST_RESERVE);
        assert_eq!(of(512 << 20, 100 << 20), LEAST_RESERVE);
        assert_eq!(of(64 << 20, 24 << 20), 20 << 20);
        assert_eq!(of(64 << 20, 65 << 20), 0);
    }

    #[test]
    fn a_budget_is_never_more_than_asked() {
        assert_eq!(Budget::found(Some(1 << 20)).bytes(), 1 << 20);
        assert!(Budget::found(None).bytes() > 1 << 20);
        assert_eq!(Budget::from(5).to_string(), "");
    }
}
