//! Performs the events of a trace, in batches so that decoding is not measured.

use crate::event::{BlockDetail, Event, EventKind};
use crate::format::TraceError;
use crate::reader::Reader;
use crate::survey::{ResidentAtEnd, Survey};
use firsttouch::os;
use std::io::Read;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// An allocator that a trace can be replayed on.
///
/// # Safety
/// As for malloc(3): a block has at least the requested size, and overlaps no other live block.
pub unsafe trait Target: Sync {
    /// Calls `turn`, which performs events of one thread; all other functions are called from there. An allocator that
    /// requires more of the calling thread, such as that it holds an interpreter's lock, provides it around the call.
    fn attached(&self, turn: &mut dyn FnMut()) {
        turn();
    }

    /// Allocates a block; null on failure.
    fn allocate(&self, size: usize, zeroed: bool) -> *mut u8;

    /// Resizes a block and returns its new address; null on failure, which leaves the block unchanged.
    ///
    /// # Safety
    /// `address` is a live block of this allocator.
    unsafe fn resize(&self, address: *mut u8, size: usize) -> *mut u8;

    /// Frees a block.
    ///
    /// # Safety
    /// `address` is a live block of this allocator, of `size` bytes, and is not used afterwards.
    unsafe fn free(&self, address: *mut u8, size: usize);
}

/// What is written to a block when it is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Nothing.
    None,
    /// One byte of every page.
    First,
    /// Every byte.
    All,
}

/// How a trace is replayed.
#[derive(Clone, Copy, Debug)]
pub struct ReplayOptions {
    /// What is written. Of a large block, only as many pages as were resident at its end are touched.
    pub touch: Touch,
    /// Whether each thread of the trace gets a thread of its own; otherwise all events run in the calling thread.
    pub threads: bool,
}

/// The result of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReplayOutcome {
    /// Time spent in the allocator and in touching memory, without decoding.
    pub seconds: f64,
    /// Number of events performed.
    pub events: u64,
    /// Number of requests that failed.
    pub refused: u64,
    /// Largest number of bytes that were live at once.
    pub peak_in_use: u64,
}

const BATCH: usize = 4096;

#[derive(Clone, Copy)]
struct ReplayedBlock {
    address: *mut u8,
    size: usize,
}

impl ReplayedBlock {
    const NONE: Self = Self { address: null_mut(), size: 0 };
}

/// Why [`Player::run`] returned.
pub(super) enum Next {
    /// The next event belongs to another thread.
    Thread(u32),
    /// There are no more events.
    End,
}

/// Performs events on a [`Target`].
pub(super) struct Player<'a, R> {
    reader: Reader<R>,
    target: &'a dyn Target,
    touch: Touch,
    resident_at_end: ResidentAtEnd<'a>,
    batch: Vec<Event>,
    /// Index of the next event in the batch.
    next: usize,
    complete: bool,
    /// By block number.
    blocks: Vec<ReplayedBlock>,
    elapsed: Duration,
    performed: u64,
    refused: u64,
}

// SAFETY: the player owns its blocks, and any thread may free them (law 6).
unsafe impl<R: Send> Send for Player<'_, R> {}

impl<'a, R: Read> Player<'a, R> {
    pub(super) fn new(
        source: R,
        survey: &'a Survey,
        target: &'a dyn Target,
        options: ReplayOptions,
    ) -> Result<Self, TraceError> {
        Ok(Self {
            reader: Reader::new(source)?,
            target,
            touch: options.touch,
            resident_at_end: ResidentAtEnd::new(survey),
            batch: Vec::with_capacity(BATCH),
            next: 0,
            complete: survey.complete,
            blocks: Vec::new(),
            elapsed: Duration::ZERO,
            performed: 0,
            refused: 0,
        })
    }

    /// Returns the number of events performed so far.
    pub(super) fn performed(&self) -> u64 {
        self.performed
    }

    /// Performs all events in the calling thread.
    pub(super) fn run_to_end(mut self) -> Result<ReplayOutcome, TraceError> {
        self.run(None)?;
        Ok(self.finish())
    }

    /// Performs events up to the first that belongs to a thread other than `thread`, if given.
    pub(super) fn run(&mut self, thread: Option<u32>) -> Result<Next, TraceError> {
        let mut next = Ok(Next::End);
        self.target.attached(&mut || next = self.perform_turn(thread));
        next
    }

    fn perform_turn(&mut self, thread: Option<u32>) -> Result<Next, TraceError> {
        loop {
            if self.next == self.batch.len() && !self.read_batch()? {
                return Ok(Next::End);
            }
            let began = Instant::now();
            let batch = std::mem::take(&mut self.batch);
            let mut other = None;
            while let Some(event) = batch.get(self.next) {
                let site = matches!(event.kind, EventKind::Site { .. }); // belongs to no thread
                if !site && thread.is_some_and(|thread| thread != event.thread) {
                    other = Some(Next::Thread(event.thread));
                    break;
                }
                self.perform(event);
                self.performed += 1;
                self.next += 1;
            }
            self.batch = batch;
            self.elapsed += began.elapsed();
            if let Some(other) = other {
                return Ok(other);
            }
        }
    }

    fn read_batch(&mut self) -> Result<bool, TraceError> {
        self.batch.clear();
        self.next = 0;
        while self.batch.len() < BATCH {
            let Some(event) = self.reader.next_event(!self.complete)? else { break };
            self.batch.push(event);
        }
        Ok(!self.batch.is_empty())
    }

    fn perform(&mut self, event: &Event) {
        match event.kind {
            EventKind::Allocate { block, size, zeroed, detail } => self.allocate(block as usize, size, zeroed, detail),
            EventKind::Free { block, .. } => self.free(block as usize),
            EventKind::Resize { block, size } => self.resize(block as usize, size as usize),
            EventKind::Live { .. } | EventKind::Site { .. } => {}
        }
    }

    fn allocate(&mut self, index: usize, size: u64, zeroed: bool, detail: Option<BlockDetail>) {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let address = self.target.allocate(size, zeroed);
        self.refused += u64::from(address.is_null());
        let resident = self.resident_at_end.of_next(detail);
        let touched = resident.map_or(size, |pages| size.min(bytes_on_pages(address as usize, pages as usize)));
        self.blocks.resize(self.blocks.len().max(index + 1), ReplayedBlock::NONE);
        self.blocks[index] = ReplayedBlock { address, size };
        self.touch(self.blocks[index], 0, touched);
    }

    fn free(&mut self, index: usize) {
        let block = std::mem::replace(&mut self.blocks[index], ReplayedBlock::NONE);
        if !block.address.is_null() {
            // SAFETY: the block came from the target, and was taken out of the list, so it is freed once.
            unsafe { self.target.free(block.address, block.size) };
        }
    }

    fn resize(&mut self, index: usize, size: usize) {
        let old = self.blocks[index];
        if old.address.is_null() {
            return;
        }
        let size = size.max(1); // realloc(3) to no bytes frees the block
        // SAFETY: blocks in the list are live.
        let address = unsafe { self.target.resize(old.address, size) };
        if address.is_null() {
            self.refused += 1;
            return;
        }
        self.blocks[index] = ReplayedBlock { address, size };
        self.touch(self.blocks[index], old.size, size);
    }

    /// Writes to bytes `from..to` of a block.
    fn touch(&self, block: ReplayedBlock, from: usize, to: usize) {
        if block.address.is_null() || from >= to {
            return;
        }
        // SAFETY: the block is live, belongs to the player, and has at least `to` bytes.
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

    /// Frees the live blocks.
    pub(super) fn finish(mut self) -> ReplayOutcome {
        let peak_in_use = self.reader.totals().peak_in_use;
        self.target.attached(&mut || (0..self.blocks.len()).for_each(|index| self.free(index)));
        ReplayOutcome {
            seconds: self.elapsed.as_secs_f64(),
            events: self.performed,
            refused: self.refused,
            peak_in_use,
        }
    }
}

/// Returns how many bytes of a block lie on its first `pages` pages. The block may begin within a page; one byte too many
/// would fault in another page, 2 MiB where pages are huge.
fn bytes_on_pages(address: usize, pages: usize) -> usize {
    let page = os::page_size();
    (pages * page).saturating_sub(address % page)
}
