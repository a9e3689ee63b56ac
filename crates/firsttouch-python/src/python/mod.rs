//! What the other rooms know of Python: errors and values made without panics where memory is out, the GIL, callbacks of
//! the package, the lines that call, signals during long work.

pub mod call_sites;
pub mod callbacks;
pub mod errors;
pub mod global_allocator;
pub mod guarded;
pub mod immortal;
pub mod interrupts;
pub mod once;
pub mod pending;
pub mod values;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    once::look_up(module.py())?;
    module.add("UnsupportedError", module.py().get_type::<errors::UnsupportedError>())?;
    interrupts::register(module)?;
    global_allocator::register(module)
}
