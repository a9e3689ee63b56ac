//! What `guarded` finds, in words: accesses beyond arrays or to freed ones, before they end the process, and bytes next to
//! arrays that were overwritten.

use crate::allocators::allocator::{PyAllocator, found};
use crate::handlers::front::installed;
use firsttouch::allocator::find;
use firsttouch::os::{self, Fault};
use firsttouch::sources::{Guarded, Near, Overrun};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::fmt::{self, Display, Write};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// The longest line.
const LONGEST: usize = 256;
/// Of the size and the start of an array, which are aligned to it: an access in between is called right behind.
const ALIGNMENT: usize = 64;

/// The file descriptor to write to.
static FILE: AtomicI32 = AtomicI32::new(-1);

struct InBytes(usize);

impl Display for InBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 1 { f.write_str("1 byte") } else { write!(f, "{} bytes", self.0) }
    }
}

/// A line in memory that needs no allocation; what is too long for it is cut.
struct Line {
    bytes: [u8; LONGEST],
    used: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.used..).unwrap_or_default();
        let length = room.len().min(text.len());
        room[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.used += length;
        Ok(())
    }
}

/// Writes a line of two: what happened, and then what array it happened to, because finding that might fail.
fn note(fault: &Fault) {
    let signal = fault.signal;
    let did = fault.wrote.map_or("read or wrote", |wrote| if wrote { "wrote" } else { "read" });
    say(format_args!("firsttouch: {signal}: it {did} at {:#x}, which cannot be accessed\n", fault.address));
    let near = || find::<Guarded>(&installed()?)?.near(fault.address);
    let Some(Near { address, asked, freed }) = near() else { return };
    let array = InBytes(asked);
    let (at, behind) = (fault.address, fault.address.saturating_sub(address).saturating_sub(asked));
    if freed {
        let byte = at.wrapping_sub(address) as isize;
        say(format_args!(
            "firsttouch: use after free: {did} byte {byte} of an array of {array} that was freed ({signal})\n"
        ));
    } else if at < address {
        let before = InBytes(address - at);
        say(format_args!("firsttouch: out of bounds: {did} {before} before an array of {array} ({signal})\n"));
    } else if behind < ALIGNMENT {
        say(format_args!("firsttouch: out of bounds: {did} right behind an array of {array} ({signal})\n"));
    } else {
        let behind = InBytes(behind);
        say(format_args!("firsttouch: out of bounds: {did} {behind} behind an array of {array} ({signal})\n"));
    }
}

fn say(text: fmt::Arguments<'_>) {
    let mut line = Line { bytes: [0; LONGEST], used: 0 };
    let _ = line.write_fmt(text);
    os::write_in_handler(FILE.load(Relaxed), &line.bytes[..line.used]);
}

/// Describes the first memory fault of the process in a line or two in this file, then lets the signal take its course.
#[pyfunction]
pub fn watch_faults(file: i32) -> PyResult<()> {
    FILE.store(file, Relaxed);
    os::watch_faults(note).map_err(|error| PyOSError::new_err((error.0, "memory faults cannot be watched".to_owned())))
}

/// Describes the writes beyond arrays that the outermost `guarded` has found since the last call.
#[pyfunction]
pub fn overruns(allocator: &PyAllocator) -> PyResult<Vec<String>> {
    let told = |Overrun { address, asked, at }: Overrun| {
        let behind = at.wrapping_sub(address).wrapping_sub(asked);
        let place = match (at < address, behind) {
            (true, _) => format!("{} before", InBytes(address - at)),
            (false, 0) => "right behind".to_owned(),
            (false, _) => format!("{} behind", InBytes(behind)),
        };
        format!("out of bounds: something wrote {place} an array of {}", InBytes(asked))
    };
    Ok(found::<Guarded>(allocator, "guarded")?.check().into_iter().map(told).collect())
}
