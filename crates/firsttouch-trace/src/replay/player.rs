//! Runs events, a batch at a time, so that reading the file is kept out of the time.

use super::survey::{Survey, UNKNOWN};
use super::{Options, Outcome, Target, Touch};
use crate::event::{Event, Kind};
use crate::format::TraceError;
use crate::reader::Reader;
use firsttouch::os;
use std::io::Read;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

const BATCH: usize = 4096;

#[derive(Clone, Copy)]
struct Block {
    address: *mut u8,
    size: usize,
}

/// Who comes next.
pub(super) enum Next {
    /// Another thread.
    Thread(u32),
    /// Nobody: all was played.
    End,
}

/// See the module.
pub(super) struct Player<'a, R> {
    reader: Reader<R>,
    target: &'a dyn Target,
    touch: Touch,
    zeroed: std::slice::Iter<'a, u32>,
    batch: Vec<Event>,
    /// The next event in the batch.
    at: usize,
    whole: bool,
    blocks: Vec<Block>,
    spent: Duration,
    played: u64,
    refused: u64,
}

// SAFETY: the blocks are the player's own, and any thread may give them back (law 6).
unsafe impl<R: Send> Send for Player<'_, R> {}

impl<'a, R: Read> Player<'a, R> {
    pub(super) fn new(
        source: R,
        survey: &'a Survey,
        target: &'a dyn Target,
        options: Options,
    ) -> Result<Self, TraceError> {
        Ok(Self {
            reader: Reader::new(source)?,
            target,
            touch: options.touch,
            zeroed: survey.zeroed.iter(),
            batch: Vec::with_capacity(BATCH),
            at: 0,
            whole: survey.complete,
            blocks: Vec::new(),
            spent: Duration::ZERO,
            played: 0,
            refused: 0,
        })
    }

    /// Events played so far.
    pub(super) fn played(&self) -> u64 {
        self.played
    }

    /// Plays it all in this thread.
    pub(super) fn alone(mut self) -> Result<Outcome, TraceError> {
        self.run(None)?;
        Ok(self.finish())
    }

    /// Plays what is of thread `me`, up to another's event.
    pub(super) fn run(&mut self, me: Option<u32>) -> Result<Next, TraceError> {
        let mut next = Ok(Next::End);
        self.target.attached(&mut || next = self.turn(me));
        next
    }

    fn turn(&mut self, me: Option<u32>) -> Result<Next, TraceError> {
        loop {
            if self.at == self.batch.len() && !self.read()? {
                return Ok(Next::End);
            }
            let began = Instant::now();
            let batch = std::mem::take(&mut self.batch);
            let mut next = None;
            while let Some(event) = batch.get(self.at) {
                let line = matches!(event.kind, Kind::Site { .. }); // it is of no thread
                if !line && me.is_some_and(|me| me != event.thread) {
                    next = Some(Next::Thread(event.thread));
                    break;
                }
                self.play(event);
                self.played += 1;
                self.at += 1;
            }
            self.batch = batch;
            self.spent += began.elapsed();
            if let Some(next) = next {
                return Ok(next);
            }
        }
    }

    fn read(&mut self) -> Result<bool, TraceError> {
        self.batch.clear();
        self.at = 0;
        while self.batch.len() < BATCH {
            let Some(event) = self.reader.next_of(!self.whole)? else { break };
            self.batch.push(event);
        }
        Ok(!self.batch.is_empty())
    }

    fn play(&mut self, event: &Event) {
        match event.kind {
            Kind::Allocate { block, size, zeroed, .. } => {
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                let address = self.target.allocate(size, zeroed);
                self.refused += u64::from(address.is_null());
                let there = if zeroed { self.zeroed.next().copied().unwrap_or(UNKNOWN) } else { UNKNOWN };
                let end = if there == UNKNOWN { size } else { size.min(end_of(address as usize, there as usize)) };
                let (at, none) = (block as usize, Block { address: null_mut(), size: 0 });
                self.blocks.resize(self.blocks.len().max(at + 1), none);
                self.blocks[at] = Block { address, size };
                self.write(self.blocks[at], 0, end);
            }
            Kind::Free { block, .. } => self.free(block as usize),
            Kind::Resize { block, size } => self.resize(block as usize, size as usize),
            Kind::Seen { .. } | Kind::Site { .. } => {}
        }
    }

    fn free(&mut self, at: usize) {
        let block = std::mem::replace(&mut self.blocks[at], Block { address: null_mut(), size: 0 });
        if !block.address.is_null() {
            // SAFETY: the block came from the target, and the reader names each block's end once.
            unsafe { self.target.free(block.address, block.size) };
        }
    }

    fn resize(&mut self, at: usize, size: usize) {
        let old = self.blocks[at];
        if old.address.is_null() {
            return;
        }
        // SAFETY: it lives.
        let address = unsafe { self.target.resize(old.address, size) };
        if address.is_null() {
            self.refused += 1;
            return;
        }
        self.blocks[at] = Block { address, size };
        self.write(self.blocks[at], old.size, size);
    }

    /// Touches a part of a block.
    fn write(&self, block: Block, from: usize, to: usize) {
        if block.address.is_null() || from >= to {
            return;
        }
        // SAFETY: the block lives, is nobody else's, and has at least `to` bytes.
        unsafe {
            match self.touch {
                Touch::None => {}
                Touch::First => {
                    for offset in (from..to).step_by(os::page_size()) {
                        block.address.add(offset).write_volatile(1);
                    }
                    block.address.add(to - 1).write_volatile(1);
                }
                Touch::All => block.address.add(from).write_bytes(1, to - from),
            }
        }
    }

    /// Gives back what still lives.
    pub(super) fn finish(mut self) -> Outcome {
        let peak_in_use = self.reader.seen().peak_in_use;
        self.target.attached(&mut || (0..self.blocks.len()).for_each(|at| self.free(at)));
        Outcome { seconds: self.spent.as_secs_f64(), events: self.played, refused: self.refused, peak_in_use }
    }
}

/// Where the first `pages` pages end of a block that may begin within one: a byte more would be a page more, and where
/// pages are huge two MiB.
fn end_of(address: usize, pages: usize) -> usize {
    let page = os::page_size();
    (pages * page).saturating_sub(address % page)
}
