//! Decodes a trace event by event. The input is untrusted: any byte may be missing or wrong.

use crate::format::{
    self, BlockIds, Event, EventKind, LARGE_SIZE, MAGIC, MAX_VARINT_LEN, Metadata, TraceError, VERSION,
};
use std::io::{BufReader, ErrorKind, Read};

/// Small, since a source may look for signals whenever it is read: these are some hundred events of large blocks.
const BUFFER_SIZE: usize = 4 << 10;

/// A streaming decoder. [`end`](Self::end) is available after the last event.
pub struct Reader<R> {
    source: BufReader<R>,
    metadata: Metadata,
    ids: BlockIds,
    /// Whether a block is live, by block number.
    live: Vec<bool>,
    micros: u64,
    events: u64,
    end: Option<(u64, Metadata)>,
}

impl<R: Read> Reader<R> {
    /// Opens a trace and reads its header.
    ///
    /// # Errors
    /// If `source` is not a trace of a supported version.
    pub fn new(source: R) -> Result<Self, TraceError> {
        let mut reader = Self {
            source: BufReader::with_capacity(BUFFER_SIZE, source),
            metadata: Metadata::new(),
            ids: BlockIds::default(),
            live: Vec::new(),
            micros: 0,
            events: 0,
            end: None,
        };
        for (at, expected) in MAGIC.into_iter().enumerate() {
            match reader.byte() {
                Ok(byte) if byte == expected => {}
                Ok(_) => return Err(TraceError::NotATrace),
                Err(TraceError::Truncated(_)) if at == 0 => return Err(TraceError::Empty),
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

    /// Returns the number of lost events and the metadata of the end, once the end mark was reached.
    pub fn end(&self) -> Option<&(u64, Metadata)> {
        self.end.as_ref()
    }

    /// Returns the number of events read so far, sites included.
    pub fn events(&self) -> u64 {
        self.events
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
            self.end = Some((self.number()?, self.read_metadata()?));
            return Ok(None);
        }
        let kind = self.event_kind(kind, tag & format::ZEROED != 0, tag & format::BUFFER == 0)?;
        self.events += 1;
        Ok(Some(Event { kind, micros: self.micros }))
    }

    fn event_kind(&mut self, kind: u8, zeroed: bool, is_array: bool) -> Result<EventKind, TraceError> {
        Ok(match kind {
            format::ALLOCATE => {
                let (size, site) = self.size_and_site()?;
                let block = self.ids.acquire();
                self.live.resize(self.live.len().max(block as usize + 1), false);
                self.live[block as usize] = true;
                EventKind::Allocate { block, size, zeroed, is_array, site }
            }
            format::FREE => {
                let block = self.live_block()?;
                self.live[block as usize] = false;
                self.ids.release(block);
                EventKind::Free { block }
            }
            format::RESIZE => {
                let block = self.live_block()?;
                let (size, site) = self.size_and_site()?;
                EventKind::Resize { block, size, site }
            }
            format::SITE => {
                let line = self.number_u32()?;
                EventKind::Site { file: self.string()?, line, library: self.string()? }
            }
            _ => return Err(TraceError::Corrupt("unknown event kind")),
        })
    }

    fn size_and_site(&mut self) -> Result<(u64, u32), TraceError> {
        let size = self.number()?;
        Ok((size, if size >= LARGE_SIZE { self.number_u32()? } else { 0 }))
    }

    fn live_block(&mut self) -> Result<u32, TraceError> {
        let block = self.number()?;
        match self.live.get(usize::try_from(block).unwrap_or(usize::MAX)) {
            Some(true) => Ok(block as u32),
            _ => Err(TraceError::Corrupt("an event refers to a block that is not live")),
        }
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
        let mut byte = [0];
        match self.source.read_exact(&mut byte) {
            Ok(()) => Ok(byte[0]),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(TraceError::Truncated(self.events)),
            Err(error) => Err(TraceError::Io(error)),
        }
    }
}
