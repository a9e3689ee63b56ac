//! A pool's time: that of the machine, or of a recorded program whose requests are repeated.

use crate::heap::purger::TICK;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Epochs until idle memory has decayed, if the time is at least that many ticks.
const DECAY_EPOCHS: u32 = 10;

/// Converts ticks of the background purger to epochs, of which `decay` spans a fixed number.
pub(super) struct Clock {
    ticks_per_epoch: u32,
    /// Epochs after which idle memory is purged; `None` for never.
    pub decay_epochs: Option<u8>,
    ticks: AtomicU32,
    /// Without a background purger: milliseconds from the start to the last tick.
    last: AtomicU32,
    start: Start,
}

enum Start {
    At(Instant),
    /// The time in microseconds, which passes as it is set.
    ByHand(AtomicU64),
}

impl Clock {
    pub(super) fn new(decay: Option<Duration>) -> Self {
        let ticks = decay.map_or(0, |decay| decay.as_millis().div_ceil(TICK.as_millis()).min(u32::MAX.into()) as u32);
        let ticks_per_epoch = (ticks / DECAY_EPOCHS).max(1);
        Self {
            ticks_per_epoch,
            decay_epochs: decay.map(|_| ticks.div_ceil(ticks_per_epoch) as u8),
            ticks: AtomicU32::new(0),
            last: AtomicU32::new(0),
            start: Start::At(Instant::now()),
        }
    }

    /// A clock that stands still except for [`step`](Self::step) and [`set`](Self::set).
    pub(super) fn by_hand(decay: Option<Duration>) -> Self {
        Self { start: Start::ByHand(AtomicU64::new(0)), ..Self::new(decay) }
    }

    pub(super) fn is_set_by_hand(&self) -> bool {
        matches!(self.start, Start::ByHand(_))
    }

    /// Whether a tick has passed since the last call that returned `true`.
    pub(super) fn is_due(&self) -> bool {
        let now = self.now().as_millis() as u32;
        let last = self.last.load(Relaxed);
        now.wrapping_sub(last) >= TICK.as_millis() as u32
            && self.last.compare_exchange(last, now, Relaxed, Relaxed).is_ok()
    }

    /// The time since the pool was created.
    pub(super) fn now(&self) -> Duration {
        match &self.start {
            Start::At(start) => start.elapsed(),
            Start::ByHand(micros) => Duration::from_micros(micros.load(Relaxed)),
        }
    }

    /// Moves on to the next tick if the time is set by hand and that is not after `end`; returns whether it did.
    pub(super) fn step(&self, end: Duration) -> bool {
        let tick = TICK.as_micros();
        let next = Duration::from_micros(((self.now().as_micros() / tick + 1) * tick) as u64);
        let moves = self.is_set_by_hand() && next <= end;
        if moves {
            self.set(next);
        }
        moves
    }

    /// Sets the time, if it is set by hand and not later already.
    pub(super) fn set(&self, now: Duration) {
        if let Start::ByHand(micros) = &self.start {
            micros.fetch_max(now.as_micros() as u64, Relaxed);
        }
    }

    /// Counts a tick; returns whether it begins an epoch.
    pub(super) fn tick(&self) -> bool {
        (self.ticks.fetch_add(1, Relaxed) + 1).is_multiple_of(self.ticks_per_epoch)
    }
}
