//! Records a memory fault before it ends the process, for a parent to read.

use crate::handlers::front;
use crate::python::errors::PyOSError;
use firsttouch::adaptors::Guarded;
use firsttouch::allocator::find;
use firsttouch::os::{self, Fault};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Where to write.
static FILE: AtomicI32 = AtomicI32::new(-1);

/// Six numbers: the signal, the address, 1 for reading, 2 for writing, 0 for unknown; of the guarded block next to it
/// where it begins, the bytes asked for, and 1 if it was freed. They are written twice, as finding the block might fail.
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

/// The guarded block next to an address, if what is installed guards.
fn near(address: usize) -> Option<(usize, usize, bool)> {
    let installed = front::installed()?;
    let near = find::<Guarded>(&installed)?.near(address)?;
    Some((near.address, near.asked, near.freed))
}

/// From now on the first memory fault is noted at the start of the file with this number, then goes its way.
#[pyfunction]
fn watch_faults(file: i32) -> PyResult<()> {
    FILE.store(file, Relaxed);
    os::watch_faults(note).map_err(|error| PyOSError::new_err((error.0, "memory faults are not told".to_owned())))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(watch_faults, module)?)
}
