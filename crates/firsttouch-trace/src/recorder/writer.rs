//! The consumer of the ring: resolves addresses to block numbers, encodes, and writes the file. It uses no allocator.

use super::block_table::{BlockTable, LiveBlock};
use super::mapped_vec::MappedVec;
use super::residency::{LARGE_SIZE, huge_page_offset, page_count, resident_pages};
use super::ring::{Record, Ring, record};
use crate::encoder::{Encoder, Sink};
use crate::event::{BlockDetail, Event, EventKind, Metadata, Totals};
use crate::format::{self, BlockIds};
use firsttouch::os;
use std::fs::File;
use std::io::{Error, ErrorKind, Write};

const _: () = assert!(record::MAX_NAME_LEN <= format::MAX_STRING_LEN);

const BUFFER_SIZE: usize = 64 << 10;

/// A buffered file that computes the checksum of what is written. After an error it discards everything.
///
/// A program may close every descriptor, as daemons do, and the next file that it opens gets the number of this one.
struct ChecksumFile {
    /// `None` once the descriptor was found to be another file's.
    file: Option<File>,
    identity: Option<(u64, u64)>,
    buffer: MappedVec<u8>,
    filled: usize,
    hash: u64,
    written: u64,
    error: Option<Error>,
}

impl ChecksumFile {
    fn new(file: File) -> Option<Self> {
        let (buffer, identity) = (MappedVec::zeroed(BUFFER_SIZE)?, os::file_identity(&file).ok());
        let (file, hash) = (Some(file), format::CHECKSUM_SEED);
        Some(Self { file, identity, buffer, filled: 0, hash, written: 0, error: None })
    }

    /// Gives the descriptor up, without closing it, if it is no longer this file's.
    fn check_descriptor(&mut self) {
        if self.file.as_ref().is_some_and(|file| os::file_identity(file).ok() != self.identity) {
            std::mem::forget(self.file.take());
        }
    }

    fn flush(&mut self) {
        self.check_descriptor();
        let bytes = &self.buffer.items()[..self.filled];
        self.hash = format::checksum(self.hash, bytes);
        self.written += bytes.len() as u64;
        if let (Some(file), None) = (&mut self.file, &self.error) {
            self.error = file.write_all(bytes).err();
        }
        self.filled = 0;
    }

    /// Appends the checksum; returns the number of bytes written, or the first error.
    fn finish(&mut self) -> Result<u64, Error> {
        self.flush();
        let hash = self.hash;
        self.bytes(&hash.to_le_bytes());
        self.flush();
        match (&self.file, self.error.take()) {
            (_, Some(error)) => Err(error),
            (None, None) => Err(Error::new(ErrorKind::NotFound, "the program closed its descriptor")),
            (Some(_), None) => Ok(self.written),
        }
    }
}

impl Drop for ChecksumFile {
    fn drop(&mut self) {
        self.check_descriptor();
    }
}

impl Sink for ChecksumFile {
    fn bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.filled == BUFFER_SIZE {
                self.flush();
            }
            let (start, count) = (self.filled, bytes.len().min(BUFFER_SIZE - self.filled));
            self.buffer.items()[start..start + count].copy_from_slice(&bytes[..count]);
            self.filled += count;
            bytes = &bytes[count..];
        }
    }
}

/// A resize that has begun in a thread; `block` is `None` if the block is older than the trace.
#[derive(Clone, Copy)]
struct PendingResize {
    thread: u32,
    block: Option<LiveBlock>,
}

/// A source line whose file name is being received.
struct PendingSite {
    line: u32,
    /// Bytes of the name that are still to come; zero if no site is pending.
    missing: usize,
    length: usize,
    name: [u8; record::MAX_NAME_LEN],
}

/// Writes a trace file from records.
pub(super) struct Writer {
    file: ChecksumFile,
    encoder: Encoder,
    blocks: BlockTable,
    ids: BlockIds<MappedVec<u32>>,
    resizes: MappedVec<PendingResize>,
    thread: u32,
    micros: u64,
    /// Site and resident pages of the next block to be allocated.
    detail: Option<(u32, u64)>,
    site: PendingSite,
    out_of_memory: bool,
}

impl Writer {
    /// Starts a trace with a header; `None` if out of memory.
    pub(super) fn new(file: File, metadata: &Metadata) -> Option<Self> {
        let mut file = ChecksumFile::new(file)?;
        let encoder = Encoder::begin(&mut file, metadata);
        file.flush();
        Some(Self {
            file,
            encoder,
            blocks: BlockTable::new()?,
            ids: BlockIds::new(MappedVec::new()),
            resizes: MappedVec::new(),
            thread: 0,
            micros: 0,
            detail: None,
            site: PendingSite { line: 0, missing: 0, length: 0, name: [0; record::MAX_NAME_LEN] },
            out_of_memory: false,
        })
    }

    /// Returns whether the trace cannot be continued.
    pub(super) fn failed(&self) -> bool {
        self.out_of_memory || self.file.error.is_some() || self.file.file.is_none()
    }

    /// Encodes all records in the ring. Later records have the time `now` at least.
    ///
    /// # Safety
    /// As for [`Ring::drain`].
    pub(super) unsafe fn drain(&mut self, ring: &Ring, now: u64) {
        // SAFETY: one thread drains the ring, while it is open (the writer, or `recorder/mod.rs` once that ended).
        unsafe { ring.drain(|record| self.on_record(record)) };
        self.micros = self.micros.max(now);
    }

    /// Writes the buffer to the file.
    pub(super) fn flush(&mut self) {
        self.file.flush();
    }

    fn on_record(&mut self, record: Record) {
        if self.site.missing > 0 {
            return self.on_name(record);
        }
        let (address, kind, value) = record::unpack(record);
        match kind {
            record::ALLOCATE | record::ALLOCATE_ZEROED => {
                self.on_alloc(address, value, kind == record::ALLOCATE_ZEROED);
            }
            record::FREE => {
                if let Some(block) = self.blocks.remove(address) {
                    self.on_free(block, value.checked_sub(1));
                }
            }
            record::RESIZE_BEGIN => {
                let pending = PendingResize { thread: self.thread, block: self.blocks.remove(address) };
                self.out_of_memory |= !self.resizes.push(pending);
            }
            record::RESIZE_END => self.on_resize_end(address, value),
            record::THREAD => self.thread = value as u32,
            record::TIME => self.micros = self.micros.max(value),
            record::DETAIL => self.detail = Some((address as u32, value)),
            record::SITE => {
                (self.site.line, self.site.missing, self.site.length) = (address as u32, value as usize, 0);
            }
            _ => {}
        }
    }

    fn on_name(&mut self, record: Record) {
        let site = &mut self.site;
        let count = site.missing.min(16);
        site.name[site.length..site.length + count].copy_from_slice(&record::unpack_name(record)[..count]);
        site.missing -= count;
        site.length += count;
        if site.missing == 0 {
            self.encoder.site(&mut self.file, &site.name[..site.length], site.line);
        }
    }

    fn on_alloc(&mut self, address: usize, size: u64, zeroed: bool) {
        if let Some(previous) = self.blocks.remove(address) {
            self.on_free(previous, None); // the event of its free was lost
        }
        let id = self.ids.acquire();
        let detail = self.detail.take();
        let detail =
            detail.map(|(site, present)| BlockDetail { site, present, huge_offset: huge_page_offset(address) });
        self.out_of_memory |= !self.blocks.insert(LiveBlock { address, size, id });
        self.encoder.totals.on_alloc(size);
        self.write(EventKind::Allocate { block: id, size, zeroed, detail });
    }

    fn on_free(&mut self, block: LiveBlock, resident: Option<u64>) {
        let pages = page_count(block.address, block.size as usize);
        self.out_of_memory |= !self.ids.release(block.id);
        self.encoder.totals.on_resize(block.size, 0);
        self.write(EventKind::Free { block: block.id, resident: resident.map(|resident| resident.min(pages)) });
    }

    fn on_resize_end(&mut self, address: usize, size: u64) {
        let thread = self.thread;
        let pending = self.resizes.items();
        let Some(index) = pending.iter().rposition(|each| each.thread == thread) else { return };
        let last = pending.len() - 1;
        let block = pending[index].block;
        pending.swap(index, last);
        self.resizes.pop();
        match block {
            Some(block) if address == 0 => self.out_of_memory |= !self.blocks.insert(block), // it failed
            Some(block) => {
                if let Some(previous) = self.blocks.remove(address) {
                    self.on_free(previous, None);
                }
                self.out_of_memory |= !self.blocks.insert(LiveBlock { address, size, ..block });
                self.encoder.totals.on_resize(block.size, size);
                self.write(EventKind::Resize { block: block.id, size });
            }
            None if address != 0 => self.on_alloc(address, size, false), // older than the trace
            None => {}
        }
    }

    fn write(&mut self, kind: EventKind) {
        let event = Event { kind, thread: self.thread, micros: self.micros };
        self.encoder.event(&mut self.file, &event);
    }

    /// Ends the trace. Returns its totals and its size in bytes, or why it could not be written.
    pub(super) fn finish(&mut self, lost: u64, metadata: &Metadata) -> Result<(Totals, u64), Error> {
        let mut large = MappedVec::new();
        let is_large = |block: &LiveBlock| block.size >= LARGE_SIZE as u64;
        self.out_of_memory |= !self.blocks.iter().filter(is_large).all(|block| large.push(block));
        for block in large.items() {
            if let Some(resident) = resident_pages(block.address, block.size as usize) {
                let pages = page_count(block.address, block.size as usize);
                self.write(EventKind::Live { block: block.id, resident: resident.min(pages) });
            }
        }
        if self.out_of_memory {
            return Err(Error::from(ErrorKind::OutOfMemory));
        }
        self.encoder.totals.lost = lost;
        self.encoder.end(&mut self.file, metadata);
        let bytes = self.file.finish()?;
        Ok((self.encoder.totals, bytes))
    }
}
