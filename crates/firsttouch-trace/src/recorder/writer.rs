//! The consumer of the events: resolves addresses to block numbers, encodes, and writes the file.

use super::residency::{LARGE_SIZE, huge_page_offset, page_count, resident_pages};
use super::{CAPACITY, Record};
use crate::format::{self, BlockDetail, BlockIds, Encoder, Event, EventKind, Metadata, Totals, push};
use firsttouch::heap::ledger::Part;
use firsttouch::os;
use std::fs::File;
use std::io::{Error, ErrorKind, Write};

/// The buffer is written to the file whenever it holds this many bytes.
const BUFFER_SIZE: usize = 64 << 10;

/// A file whose checksum is computed as it is written. After an error it discards everything.
///
/// A program may close every descriptor, as daemons do, and the next file that it opens gets the number of this one.
struct ChecksumFile {
    /// `None` once the descriptor was found to be another file's.
    file: Option<File>,
    identity: Option<(u64, u64)>,
    hash: u64,
    written: u64,
    error: Option<Error>,
}

impl ChecksumFile {
    /// Gives the descriptor up, without closing it, if it is no longer this file's.
    fn check_descriptor(&mut self) {
        if self.file.as_ref().is_some_and(|file| os::file_identity(file).ok() != self.identity) {
            std::mem::forget(self.file.take());
        }
    }

    /// Writes what the buffer holds, and empties it.
    fn write(&mut self, buffer: &mut Vec<u8>) {
        self.check_descriptor();
        self.hash = format::checksum(self.hash, buffer);
        self.written += buffer.len() as u64;
        if let (Some(file), None) = (&mut self.file, &self.error) {
            self.error = file.write_all(buffer).err();
        }
        buffer.clear();
    }
}

impl Drop for ChecksumFile {
    fn drop(&mut self) {
        self.check_descriptor();
    }
}

/// A live block.
#[derive(Clone, Copy)]
struct LiveBlock {
    size: u64,
    id: u32,
}

/// Writes a trace file from records.
pub(super) struct Writer {
    file: ChecksumFile,
    buffer: Vec<u8>,
    encoder: Encoder,
    /// Taken from the program, and not encoded yet.
    records: Vec<Record>,
    blocks: Part<LiveBlock>,
    ids: BlockIds,
    /// Blocks that are being resized, by the addresses that they had.
    resizes: Vec<(usize, LiveBlock)>,
    micros: u64,
    /// Site and resident pages of the next block to be allocated.
    detail: Option<(u32, u64)>,
    out_of_memory: bool,
}

impl Writer {
    /// Starts a trace with a header; `records` is an empty buffer of [`CAPACITY`].
    pub(super) fn new(file: File, metadata: &Metadata, records: Vec<Record>) -> Self {
        let identity = os::file_identity(&file).ok();
        let file = ChecksumFile { file: Some(file), identity, hash: format::CHECKSUM_SEED, written: 0, error: None };
        let mut buffer = Vec::with_capacity(2 * BUFFER_SIZE);
        let encoder = Encoder::begin(&mut buffer, metadata);
        let mut writer = Self {
            file,
            buffer,
            encoder,
            records,
            blocks: Part::default(),
            ids: BlockIds::default(),
            resizes: Vec::new(),
            micros: 0,
            detail: None,
            out_of_memory: false,
        };
        writer.flush();
        writer
    }

    /// Returns whether the trace cannot be continued.
    pub(super) fn failed(&self) -> bool {
        self.out_of_memory || self.file.error.is_some() || self.file.file.is_none()
    }

    /// Exchanges the program's records for an empty buffer.
    pub(super) fn take(&mut self, records: &mut Vec<Record>) {
        debug_assert!(self.records.is_empty() && self.records.capacity() >= CAPACITY);
        std::mem::swap(&mut self.records, records);
    }

    /// Encodes what was taken. Later records have the time `now` at least.
    pub(super) fn encode(&mut self, now: u64) {
        let mut records = std::mem::take(&mut self.records);
        records.drain(..).for_each(|record| self.on_record(record));
        self.records = records;
        self.micros = self.micros.max(now);
    }

    /// Writes the buffer to the file.
    pub(super) fn flush(&mut self) {
        self.file.write(&mut self.buffer);
    }

    fn on_record(&mut self, record: Record) {
        match record {
            Record::Allocate { address, size, zeroed } => self.on_alloc(address, size, zeroed),
            Record::Free { address, resident } => {
                if let Some(block) = self.blocks.remove(&address) {
                    self.on_free(address, block, resident.map(u64::from));
                }
            }
            Record::ResizeBegin { address } => {
                if let Some(block) = self.blocks.remove(&address) {
                    self.out_of_memory |= !push(&mut self.resizes, (address, block));
                }
            }
            Record::ResizeEnd { old, address, size } => self.on_resize_end(old, address, size),
            Record::Time(micros) => self.micros = self.micros.max(micros),
            Record::Detail { site, present } => self.detail = Some((site, present)),
            Record::Site { file, line } => self.encoder.site(&mut self.buffer, file.as_bytes(), line),
        }
    }

    fn on_alloc(&mut self, address: usize, size: u64, zeroed: bool) {
        if let Some(previous) = self.blocks.remove(&address) {
            self.on_free(address, previous, None); // the event of its free was lost
        }
        let id = self.ids.acquire();
        let detail = self.detail.take();
        let detail =
            detail.map(|(site, present)| BlockDetail { site, present, huge_offset: huge_page_offset(address) });
        self.insert(address, LiveBlock { size, id });
        self.encoder.totals.on_alloc(size);
        self.write(EventKind::Allocate { block: id, size, zeroed, detail });
    }

    fn insert(&mut self, address: usize, block: LiveBlock) {
        if self.blocks.try_reserve(1).is_ok() {
            self.blocks.insert(address, block);
        } else {
            self.out_of_memory = true;
        }
    }

    fn on_free(&mut self, address: usize, block: LiveBlock, resident: Option<u64>) {
        let pages = page_count(address, block.size as usize);
        self.out_of_memory |= !self.ids.release(block.id);
        self.encoder.totals.on_resize(block.size, 0);
        let resident = resident.map(|resident| resident.min(pages)).filter(|&resident| resident < pages);
        self.write(EventKind::Free { block: block.id, resident });
    }

    fn on_resize_end(&mut self, old: usize, address: usize, size: u64) {
        // The first one: an address that was given up may be another block's, which is resized meanwhile.
        let Some(index) = self.resizes.iter().position(|&(from, _)| from == old) else {
            if address != 0 {
                self.on_alloc(address, size, false); // older than the trace
            }
            return;
        };
        let (_, block) = self.resizes.swap_remove(index);
        if address == 0 {
            return self.insert(old, block); // it failed
        }
        if let Some(previous) = self.blocks.remove(&address) {
            self.on_free(address, previous, None); // the event of its free was lost
        }
        self.insert(address, LiveBlock { size, ..block });
        self.encoder.totals.on_resize(block.size, size);
        self.write(EventKind::Resize { block: block.id, size });
    }

    fn write(&mut self, kind: EventKind) {
        let event = Event { kind, micros: self.micros };
        self.encoder.event(&mut self.buffer, &event);
        if self.buffer.len() >= BUFFER_SIZE {
            self.flush();
        }
    }

    /// Ends the trace. Returns its totals and its size in bytes, or why it could not be written.
    pub(super) fn finish(&mut self, lost: u64, metadata: &Metadata) -> Result<(Totals, u64), Error> {
        for (address, block) in std::mem::take(&mut self.blocks) {
            let large = block.size >= LARGE_SIZE as u64;
            if let Some(resident) = large.then(|| resident_pages(address, block.size as usize)).flatten() {
                let pages = page_count(address, block.size as usize);
                self.write(EventKind::Live { block: block.id, resident: resident.min(pages) });
            }
        }
        if self.out_of_memory {
            return Err(Error::from(ErrorKind::OutOfMemory));
        }
        self.encoder.totals.lost = lost;
        self.encoder.end(&mut self.buffer, metadata);
        self.flush();
        let mut checksum = self.file.hash.to_le_bytes().to_vec();
        self.file.write(&mut checksum);
        match (&self.file.file, self.file.error.take()) {
            (_, Some(error)) => Err(error),
            (None, None) => Err(Error::new(ErrorKind::NotFound, "the program closed its descriptor")),
            (Some(_), None) => Ok((self.encoder.totals, self.file.written)),
        }
    }
}
