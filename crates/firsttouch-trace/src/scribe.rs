//! Who writes: takes records from the ring, finds out which block each is about, and encodes. It allocates nothing.

use super::encoder::Encoder;
use super::event::{Detail, Event, Kind};
use super::grown::Grown;
use super::ids::Ids;
use super::known::{Known, Living};
use super::output::{Facts, Written};
use super::pages::{LARGE, large_pages, place, span};
use super::reader::Totals;
use super::ring::{Record, Ring, VALUE, kind};
use std::fs::File;
use std::io::Error;

/// A block between its old place and its new one, in a thread.
#[derive(Clone, Copy)]
struct Moving {
    thread: u32,
    living: Option<Living>,
}

/// See the module.
pub(super) struct Scribe {
    out: Written<File>,
    encoder: Encoder,
    known: Known,
    ids: Ids<Grown<u32>>,
    moving: Grown<Moving>,
    thread: u32,
    micros: u64,
    /// Of the block that comes next.
    detail: Option<(u32, u64)>,
    /// What is missing of a file's name, and what there is.
    name: (usize, usize, u32),
    text: [u8; 1024],
    /// Whether there was no memory for the lists.
    starved: bool,
}

impl Scribe {
    pub(super) fn new(file: File, facts: &Facts) -> Option<Self> {
        let mut out = Written::new(file)?;
        let encoder = Encoder::begin(&mut out, facts);
        out.flush();
        Some(Self {
            out,
            encoder,
            known: Known::new()?,
            ids: Ids::new(Grown::new()),
            moving: Grown::new(),
            thread: 0,
            micros: 0,
            detail: None,
            name: (0, 0, 0),
            text: [0; 1024],
            starved: false,
        })
    }

    /// Whether it can't go on.
    pub(super) fn failed(&self) -> bool {
        self.starved || self.out.failed()
    }

    /// Writes down all that waits. `now` stamps what comes later.
    ///
    /// # Safety
    /// As for [`Ring::take`].
    pub(super) unsafe fn drain(&mut self, ring: &Ring, now: u64) {
        // SAFETY: the caller's promise.
        unsafe { ring.take(|record| self.take(record)) };
        self.micros = self.micros.max(now);
    }

    pub(super) fn flush(&mut self) {
        self.out.flush();
    }

    fn take(&mut self, record: Record) {
        let (missing, length, _) = self.name;
        if missing > 0 {
            return self.spell(record, missing, length);
        }
        let (address, what, value) = (record[0] as usize, record[1] >> 60, record[1] & VALUE);
        match what {
            kind::ALLOCATE | kind::ZEROED => self.gave(address, value, what == kind::ZEROED),
            kind::FREE => {
                if let Some(living) = self.known.leave(address) {
                    self.went(living, value.checked_sub(1));
                }
            }
            kind::MOVE => {
                let moving = Moving { thread: self.thread, living: self.known.leave(address) };
                self.starved |= !self.moving.push(moving);
            }
            kind::MOVED => self.moved(address, value),
            kind::THREAD => self.thread = value as u32,
            kind::TIME => self.micros = self.micros.max(value),
            kind::DETAIL => self.detail = Some((address as u32, value)),
            kind::SITE => self.name = (value as usize, 0, address as u32),
            _ => {}
        }
    }

    fn spell(&mut self, record: Record, missing: usize, length: usize) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&record[0].to_ne_bytes());
        bytes[8..].copy_from_slice(&record[1].to_ne_bytes());
        let count = missing.min(16);
        self.text[length..length + count].copy_from_slice(&bytes[..count]);
        self.name = (missing - count, length + count, self.name.2);
        if missing == count {
            self.encoder.site(&mut self.out, &self.text[..length + count], self.name.2);
        }
    }

    fn gave(&mut self, address: usize, size: u64, zeroed: bool) {
        if let Some(before) = self.known.leave(address) {
            self.went(before, None); // its end was lost
        }
        let block = self.ids.take();
        let detail = self.detail.take().map(|(site, present)| Detail { site, present, place: place(address) });
        self.starved |= !self.known.enter(Living { address, size, block, zeroed });
        self.encoder.totals.gave(size);
        self.write(Kind::Allocate { block, size, zeroed, detail });
    }

    fn went(&mut self, living: Living, resident: Option<u64>) {
        let pages = span(living.address, living.size as usize).1 as u64;
        self.starved |= !self.ids.give(living.block);
        self.encoder.totals.changed(living.size, 0);
        self.write(Kind::Free { block: living.block, resident: resident.map(|there| there.min(pages)) });
    }

    fn moved(&mut self, address: usize, size: u64) {
        let thread = self.thread;
        let moving = self.moving.items();
        let Some(at) = moving.iter().rposition(|each| each.thread == thread) else { return };
        let last = moving.len() - 1;
        let living = moving[at].living;
        moving.swap(at, last);
        self.moving.pop();
        match living {
            Some(living) if address == 0 => self.starved |= !self.known.enter(living), // it stays where it was
            Some(living) => {
                if let Some(before) = self.known.leave(address) {
                    self.went(before, None);
                }
                self.starved |= !self.known.enter(Living { address, size, ..living });
                self.encoder.totals.changed(living.size, size);
                self.write(Kind::Resize { block: living.block, size });
            }
            None if address != 0 => self.gave(address, size, false), // older than the trace
            None => {}
        }
    }

    fn write(&mut self, kind: Kind) {
        let event = Event { kind, thread: self.thread, micros: self.micros };
        self.encoder.event(&mut self.out, &event);
    }

    /// Ends the trace; its totals and bytes, or why it could not be written.
    pub(super) fn finish(&mut self, lost: u64, facts: &Facts) -> Result<(Totals, u64), Error> {
        let large = |living: &Living| living.size >= LARGE as u64;
        let mut at = Grown::new();
        self.starved |= !self.known.living().filter(large).all(|living| at.push(living));
        for living in at.items() {
            if let Some(resident) = large_pages(living.address, living.size as usize) {
                let pages = span(living.address, living.size as usize).1 as u64;
                self.write(Kind::Seen { block: living.block, resident: resident.min(pages) });
            }
        }
        if self.starved {
            return Err(Error::from(std::io::ErrorKind::OutOfMemory));
        }
        self.encoder.totals.lost = lost;
        self.encoder.end(&mut self.out, facts);
        let bytes = self.out.finish()?;
        Ok((self.encoder.totals, bytes))
    }

    /// The names of files are cut to this many bytes.
    pub(super) const NAME: usize = 1024;
}

/// Ends a text that is too long for a record.
pub(super) fn cut(text: &[u8]) -> &[u8] {
    &text[..text.len().min(Scribe::NAME)]
}

const _: () = assert!(Scribe::NAME <= super::format::TEXT);

/// The longest that one event takes: its thread, its time, its detail and itself.
pub(super) const MOST: usize = 4;

/// The text as records.
pub(super) fn records(text: &[u8]) -> impl Iterator<Item = Record> {
    text.chunks(16).map(|chunk| {
        let mut bytes = [0; 16];
        bytes[..chunk.len()].copy_from_slice(chunk);
        let word = |half: &[u8]| u64::from_ne_bytes(half.try_into().unwrap_or_default());
        [word(&bytes[..8]), word(&bytes[8..])]
    })
}
