//! Reads a trace event by event, and believes nothing: every byte may be missing or wrong.

use super::event::{Detail, Event, Kind};
use super::format::{self, LONGEST, MAGIC, TraceError, VERSION};
use super::ids::Ids;
use super::output::Facts;
use std::io::{ErrorKind, Read};

/// What stands in the end mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Events, lines included.
    pub events: u64,
    /// Blocks given.
    pub allocations: u64,
    /// Bytes of all blocks given.
    pub allocated_bytes: u64,
    /// The most bytes that lived at once.
    pub peak_in_use: u64,
    /// Bytes that live at the end.
    pub in_use: u64,
    /// Threads.
    pub threads: u64,
    /// Events that were not written, as the disk was too slow.
    pub lost: u64,
}

impl Totals {
    pub(super) fn each(&self) -> [u64; 7] {
        let Self { events, allocations, allocated_bytes, peak_in_use, in_use, threads, lost } = *self;
        [events, allocations, allocated_bytes, peak_in_use, in_use, threads, lost]
    }

    /// Another block lives.
    pub(super) fn gave(&mut self, size: u64) {
        self.allocations += 1;
        self.changed(0, size);
    }

    /// A block has another size.
    pub(super) fn changed(&mut self, old: u64, new: u64) {
        self.allocated_bytes = self.allocated_bytes.saturating_add(new.saturating_sub(old));
        self.in_use = self.in_use.saturating_add(new).saturating_sub(old);
        self.peak_in_use = self.peak_in_use.max(self.in_use);
    }
}

const BUFFER: usize = 64 << 10;
/// More blocks than that never live: the numbers of a damaged file shall not make us ask for such lists.
const MOST_THREADS: u64 = 1 << 20;

/// See the module. After the last event `totals` and `end` are what the end mark says.
pub struct Reader<R> {
    source: R,
    buffer: Vec<u8>,
    at: usize,
    hash: u64,
    facts: Facts,
    ids: Ids<Vec<u32>>,
    /// Size of each living block, by its number.
    living: Vec<Option<u64>>,
    thread: u32,
    micros: u64,
    /// Of all that was read so far.
    seen: Totals,
    end: Option<(Totals, Facts)>,
}

impl<R: Read> Reader<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// Where this is no trace of a version that is known.
    pub fn new(source: R) -> Result<Self, TraceError> {
        let mut reader = Self {
            source,
            buffer: Vec::new(),
            at: 0,
            hash: format::SEED,
            facts: Facts::new(),
            ids: Ids::new(Vec::new()),
            living: Vec::new(),
            thread: 0,
            micros: 0,
            seen: Totals::default(),
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
        reader.facts = reader.read_facts()?;
        Ok(reader)
    }

    /// Facts of the start.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What the end mark says, once it was reached.
    pub fn end(&self) -> Option<&(Totals, Facts)> {
        self.end.as_ref()
    }

    /// What was counted so far.
    pub fn seen(&self) -> &Totals {
        &self.seen
    }

    /// The next event; nothing behind the end mark, and with `incomplete` nothing where the file is cut off.
    ///
    /// # Errors
    /// As for [`Self::next`].
    pub fn next_of(&mut self, incomplete: bool) -> Result<Option<Event>, TraceError> {
        match self.next() {
            Err(TraceError::CutOff(_)) if incomplete => Ok(None),
            found => found,
        }
    }

    /// The next event; nothing behind the end mark.
    ///
    /// # Errors
    /// Where the file ends before its end mark, or says what can't be.
    #[allow(clippy::should_implement_trait)] // an iterator would hide that errors end it
    pub fn next(&mut self) -> Result<Option<Event>, TraceError> {
        if self.end.is_some() {
            return Ok(None);
        }
        loop {
            let tag = self.byte()?;
            if tag & format::TIMED != 0 {
                let later = self.number()?;
                self.micros = self.micros.checked_add(later).ok_or(TraceError::Damaged("a time beyond all times"))?;
            }
            let kind = match tag & format::KIND {
                format::THREAD => {
                    let thread = self.number()?;
                    if thread >= MOST_THREADS {
                        return Err(TraceError::Damaged("a thread of a number that can't be"));
                    }
                    self.thread = thread as u32;
                    continue;
                }
                format::END => {
                    self.finish()?;
                    return Ok(None);
                }
                kind => self.kind(kind, tag)?,
            };
            self.seen.events += 1;
            if !matches!(kind, Kind::Site { .. }) {
                self.seen.threads = self.seen.threads.max(u64::from(self.thread) + 1);
            }
            return Ok(Some(Event { kind, thread: self.thread, micros: self.micros }));
        }
    }

    fn kind(&mut self, kind: u8, tag: u8) -> Result<Kind, TraceError> {
        let detailed = tag & format::DETAILED != 0;
        Ok(match kind {
            format::ALLOCATE => {
                let (size, zeroed) = (self.number()?, tag & format::ZEROED != 0);
                let detail = if detailed {
                    Some(Detail { site: self.small()?, present: self.number()?, place: self.number()? })
                } else {
                    None
                };
                let block = self.ids.take();
                if self.living.len() <= block as usize {
                    self.living.push(None);
                }
                self.living[block as usize] = Some(size);
                self.seen.gave(size);
                Kind::Allocate { block, size, zeroed, detail }
            }
            format::FREE => {
                let block = self.block()?;
                let resident = if detailed { Some(self.number()?) } else { None };
                let size = self.living[block as usize].take().unwrap_or(0);
                self.seen.changed(size, 0);
                self.ids.give(block);
                Kind::Free { block, resident }
            }
            format::RESIZE => {
                let (block, size) = (self.block()?, self.number()?);
                let old = self.living[block as usize].replace(size).unwrap_or(0);
                self.seen.changed(old, size);
                Kind::Resize { block, size }
            }
            format::SEEN => Kind::Seen { block: self.block()?, resident: self.number()? },
            format::SITE => {
                let line = self.small()?;
                Kind::Site { file: self.text()?, line }
            }
            _ => return Err(TraceError::Damaged("an event of no kind")),
        })
    }

    /// The number of a living block.
    fn block(&mut self) -> Result<u32, TraceError> {
        let block = self.number()?;
        match self.living.get(usize::try_from(block).unwrap_or(usize::MAX)) {
            Some(Some(_)) => Ok(block as u32),
            _ => Err(TraceError::Damaged("a block that does not live")),
        }
    }

    fn finish(&mut self) -> Result<(), TraceError> {
        let mut each = [0; 7];
        for total in &mut each {
            *total = self.number()?;
        }
        let facts = self.read_facts()?;
        let hash = self.hash;
        let mut check = [0; 8];
        for byte in &mut check {
            *byte = self.byte()?;
        }
        if hash != u64::from_le_bytes(check) {
            return Err(TraceError::Damaged("its check is wrong"));
        }
        let [events, allocations, allocated_bytes, peak_in_use, in_use, threads, lost] = each;
        let totals = Totals { events, allocations, allocated_bytes, peak_in_use, in_use, threads, lost };
        if (Totals { lost, ..self.seen }) != totals {
            return Err(TraceError::Damaged("its totals are not those of its events"));
        }
        self.end = Some((totals, facts));
        Ok(())
    }

    fn read_facts(&mut self) -> Result<Facts, TraceError> {
        let count = self.number()?;
        if count > format::FACTS {
            return Err(TraceError::Damaged("more facts than can be"));
        }
        (0..count).map(|_| Ok((self.text()?, self.text()?))).collect()
    }

    fn text(&mut self) -> Result<String, TraceError> {
        let length = self.number()?;
        if length > format::TEXT as u64 {
            return Err(TraceError::Damaged("a text longer than can be"));
        }
        let bytes: Result<Vec<u8>, _> = (0..length).map(|_| self.byte()).collect();
        Ok(String::from_utf8_lossy(&bytes?).into_owned())
    }

    fn small(&mut self) -> Result<u32, TraceError> {
        u32::try_from(self.number()?).map_err(|_| TraceError::Damaged("a number larger than can be"))
    }

    #[inline]
    fn number(&mut self) -> Result<u64, TraceError> {
        let mut value = 0;
        for turn in 0..LONGEST {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(turn as u32 * 7).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(TraceError::Damaged("a number without an end"))
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, TraceError> {
        if self.at == self.buffer.len() && !self.fill()? {
            return Err(TraceError::CutOff(self.seen.events));
        }
        let byte = self.buffer[self.at];
        self.at += 1;
        self.hash = format::hashed(self.hash, &[byte]);
        Ok(byte)
    }

    fn fill(&mut self) -> Result<bool, TraceError> {
        self.buffer.resize(BUFFER, 0);
        self.at = 0;
        loop {
            match self.source.read(&mut self.buffer) {
                Ok(count) => {
                    self.buffer.truncate(count);
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.buffer.clear();
                    return Err(TraceError::Reading(error));
                }
            }
        }
    }
}
