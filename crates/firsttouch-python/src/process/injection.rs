//! For tests: a system that refuses, and one with little room.

use crate::python::errors::PyValueError;
use firsttouch::os::{self, Call};
use pyo3::prelude::*;

const CALLS: [(&str, Call); 11] = [
    ("map", Call::Map),
    ("unmap", Call::Unmap),
    ("discard", Call::Discard),
    ("advise_huge", Call::AdviseHuge),
    ("spawn", Call::Spawn),
    ("resident", Call::Resident),
    ("protect", Call::Protect),
    ("open_pages", Call::OpenPages),
    ("scan_pages", Call::ScanPages),
    ("read_pages", Call::ReadPages),
    ("read_mappings", Call::ReadMappings),
];

/// Lets `passing` of the named system calls succeed, then `failing` of them fail. No names end that.
#[pyfunction]
fn fail_calls(names: Vec<String>, passing: i64, failing: i64) -> PyResult<()> {
    let find = |name: &String| {
        let found = CALLS.iter().find(|(known, _)| known == name).map(|&(_, call)| call);
        found.ok_or_else(|| PyValueError::new_err(format!("no system call {name:?} can be made to fail")))
    };
    os::fail_after(&names.iter().map(find).collect::<PyResult<Vec<_>>>()?, passing, failing);
    Ok(())
}

/// Limits the slots of the address space that segments may claim.
#[pyfunction]
fn shrink_slots(count: usize) {
    os::shrink_slots(count);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fail_calls, module)?)?;
    module.add_function(wrap_pyfunction!(shrink_slots, module)?)
}
