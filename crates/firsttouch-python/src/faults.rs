//! What `guarded` finds, in words: accesses beyond arrays or to freed ones, before they end the process, and bytes next to
//! arrays that were overwritten.

use crate::allocators::allocator::{PyAllocator, found};
use crate::handlers::front::installed;
use firsttouch::allocator::find;
use firsttouch::os::{self, Fault};
use firsttouch::sources::{Guarded, Near, Overrun};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::fmt::{self, Display};
use std::io::{Cursor, Write};
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

/// Where an access is, beside an array of `asked` bytes. The first `near` bytes behind the array are right behind it.
struct Beside {
    address: usize,
    asked: usize,
    at: usize,
    near: usize,
}

impl Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let behind = self.at.wrapping_sub(self.address).wrapping_sub(self.asked);
        match self.at < self.address {
            true => write!(f, "{} before", InBytes(self.address - self.at))?,
            false if behind < self.near => f.write_str("right behind")?,
            false => write!(f, "{} behind", InBytes(behind))?,
        }
        write!(f, " an array of {}", InBytes(self.asked))
    }
}

/// Writes a line of two: what happened, and then what array it happened to, because finding that might fail.
fn tell(fault: &Fault) {
    let (signal, at) = (fault.signal, fault.address);
    let did = fault.wrote.map_or("read or wrote", |wrote| if wrote { "wrote" } else { "read" });
    say(format_args!("firsttouch: {signal}: it {did} at {at:#x}, which cannot be accessed\n"));
    let near = || find::<Guarded>(&installed()?)?.near(at);
    let Some(Near { address, asked, freed }) = near() else { return };
    if freed {
        let (byte, array) = (at.wrapping_sub(address) as isize, InBytes(asked));
        say(format_args!(
            "firsttouch: use after free: {did} byte {byte} of an array of {array} that was freed ({signal})\n"
        ));
    } else {
        let beside = Beside { address, asked, at, near: ALIGNMENT };
        say(format_args!("firsttouch: out of bounds: {did} {beside} ({signal})\n"));
    }
}

/// Writes a line, without allocating; what is too long for it is cut.
fn say(text: fmt::Arguments<'_>) {
    let mut line = Cursor::new([0; LONGEST]);
    let _ = line.write_fmt(text);
    os::write_in_handler(FILE.load(Relaxed), &line.get_ref()[..line.position() as usize]);
}

/// Describes the first memory fault of the process in a line or two in this file, then lets the signal take its course.
#[pyfunction]
pub fn watch_faults(file: i32) -> PyResult<()> {
    FILE.store(file, Relaxed);
    os::watch_faults(tell).map_err(|error| PyOSError::new_err((error.0, "memory faults cannot be watched".to_owned())))
}

/// Describes the writes beyond arrays that the outermost `guarded` has found since the last call.
#[pyfunction]
pub fn overruns(allocator: &PyAllocator) -> PyResult<Vec<String>> {
    let told = |Overrun { address, asked, at }: Overrun| {
        format!("out of bounds: something wrote {}", Beside { address, asked, at, near: 1 })
    };
    Ok(found::<Guarded>(allocator, "guarded")?.check().into_iter().map(told).collect())
}
