//! Decodes a trace event by event. The input is untrusted: any byte may be missing or wrong.

use crate::format::{
    self, BlockDetail, BlockIds, Event, EventKind, MAGIC, MAX_VARINT_LEN, Metadata, Totals, TraceError, VERSION,
};
use std::io::{ErrorKind, Read};

/// Small, since a source may look for signals whenever it is read: these are some hundred events of large blocks.
const BUFFER_SIZE: usize = 4 << 10;

/// A streaming decoder. [`end`](Self::end) is available after the last event.
pub struct Reader<R> {
    source: R,
    buffer: Vec<u8>,
    position: usize,
    hash: u64,
    metadata: Metadata,
    ids: BlockIds,
    /// Size of each live block, by block number.
    live_sizes: Vec<Option<u64>>,
    micros: u64,
    totals: Totals,
    end: Option<(Totals, Metadata)>,
}

impl<R: Read> Reader<R> {
    /// Opens a trace and reads its header.
    ///
    /// # Errors
    /// If `source` is not a trace of a supported version.
    pub fn new(source: R) -> Result<Self, TraceError> {
        let mut reader = Self {
            source,
            buffer: Vec::new(),
            position: 0,
            hash: format::CHECKSUM_SEED,
            metadata: Metadata::new(),
            ids: BlockIds::default(),
            live_sizes: Vec::new(),
            micros: 0,
            totals: Totals::default(),
            end: None,
        };
        if !reader.fill()? {
            return Err(TraceError::Empty);
        }
        for expected in MAGIC {
            match reader.byte() {
                Ok(byte) if byte == expected => {}
                Ok(_) => return Err(TraceError::NotATrace),
                Err(error) => return Err(error),
            }
        }
        match reader.number()? {
            VERSION => {}
            other => return Err(TraceError::Version(other)),
        }
        reader.metadata = reader.read_metadata()?;
        Ok(reader)
    }

    /// Returns the metadata of the header.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the contents of the end mark, once it was reached.
    pub fn end(&self) -> Option<&(Totals, Metadata)> {
        self.end.as_ref()
    }

    /// Returns the totals of the events read so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns the next event, or `None` at the end mark. With `allow_truncated`, `None` also where the file is
    /// truncated.
    ///
    /// # Errors
    /// As for [`Self::next`].
    pub fn next_event(&mut self, allow_truncated: bool) -> Result<Option<Event>, TraceError> {
        match self.next() {
            Err(TraceError::Truncated(_)) if allow_truncated => Ok(None),
            result => result,
        }
    }

    /// Returns the next event, or `None` at the end mark.
    ///
    /// # Errors
    /// If the file is truncated, corrupt or unreadable.
    #[allow(clippy::should_implement_trait)] // not an iterator: an error is final
    pub fn next(&mut self) -> Result<Option<Event>, TraceError> {
        if self.end.is_some() {
            return Ok(None);
        }
        let tag = self.byte()?;
        if tag & format::TIMED != 0 {
            let elapsed = self.number()?;
            self.micros = self.micros.checked_add(elapsed).ok_or(TraceError::Corrupt("a timestamp overflows"))?;
        }
        let kind = tag & format::KIND_MASK;
        if kind == format::END {
            self.finish()?;
            return Ok(None);
        }
        let kind = self.event_kind(kind, tag)?;
        self.totals.events += 1;
        Ok(Some(Event { kind, micros: self.micros }))
    }

    fn event_kind(&mut self, kind: u8, tag: u8) -> Result<EventKind, TraceError> {
        let detailed = tag & format::DETAILED != 0;
        Ok(match kind {
            format::ALLOCATE => {
                let (size, zeroed) = (self.number()?, tag & format::ZEROED != 0);
                let detail = if detailed {
                    Some(BlockDetail { site: self.number_u32()?, present: self.number()?, huge_offset: self.number()? })
                } else {
                    None
                };
                let block = self.ids.acquire();
                if self.live_sizes.len() <= block as usize {
                    self.live_sizes.push(None);
                }
                self.live_sizes[block as usize] = Some(size);
                self.totals.on_alloc(size);
                EventKind::Allocate { block, size, zeroed, detail }
            }
            format::FREE => {
                let block = self.live_block()?;
                let resident = if detailed { Some(self.number()?) } else { None };
                let size = self.live_sizes[block as usize].take().unwrap_or(0);
                self.totals.on_resize(size, 0);
                self.ids.release(block);
                EventKind::Free { block, resident }
            }
            format::RESIZE => {
                let (block, size) = (self.live_block()?, self.number()?);
                let old = self.live_sizes[block as usize].replace(size).unwrap_or(0);
                self.totals.on_resize(old, size);
                EventKind::Resize { block, size }
            }
            format::LIVE => EventKind::Live { block: self.live_block()?, resident: self.number()? },
            format::SITE => {
                let line = self.number_u32()?;
                EventKind::Site { file: self.string()?, line }
            }
            _ => return Err(TraceError::Corrupt("unknown event kind")),
        })
    }

    fn live_block(&mut self) -> Result<u32, TraceError> {
        let block = self.number()?;
        match self.live_sizes.get(usize::try_from(block).unwrap_or(usize::MAX)) {
            Some(Some(_)) => Ok(block as u32),
            _ => Err(TraceError::Corrupt("an event refers to a block that is not live")),
        }
    }

    /// Reads the end mark and verifies totals and checksum.
    fn finish(&mut self) -> Result<(), TraceError> {
        let mut fields = [0; 6];
        for field in &mut fields {
            *field = self.number()?;
        }
        let totals = Totals::from_array(fields);
        let metadata = self.read_metadata()?;
        let hash = self.hash;
        let mut stored = [0; 8];
        for byte in &mut stored {
            *byte = self.byte()?;
        }
        if hash != u64::from_le_bytes(stored) {
            return Err(TraceError::Corrupt("the checksum does not match"));
        }
        if (Totals { lost: totals.lost, ..self.totals }) != totals {
            return Err(TraceError::Corrupt("the totals do not match the events"));
        }
        self.end = Some((totals, metadata));
        Ok(())
    }

    fn read_metadata(&mut self) -> Result<Metadata, TraceError> {
        let count = self.number()?;
        if count > format::MAX_METADATA {
            return Err(TraceError::Corrupt("too many metadata entries"));
        }
        (0..count).map(|_| Ok((self.string()?, self.string()?))).collect()
    }

    fn string(&mut self) -> Result<String, TraceError> {
        let length = self.number()?;
        if length > format::MAX_STRING_LEN as u64 {
            return Err(TraceError::Corrupt("a string is too long"));
        }
        let bytes: Result<Vec<u8>, _> = (0..length).map(|_| self.byte()).collect();
        Ok(String::from_utf8_lossy(&bytes?).into_owned())
    }

    fn number_u32(&mut self) -> Result<u32, TraceError> {
        u32::try_from(self.number()?).map_err(|_| TraceError::Corrupt("a number is out of range"))
    }

    #[inline]
    fn number(&mut self) -> Result<u64, TraceError> {
        let mut value = 0;
        for index in 0..MAX_VARINT_LEN {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(index as u32 * 7).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(TraceError::Corrupt("a varint is too long"))
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, TraceError> {
        if self.position == self.buffer.len() && !self.fill()? {
            return Err(TraceError::Truncated(self.totals.events));
        }
        let byte = self.buffer[self.position];
        self.position += 1;
        self.hash = format::checksum(self.hash, &[byte]);
        Ok(byte)
    }

    /// Refills the buffer; returns `false` at the end of the file.
    fn fill(&mut self) -> Result<bool, TraceError> {
        self.buffer.resize(BUFFER_SIZE, 0);
        self.position = 0;
        loop {
            match self.source.read(&mut self.buffer) {
                Ok(count) => {
                    self.buffer.truncate(count);
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.buffer.clear();
                    return Err(TraceError::Io(error));
                }
            }
        }
    }
}
