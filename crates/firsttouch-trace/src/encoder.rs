//! Turns events into bytes. It allocates nothing.

use super::event::{Event, Kind};
use super::format::{self, MAGIC, VERSION};
use super::output::Output;
use super::reader::Totals;

/// See the module.
#[derive(Default)]
pub struct Encoder {
    micros: u64,
    thread: u32,
    /// Of all that was encoded.
    pub totals: Totals,
}

impl Encoder {
    /// The head of a trace.
    pub fn begin(out: &mut impl Output, facts: &[(String, String)]) -> Self {
        out.bytes(&MAGIC);
        out.number(VERSION);
        out.facts(facts);
        Self::default()
    }

    /// A line of the program; it gets the next number.
    pub fn site(&mut self, out: &mut impl Output, file: &[u8], line: u32) {
        out.bytes(&[format::SITE]);
        out.number(line.into());
        out.text(file);
        self.totals.events += 1;
    }

    /// Anything else.
    pub fn event(&mut self, out: &mut impl Output, event: &Event) {
        if let Kind::Site { ref file, line } = event.kind {
            return self.site(out, file.as_bytes(), line); // it has no thread and no time
        }
        if event.thread != self.thread {
            self.thread = event.thread;
            out.bytes(&[format::THREAD]);
            out.number(event.thread.into());
        }
        self.totals.threads = self.totals.threads.max(u64::from(event.thread) + 1);
        self.totals.events += 1;
        let later = event.micros.saturating_sub(self.micros);
        let timed = if later > 0 { format::TIMED } else { 0 };
        self.micros += later;
        let mut tag = |kind: u8, flags: u8| {
            out.bytes(&[kind | flags | timed]);
            if later > 0 {
                out.number(later);
            }
        };
        match event.kind {
            Kind::Allocate { size, zeroed, detail, .. } => {
                let zero = if zeroed { format::ZEROED } else { 0 };
                tag(format::ALLOCATE, zero | if detail.is_some() { format::DETAILED } else { 0 });
                out.number(size);
                if let Some(detail) = detail {
                    out.number(detail.site.into());
                    out.number(detail.present);
                    out.number(detail.place);
                }
            }
            Kind::Free { block, resident } => {
                tag(format::FREE, if resident.is_some() { format::DETAILED } else { 0 });
                out.number(block.into());
                if let Some(resident) = resident {
                    out.number(resident);
                }
            }
            Kind::Resize { block, size } => {
                tag(format::RESIZE, 0);
                out.number(block.into());
                out.number(size);
            }
            Kind::Seen { block, resident } => {
                tag(format::SEEN, 0);
                out.number(block.into());
                out.number(resident);
            }
            Kind::Site { .. } => {}
        }
    }

    /// The end mark; whoever has the file adds the check.
    pub fn end(&self, out: &mut impl Output, facts: &[(String, String)]) {
        out.bytes(&[format::END]);
        self.totals.each().into_iter().for_each(|total| out.number(total));
        out.facts(facts);
    }
}
