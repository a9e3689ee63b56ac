//! Arrays on the memory of an allocator: `empty`, `zeros`, and the methods of the same names.

pub mod creation;
pub mod methods;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    creation::register(module)
}
