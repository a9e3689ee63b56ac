//! How the thread goes on with one block: when it looks, and what it populates.

use super::block::{Block, Turn};
use super::list::Entry;
use super::seen::Own;
use super::spare::Spare;
use crate::os;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The pause between two looks at a block, at least and at most. The first is a quarter of the time in which the program came
/// on last, and each is a quarter longer than the one before, so that the helper comes late by about that much.
const PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);
/// Looks at a block in which nothing happens: a second's.
const LOOKS: u32 = 220;
/// Whether the thread found that the system populates memory fast: until it ends, it is not woken for blocks that gain only
/// where that is slow.
pub(super) static FAST: AtomicBool = AtomicBool::new(false);
static POPULATED: AtomicU64 = AtomicU64::new(0);

/// Bytes populated ahead of their use, in this process.
pub fn populated_bytes() -> u64 {
    POPULATED.load(Relaxed)
}

/// What the thread knows of the block in a slot.
pub(super) struct Known {
    pub(super) number: u64,
    block: Block,
    /// Looks since something happened, and the pause after the next one.
    looks: u32,
    pause: Duration,
    /// When the program was last seen to come on, after a pause.
    came: Option<Instant>,
}

impl Known {
    pub(super) fn new(entry: &Entry) -> Self {
        let block = Block::new(entry.range.clone(), entry.granule);
        Self { number: entry.number, block, looks: 0, pause: PAUSE, came: None }
    }

    /// Looks, or populates a granule; how long it can be left alone then, if it is not done.
    pub(super) fn go_on(&mut self, now: Instant, spare: &mut Spare) -> Option<Duration> {
        let before = self.block.clone();
        match self.block.turn(&Own) {
            Turn::Done => None,
            Turn::Wait => self.wait(),
            Turn::Populate(range) if !spare.allows(range.len()) => {
                self.block = before;
                self.wait()?;
                Some(LONGEST_PAUSE)
            }
            Turn::Populate(range) => {
                let began = Instant::now();
                if os::populate(range.start, range.len(), true).is_err() {
                    return None; // no such call, no memory, or a limit: the program will be told
                }
                POPULATED.fetch_add(range.len() as u64, Relaxed);
                if !self.block.is_worth_more(began.elapsed()) {
                    FAST.store(true, Relaxed);
                    return None;
                }
                if self.looks > 0 {
                    let took = self.came.replace(now).map_or(PAUSE, |before| now.duration_since(before) / 4);
                    (self.looks, self.pause) = (0, took.clamp(PAUSE, LONGEST_PAUSE));
                }
                Some(Duration::ZERO)
            }
        }
    }

    fn wait(&mut self) -> Option<Duration> {
        let pause = self.pause;
        self.looks += 1;
        self.pause = (pause + pause / 4).min(LONGEST_PAUSE);
        (self.looks < LOOKS).then_some(pause)
    }
}
