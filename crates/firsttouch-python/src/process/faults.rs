//! Records a memory fault before it ends the process, for a parent to read.

use crate::handlers::front;
use crate::python::errors::PyOSError;
use firsttouch::adaptors::Guarded;
use firsttouch::allocator::find;
use firsttouch::os::{self, Fault};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// The file descriptor to write to.
static FILE: AtomicI32 = AtomicI32::new(-1);

/// Writes six numbers: the signal, the address, 1 for a read, 2 for a write, 0 for unknown; and of the guarded block
/// next to it the address, the requested bytes, and 1 if it was freed. They are written twice, because finding the
/// block might fail.
fn note(fault: &Fault) {
    let way = fault.wrote.map_or(0, |wrote| 1 + u64::from(wrote));
    let mut numbers = [fault.signal as u64, fault.address as u64, way, 0, 0, 0];
    write(&numbers);
    if let Some((address, asked, freed)) = near(fault.address) {
        numbers[3..].copy_from_slice(&[address as u64, asked as u64, freed.into()]);
        write(&numbers);
    }
}

fn write(numbers: &[u64; 6]) {
    let mut bytes = [0; 48];
    for (bytes, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        bytes.copy_from_slice(&number.to_ne_bytes());
    }
    os::write_at_start(FILE.load(Relaxed), &bytes);
}

/// The guarded block next to an address, if the installed allocator guards.
fn near(address: usize) -> Option<(usize, usize, bool)> {
    let installed = front::installed()?;
    let near = find::<Guarded>(&installed)?.near(address)?;
    Some((near.address, near.asked, near.freed))
}

/// Writes the first memory fault to the start of the file with this descriptor, then lets the signal take its course.
#[pyfunction]
fn watch_faults(file: i32) -> PyResult<()> {
    FILE.store(file, Relaxed);
    os::watch_faults(note).map_err(|error| PyOSError::new_err((error.0, "memory faults cannot be watched".to_owned())))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(watch_faults, module)?)
}
