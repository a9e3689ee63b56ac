//! The consumer of the events: resolves addresses to block numbers, encodes, and writes the file.

use super::{CAPACITY, Record, Recorded, Request};
use crate::format::{BlockIds, Encoder, Event, EventKind, Metadata, push};
use firsttouch::ledger::Part;
use firsttouch::os;
use std::fs::File;
use std::io::{Error, ErrorKind, Write};

/// The buffer is written to the file whenever it holds this many bytes.
const BUFFER_SIZE: usize = 64 << 10;

/// The file of a trace. After an error it discards everything.
///
/// A program may close every descriptor, as daemons do, and the next file that it opens gets the number of this one.
struct TraceFile {
    /// `None` once the descriptor was found to be another file's.
    file: Option<File>,
    identity: Option<(u64, u64)>,
    written: u64,
    error: Option<Error>,
}

impl TraceFile {
    /// Gives the descriptor up, without closing it, if it is no longer this file's.
    fn check_descriptor(&mut self) {
        if self.file.as_ref().is_some_and(|file| os::file_identity(file).ok() != self.identity) {
            std::mem::forget(self.file.take());
        }
    }

    /// Writes what the buffer holds, and empties it.
    fn write(&mut self, buffer: &mut Vec<u8>) {
        self.check_descriptor();
        self.written += buffer.len() as u64;
        if let (Some(file), None) = (&mut self.file, &self.error) {
            self.error = file.write_all(buffer).err();
        }
        buffer.clear();
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        self.check_descriptor();
    }
}

/// Writes a trace file from records.
pub(super) struct Writer {
    file: TraceFile,
    buffer: Vec<u8>,
    encoder: Encoder,
    /// Taken from the program, and not encoded yet.
    records: Vec<Record>,
    /// The numbers of live blocks.
    blocks: Part<u32>,
    ids: BlockIds,
    /// Blocks that are being resized, by the addresses that they had.
    resizes: Vec<(usize, u32)>,
    micros: u64,
    out_of_memory: bool,
}

impl Writer {
    /// Starts a trace with a header; `records` is an empty buffer of [`CAPACITY`].
    pub(super) fn new(file: File, metadata: &Metadata, records: Vec<Record>) -> Self {
        let identity = os::file_identity(&file).ok();
        let file = TraceFile { file: Some(file), identity, written: 0, error: None };
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
            Record::Allocate { address, request } => self.on_alloc(address, request),
            Record::Free { address } => self.on_free(address),
            Record::ResizeBegin { address } => {
                if let Some(block) = self.blocks.remove(&address) {
                    self.out_of_memory |= !push(&mut self.resizes, (address, block));
                }
            }
            Record::ResizeEnd { old, address, request } => self.on_resize_end(old, address, request),
            Record::Time(micros) => self.micros = self.micros.max(micros),
            Record::Site { line, names } => {
                let [file, library] = *names;
                self.write(EventKind::Site { file, line, library });
            }
        }
    }

    fn on_alloc(&mut self, address: usize, Request { size, zeroed, is_array, site }: Request) {
        self.on_free(address); // if the event of that was lost
        let block = self.ids.acquire();
        self.insert(address, block);
        self.write(EventKind::Allocate { block, size: size as u64, zeroed, is_array, site });
    }

    fn insert(&mut self, address: usize, block: u32) {
        if self.blocks.try_reserve(1).is_ok() {
            self.blocks.insert(address, block);
        } else {
            self.out_of_memory = true;
        }
    }

    fn on_free(&mut self, address: usize) {
        if let Some(block) = self.blocks.remove(&address) {
            self.out_of_memory |= !self.ids.release(block);
            self.write(EventKind::Free { block });
        }
    }

    fn on_resize_end(&mut self, old: usize, address: usize, request: Request) {
        // The first one: an address that was given up may be another block's, which is resized meanwhile.
        let Some(index) = self.resizes.iter().position(|&(from, _)| from == old) else {
            if address != 0 {
                self.on_alloc(address, request); // older than the trace
            }
            return;
        };
        let (_, block) = self.resizes.swap_remove(index);
        if address == 0 {
            return self.insert(old, block); // it failed
        }
        self.on_free(address); // if the event of that was lost
        self.insert(address, block);
        self.write(EventKind::Resize { block, size: request.size as u64, site: request.site });
    }

    fn write(&mut self, kind: EventKind) {
        self.encoder.event(&mut self.buffer, &Event { kind, micros: self.micros });
        if self.buffer.len() >= BUFFER_SIZE {
            self.flush();
        }
    }

    /// Ends the trace, or says why it could not be written.
    pub(super) fn finish(&mut self, lost: u64, metadata: &Metadata) -> Result<Recorded, Error> {
        if self.out_of_memory {
            return Err(Error::from(ErrorKind::OutOfMemory));
        }
        self.encoder.end(&mut self.buffer, lost, metadata);
        self.flush();
        match (&self.file.file, self.file.error.take()) {
            (_, Some(error)) => Err(error),
            (None, None) => Err(Error::new(ErrorKind::NotFound, "the program closed its descriptor")),
            (Some(_), None) => Ok(Recorded { events: self.encoder.events(), bytes: self.file.written, lost }),
        }
    }
}
