//! How much idle memory a pool with default options keeps, and for how long. Both are learned.
//!
//! Memory that was purged and is faulted in again soon afterwards was purged in vain. That is regret, and raises the
//! bound on what is held by as many bytes. Memory that decays was kept in vain. That is rent, and lowers the bound
//! again. A program whose iterations are alike reaches a state in which nothing that it needs is purged. A program
//! that has changed pays only until rent outweighs regret, as in the ski rental problem.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Bytes that may be held beyond 1.1 times the peak before anything is learned.
pub(super) const SLACK: usize = 2 << 20;
/// The learned raise of the bound is at most this fraction of the peak.
const EXTRA_MAX: usize = 4;
/// The epochs after which idle memory decays once decay was regretted: less than two seconds, but enough to bridge a
/// pause of 1.6 seconds.
const PATIENT_EPOCHS: u8 = 18;
/// The time covered by one entry of the history, and the number of entries. Regret is possible for eight seconds, so a
/// decay time of ten seconds would have kept whatever is regretted.
const SLOT: Duration = Duration::from_millis(500);
const SLOTS: u64 = 16;
/// The number of latest entries whose decay the longer decay time would have prevented.
const NEAR: u64 = 2;

/// What a pool has learned. Region 0 has base pages, region 1 huge pages.
#[derive(Default)]
pub(super) struct Retention {
    for_room: GivenBack,
    by_decay: GivenBack,
    /// Bytes that may be held beyond the bound.
    extra: AtomicUsize,
    /// Bytes by which regret of decay exceeds what the longer decay time has cost since.
    patience: AtomicUsize,
    /// Bytes purged and faulted in again while the history covered them.
    pub(super) refaulted: AtomicU64,
}

impl Retention {
    /// Bytes that may be held if the peak of the active bytes is `active`.
    pub fn allowed(&self, active: usize) -> usize {
        active + active / 10 + SLACK + self.extra.load(Relaxed).min(active / EXTRA_MAX)
    }

    /// The epochs after which idle memory decays, if the default is `epochs`.
    pub fn patient(&self, epochs: u8) -> u8 {
        if self.patience.load(Relaxed) > 0 { epochs.max(PATIENT_EPOCHS) } else { epochs }
    }

    /// Bytes of each region were purged to make room for fresh memory.
    pub fn given_back_for_room(&self, bytes: [usize; 2], now: Duration) {
        self.for_room.put(bytes, slot(now));
    }

    /// Bytes of each region were purged because they had been idle for long.
    pub fn decayed(&self, bytes: [usize; 2], now: Duration) {
        self.by_decay.put(bytes, slot(now));
        let rent = bytes[0] + bytes[1];
        lower(&self.extra, rent);
        lower(&self.patience, rent);
    }

    /// Fresh memory of a region was taken; the peak of the active bytes is `active`.
    pub fn taken(&self, region: usize, fresh: usize, active: usize, now: Duration) {
        let now = slot(now);
        let regret = self.for_room.take(region, fresh, now, SLOTS);
        let near = self.by_decay.take(region, fresh - regret, now, NEAR);
        let far = self.by_decay.take(region, fresh - regret - near, now, SLOTS);
        raise(&self.extra, regret, active / EXTRA_MAX);
        raise(&self.patience, near, active);
        self.refaulted.fetch_add((regret + near + far) as u64, Relaxed);
    }
}

fn raise(value: &AtomicUsize, by: usize, most: usize) {
    if by > 0 {
        let _ = value.fetch_update(Relaxed, Relaxed, |value| Some((value + by).min(most.max(value))));
    }
}

fn lower(value: &AtomicUsize, by: usize) {
    let _ = value.fetch_update(Relaxed, Relaxed, |value| Some(value.saturating_sub(by)));
}

/// The number of a slot, from 1, because 0 marks an entry that was never written. Numbers come again after 97 days.
fn slot(time: Duration) -> u64 {
    1 + (time.as_millis() / SLOT.as_millis()) as u64 % ((1 << (64 - BYTES)) - 1)
}

/// What was purged lately, by region and time. An entry holds the number of its slot and, in the lower bits, bytes.
#[derive(Default)]
struct GivenBack([[AtomicU64; SLOTS as usize]; 2]);

const BYTES: u32 = 40;

impl GivenBack {
    fn put(&self, bytes: [usize; 2], slot: u64) {
        for (entries, bytes) in self.0.iter().zip(bytes).filter(|(_, bytes)| *bytes > 0) {
            let entry = &entries[(slot % SLOTS) as usize];
            let _ = entry.fetch_update(Relaxed, Relaxed, |old| {
                let before = if old >> BYTES == slot { old & ((1 << BYTES) - 1) } else { 0 };
                Some(slot << BYTES | (before + bytes as u64).min((1 << BYTES) - 1))
            });
        }
    }

    /// Removes up to `bytes` of what was purged in the last `reach` slots, latest first; returns how much there was.
    fn take(&self, region: usize, bytes: usize, slot: u64, reach: u64) -> usize {
        let mut taken = 0;
        for slot in (slot.saturating_sub(reach - 1)..=slot).rev() {
            if taken == bytes {
                break;
            }
            let mut part = 0;
            let _ = self.0[region][(slot % SLOTS) as usize].fetch_update(Relaxed, Relaxed, |old| {
                part = if old >> BYTES == slot { (old & ((1 << BYTES) - 1)).min((bytes - taken) as u64) } else { 0 };
                (part > 0).then(|| old - part)
            });
            taken += part as usize;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn regret_raises_what_may_be_held_and_rent_lowers_it_again() {
        let retention = Retention::default();
        let before = retention.allowed(400 * MIB);
        retention.given_back_for_room([0, 30 * MIB], at(0));
        retention.taken(0, 10 * MIB, 400 * MIB, at(20)); // of the other region: no regret
        assert_eq!(retention.allowed(400 * MIB), before);
        retention.taken(1, 50 * MIB, 400 * MIB, at(20));
        assert_eq!(retention.allowed(400 * MIB), before + 30 * MIB);
        assert_eq!(retention.refaulted.load(Relaxed), 30 << 20);
        retention.taken(1, 50 * MIB, 400 * MIB, at(20)); // regretted once already
        retention.decayed([10 * MIB, 10 * MIB], at(2000));
        assert_eq!(retention.allowed(400 * MIB), before + 10 * MIB);
    }

    #[test]
    fn however_much_is_regretted_a_quarter_more_is_all_that_is_held() {
        let retention = Retention::default();
        for turn in 0..100 {
            retention.given_back_for_room([50 * MIB, 0], at(turn));
            retention.taken(0, 50 * MIB, 100 * MIB, at(turn));
        }
        assert_eq!(retention.allowed(100 * MIB), 135 * MIB + SLACK);
    }

    #[test]
    fn learning_goes_on_for_years() {
        for days in [96, 98, 200, 4000] {
            let retention = Retention::default();
            let now = at(days * 24 * 3600 * 1000);
            retention.decayed([0, 64 * MIB], now);
            retention.taken(1, 64 * MIB, 64 * MIB, now + at(400));
            assert_eq!(retention.patient(10), PATIENT_EPOCHS, "after {days} days");
        }
    }

    #[test]
    fn memory_that_decayed_before_a_pause_was_over_stays_longer_next_time() {
        let retention = Retention::default();
        retention.decayed([0, 64 * MIB], at(1100));
        retention.taken(1, 64 * MIB, 64 * MIB, at(1500));
        assert_eq!(retention.patient(10), PATIENT_EPOCHS);
        retention.decayed([0, 64 * MIB], at(3300)); // kept in vain: it was not used again
        assert_eq!(retention.patient(10), 10);
    }

    #[test]
    fn what_went_long_ago_is_not_regretted() {
        let retention = Retention::default();
        retention.decayed([0, 64 * MIB], at(1000));
        retention.given_back_for_room([MIB, MIB], at(1000));
        retention.taken(1, 32 * MIB, 64 * MIB, at(8000));
        assert_eq!((retention.patient(10), retention.refaulted.load(Relaxed)), (10, 32 << 20));
        retention.taken(1, 32 * MIB, 64 * MIB, at(12_000));
        assert_eq!(retention.refaulted.load(Relaxed), 32 << 20);
    }
}
