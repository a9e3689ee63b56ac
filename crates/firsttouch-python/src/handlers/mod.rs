//! NumPy's handlers (NEP 49) in front of allocators, for the process, a context, a scope or one constructor.
//!
//! From the bottom: a [`handler`](handler::Handler) is what the functions need; [`allocate`] and [`deallocate`] are its
//! functions, [`entry_points`] which of them NumPy gets; the [`front`] stands in [NumPy's capsule](numpy_default) for the
//! process, [`capsules`] are for all others, [`contexts`] put them in place. The size that NumPy passes is never trusted;
//! all kinds of handlers take blocks back in the same way, by the address's owner.

pub mod allocate;
pub mod c_library;
pub mod capsules;
pub mod contexts;
pub mod deallocate;
pub mod entry_points;
pub mod front;
pub mod handler;
pub mod numpy_default;
pub mod process_allocator;
pub mod profile_reports;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    contexts::register(module)
}
