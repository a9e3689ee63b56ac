//! Encodes events. The encoder does not allocate.

use crate::event::{Event, EventKind, Totals};
use crate::format::{self, MAGIC, MAX_STRING_LEN, MAX_VARINT_LEN, VERSION};

/// The destination of an [`Encoder`].
pub trait Sink {
    /// Appends bytes.
    fn bytes(&mut self, bytes: &[u8]);

    /// Appends a varint.
    fn number(&mut self, value: u64) {
        self.bytes(format::varint(&mut [0; MAX_VARINT_LEN], value));
    }

    /// Appends a string, truncated to [`MAX_STRING_LEN`] bytes.
    fn string(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(MAX_STRING_LEN)];
        self.number(text.len() as u64);
        self.bytes(text);
    }

    /// Appends metadata.
    fn metadata(&mut self, metadata: &[(String, String)]) {
        self.number(metadata.len() as u64);
        for (name, value) in metadata {
            self.string(name.as_bytes());
            self.string(value.as_bytes());
        }
    }
}

impl Sink for Vec<u8> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Encodes a trace, except for the checksum, into a [`Sink`].
#[derive(Default)]
pub struct Encoder {
    micros: u64,
    thread: u32,
    /// The totals for the end mark. Events and threads are counted here, blocks and bytes by the caller.
    pub totals: Totals,
}

impl Encoder {
    /// Writes the header.
    pub fn begin(out: &mut impl Sink, metadata: &[(String, String)]) -> Self {
        out.bytes(&MAGIC);
        out.number(VERSION);
        out.metadata(metadata);
        Self::default()
    }

    /// Writes a source line, which gets the next site number.
    pub fn site(&mut self, out: &mut impl Sink, file: &[u8], line: u32) {
        out.bytes(&[format::SITE]);
        out.number(line.into());
        out.string(file);
        self.totals.events += 1;
    }

    /// Writes an event.
    pub fn event(&mut self, out: &mut impl Sink, event: &Event) {
        if let EventKind::Site { ref file, line } = event.kind {
            return self.site(out, file.as_bytes(), line); // sites have neither thread nor time
        }
        if event.thread != self.thread {
            self.thread = event.thread;
            out.bytes(&[format::THREAD]);
            out.number(event.thread.into());
        }
        self.totals.threads = self.totals.threads.max(u64::from(event.thread) + 1);
        self.totals.events += 1;
        let elapsed = event.micros.saturating_sub(self.micros);
        let timed = if elapsed > 0 { format::TIMED } else { 0 };
        self.micros += elapsed;
        let mut tag = |kind: u8, flags: u8| {
            out.bytes(&[kind | flags | timed]);
            if elapsed > 0 {
                out.number(elapsed);
            }
        };
        match event.kind {
            EventKind::Allocate { size, zeroed, detail, .. } => {
                let zero = if zeroed { format::ZEROED } else { 0 };
                tag(format::ALLOCATE, zero | if detail.is_some() { format::DETAILED } else { 0 });
                out.number(size);
                if let Some(detail) = detail {
                    out.number(detail.site.into());
                    out.number(detail.present);
                    out.number(detail.huge_offset);
                }
            }
            EventKind::Free { block, resident } => {
                tag(format::FREE, if resident.is_some() { format::DETAILED } else { 0 });
                out.number(block.into());
                if let Some(resident) = resident {
                    out.number(resident);
                }
            }
            EventKind::Resize { block, size } => {
                tag(format::RESIZE, 0);
                out.number(block.into());
                out.number(size);
            }
            EventKind::Live { block, resident } => {
                tag(format::LIVE, 0);
                out.number(block.into());
                out.number(resident);
            }
            EventKind::Site { .. } => {}
        }
    }

    /// Writes the end mark. The caller appends the checksum.
    pub fn end(&self, out: &mut impl Sink, metadata: &[(String, String)]) {
        out.bytes(&[format::END]);
        self.totals.to_array().into_iter().for_each(|total| out.number(total));
        out.metadata(metadata);
    }
}
