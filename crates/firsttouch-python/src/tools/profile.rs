//! Profiled regions of a Python program.

use crate::allocators::allocator::PyAllocator;
use crate::handlers::front::{unwatch, watch};
use crate::python::gil::Guarded;
use crate::python::values::{Dict, ensure_memory};
use firsttouch_trace::profile::{self, Region};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A region of the run in which arrays are counted, until it is closed.
#[pyclass(name = "ProfileRegion", module = "firsttouch._firsttouch", frozen)]
pub struct ProfileRegion(Guarded<Option<Region>>);

#[pymethods]
impl ProfileRegion {
    /// Opens a region. The first to open trims the memory that `cold` keeps idle, so that earlier parts of the run do
    /// not show.
    #[new]
    fn open(py: Python<'_>, only_this_thread: bool, cold: &Bound<'_, PyAny>) -> PyResult<Self> {
        ensure_memory(py)?;
        let mut natives = Vec::new();
        for allocator in cold.try_iter()? {
            natives.extend(allocator?.cast::<PyAllocator>()?.get().native().cloned());
        }
        watch(py)?;
        let trim = || {
            natives.iter().for_each(|native| {
                native.trim();
            });
        };
        Ok(Self(Guarded::new(Some(py.detach(|| Region::open(only_this_thread, trim))))))
    }

    /// The counts so far; without what pools recycled, if other allocators served, too.
    fn look<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.0.lock(py).as_ref().map(Region::snapshot);
        found.map(|found| dict(py, found)).transpose()
    }

    /// The same, and it ends.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.end(py).map(|found| dict(py, found)).transpose()
    }
}

impl ProfileRegion {
    fn end(&self, py: Python<'_>) -> Option<(profile::RegionCounts, Option<profile::Recycling>)> {
        let region = self.0.lock(py).take()?; // whoever takes it ends it, once
        let found = region.close();
        unwatch(py);
        Some(found)
    }
}

impl Drop for ProfileRegion {
    fn drop(&mut self) {
        Python::attach(|py| self.end(py));
    }
}

fn dict(py: Python<'_>, found: (profile::RegionCounts, Option<profile::Recycling>)) -> PyResult<Bound<'_, PyDict>> {
    let (counts, pools) = found;
    let dict = Dict::new(py)?;
    dict.set_item("allocated", counts.allocated)?;
    dict.set_item("arrays", counts.blocks)?;
    dict.set_item("peak", counts.peak)?;
    dict.set_item("largest", counts.largest)?;
    dict.set_item("kept", counts.live)?;
    dict.set_item("kept_arrays", counts.live_blocks)?;
    dict.set_item("first_touched", pools.map(|pools| pools.first_touched))?;
    dict.set_item("recycled", pools.map(|pools| pools.recycled))?;
    dict.set_item("recycled_arrays", pools.map(|pools| pools.recycled_blocks))?;
    Ok(dict.done())
}
