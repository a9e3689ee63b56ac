//! Whether there is a processor and memory to spare: a helper that took either from the program would be none.

use crate::os;
use std::time::{Duration, Instant};

/// How long a processor counts as idle before the system is asked again.
const HOLDS: Duration = Duration::from_millis(2);
/// How long the helper stands aside where none is idle, at first and at most.
const FIRST_ASIDE: Duration = Duration::from_millis(2);
const LONGEST_ASIDE: Duration = Duration::from_secs(1);
/// Bytes that may be populated before the system is asked again, at least and at most.
const GRANT: usize = 32 << 20;
const LARGEST_GRANT: usize = 256 << 20;
/// How many times the least grant must be left then.
const LEFT: usize = 8;
/// Processors for which the container's quota must last: with fewer the helper's time is taken from the program.
const QUOTA: f64 = 2.0;

/// What may be used.
pub(super) struct Spare {
    memory: usize,
    /// The last answer about processors, and how long it holds.
    is_idle: bool,
    until: Instant,
    /// How long the helper stood aside last, or less if a processor was idle since.
    aside: Duration,
}

impl Spare {
    pub(super) fn new(now: Instant) -> Self {
        Self { memory: 0, is_idle: false, until: now, aside: Duration::ZERO }
    }

    /// How long the helper has to stand aside, as each processor is wanted by somebody: twice as long as the last time, so
    /// that a program that uses all processors is hardly disturbed.
    pub(super) fn stands_aside(&mut self, now: Instant) -> Option<Duration> {
        self.stands_aside_unless(now, || a_processor_is_idle(0))
    }

    fn stands_aside_unless(&mut self, now: Instant, is_idle: impl FnOnce() -> bool) -> Option<Duration> {
        if now >= self.until {
            self.is_idle = is_idle();
            self.aside = if self.is_idle { self.aside / 2 } else { (self.aside * 2).clamp(FIRST_ASIDE, LONGEST_ASIDE) };
            self.until = now + if self.is_idle { HOLDS } else { self.aside };
        }
        (!self.is_idle).then(|| self.until - now)
    }

    /// Whether memory of `bytes` may be populated now.
    pub(super) fn allows(&mut self, bytes: usize) -> bool {
        if self.memory < bytes {
            let left = os::headroom() / LEFT;
            let granted = left >= GRANT && os::processor_quota().map_or(true, |quota| quota >= QUOTA);
            self.memory = if granted { (left / LEFT).clamp(GRANT, LARGEST_GRANT) } else { 0 };
        }
        let allowed = self.memory >= bytes;
        self.memory -= if allowed { bytes } else { 0 };
        allowed
    }
}

/// Whether all threads that run, and `more` of them, have a processor each, as far as the system tells.
pub(super) fn a_processor_is_idle(more: usize) -> bool {
    let usable = os::thread_processors().map_or(0, |set| set.len());
    usable >= 2 && os::runnable_threads().map_or(true, |running| running + more <= usable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stands_aside_for_longer_until_a_processor_is_idle_again() {
        let start = Instant::now();
        let mut spare = Spare::new(start);
        let (mut now, mut asked) = (start, 0);
        while now < start + 60 * LONGEST_ASIDE {
            let rest = spare.stands_aside_unless(now, || {
                asked += 1;
                false
            });
            now += rest.expect("no processor is idle");
        }
        assert!((60..75).contains(&asked), "asked {asked} times in a minute");
        for _ in 0..12 {
            assert_eq!(spare.stands_aside_unless(now, || true), None);
            assert_eq!(spare.stands_aside_unless(now + HOLDS / 2, || unreachable!("the answer holds")), None);
            now += HOLDS;
        }
        assert_eq!(spare.stands_aside_unless(now, || false), Some(FIRST_ASIDE));
    }
}
