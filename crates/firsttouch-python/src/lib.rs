//! The Python module of firsttouch: it translates between Python, NumPy and the core, and decides nothing.
//!
//! The modules, from the bottom; each uses only those before it:
//!
//! | module | |
//! |---|---|
//! | [`python`] | errors that survive without memory, the GIL, callbacks of the package, call sites |
//! | [`numpy`] | the C interface, tracemalloc |
//! | [`allocators`] | allocators as objects, their factories, adaptors and expressions, the pool of the process |
//! | [`custom`] | allocators written in Python |
//! | [`handlers`] | NumPy's memory handlers (NEP 49) |
//! | [`arrays`] | the methods `empty` and `zeros` |
//! | [`scratch`], [`numba`] | scratch buffers and scopes; the same in compiled code |
//! | [`placement`], [`inspection`], [`sharing`] | pages and nodes, what stands behind an array, memory between processes |
//! | [`process`], [`libraries`], [`faults`] | statistics, forks; pools of other libraries; what `guarded` finds |
//! | [`report`], [`tools`] | the report; traces and profiles |

mod allocators;
mod arrays;
mod custom;
mod faults;
mod handlers;
mod inspection;
mod libraries;
mod numba;
mod numpy;
mod placement;
mod process;
mod python;
mod report;
mod scratch;
mod sharing;
mod tools;

use crate::numpy::NumPy;
use crate::python::call_sites;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Registers functions of the package by their names; a name that is registered again is replaced. Then looks up once what
/// calls would look up when they first need it.
#[pyfunction]
#[pyo3(name = "register", signature = (**functions))]
fn register_callbacks(py: Python<'_>, functions: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    functions.map_or(Ok(()), |functions| python::add(py, functions))?;
    call_sites::look_up(py);
    scratch::scope::look_up(py)?;
    custom::ERROR.get(py);
    let _ = NumPy::get(py); // if NumPy is not supported, the error occurs when it is needed
    Ok(())
}

/// The native half of the package `firsttouch`. It needs no GIL: [`python::gil`] says how values are shared.
#[pymodule(gil_used = false)]
mod _firsttouch {
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::tools::heaps::{contents_of_mapping, live_begin, live_end};
    #[pymodule_export]
    use crate::{
        allocators::allocator::{PyAllocator, default_pool, numpy_default, upstream},
        allocators::factories::{bytes, declared, did_you_mean, from_functions, parse, parse_size},
        custom::{deliver, own, take_error},
        faults::{overruns, watch_faults},
        handlers::capsules::{accepts, current, enter, get_allocator, leave},
        handlers::front::{arrays_only, install, is_installed, uninstall},
        inspection::{inspect, pagemap},
        numba::{NumbaBuffers, numba_failure, numba_setup},
        placement::{current_node, migrate_range, numa_nodes, receipt_of, touch_range},
        process::{fail_calls, last_failure, shrink_address_space, stats, trim, trim_c_library},
        python::values::fail_allocation,
        register_callbacks,
        report::{ReportStart, report},
        scratch::buffer::{FixedBuffer, PyBuffer, ScratchBuffer},
        scratch::scope::{CallMark, PyScope, Scopes, ScratchFunction, default_buffer, home},
        sharing::{SharedMapping, shared_wait_until_opened},
        tools::machine::{budget_file, end_with, headroom, leave_budget, memory_bounds, share_budget},
        tools::profile::ProfileRegion,
        tools::trace::{trace_begin, trace_end},
    };

    use crate::python::values::UnsupportedError;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn begin(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("SMALL_LIMIT", firsttouch::layout::SMALL_LIMIT)?;
        module.add("LINES_FROM", firsttouch::adaptors::LINES_FROM)?;
        let (from, to) = firsttouch::heap::claim::RANGES[0];
        module.add("SEGMENTS", (from, to, 1_usize << firsttouch::address_map::SLOT_SHIFT))?;
        module.add("UnsupportedError", module.py().get_type::<UnsupportedError>())?;
        crate::python::begin(module.py())?;
        crate::allocators::factories::begin(module)?;
        crate::process::register_at_fork(module)?;
        module.delattr("__all__") // the module is private: what is public, the package says
    }
}
