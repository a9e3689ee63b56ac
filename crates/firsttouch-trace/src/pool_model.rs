//! What a pool would have had ready: memory that went idle not long before, the warmest first.
//!
//! A model of [`Pool`](firsttouch::adaptors::Pool) in bytes alone: it joins and splits what is idle as if that always fitted.
//! What is idle decays after a second, and all that is held stays within a tenth (and 2 MiB) of the most that was active.

use std::collections::VecDeque;

/// Microseconds after which idle memory has gone: a second, and the caretaker's next look.
const DECAY: u64 = 1_100_000;
const SPARE: u64 = 2 << 20;

struct Idle {
    since: u64,
    bytes: u64,
}

/// See the module.
#[derive(Default)]
pub(super) struct PoolModel {
    idle: VecDeque<Idle>,
    kept: u64,
    active: u64,
    most: u64,
}

impl PoolModel {
    /// Serves a request; the part of it, from 0 to 1, that is recycled memory.
    pub(super) fn take(&mut self, size: u64, now: u64) -> f64 {
        while self.idle.front().is_some_and(|idle| idle.since + DECAY < now) {
            self.drop_oldest();
        }
        self.active += size;
        self.most = self.most.max(self.active);
        let mut missing = size;
        while missing > 0
            && let Some(idle) = self.idle.back_mut()
        {
            let part = idle.bytes.min(missing);
            idle.bytes -= part;
            missing -= part;
            self.kept -= part;
            if idle.bytes == 0 {
                self.idle.pop_back();
            }
        }
        if missing > 0 {
            self.bound();
        }
        (size - missing) as f64 / size.max(1) as f64
    }

    /// A block goes idle.
    pub(super) fn give(&mut self, size: u64, now: u64) {
        self.active = self.active.saturating_sub(size);
        if size > 0 {
            self.idle.push_back(Idle { since: now, bytes: size });
            self.kept += size;
        }
    }

    /// A block has another size.
    pub(super) fn resize(&mut self, old: u64, new: u64, now: u64) {
        if new > old {
            self.take(new - old, now);
        } else {
            self.give(old - new, now);
        }
    }

    fn bound(&mut self) {
        while self.active + self.kept > self.most + self.most / 10 + SPARE && self.kept > 0 {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        self.kept -= self.idle.pop_front().map_or(0, |idle| idle.bytes);
    }
}
