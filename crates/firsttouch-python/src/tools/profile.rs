//! Profiled regions of a Python program.

use crate::handlers::front::{unwatch, watch};
use crate::python::gil::Guarded;
use crate::python::values::{Dict, ensure_memory};
use firsttouch_trace::profile::{Region, RegionCounts};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A region of the run in which arrays are counted, until it is closed.
#[pyclass(name = "ProfileRegion", module = "firsttouch._firsttouch", frozen)]
pub struct ProfileRegion(Guarded<Option<Region>>);

#[pymethods]
impl ProfileRegion {
    #[new]
    fn open(py: Python<'_>, only_this_thread: bool) -> PyResult<Self> {
        ensure_memory(py)?;
        watch(py)?;
        Ok(Self(Guarded::new(Some(py.detach(|| Region::open(only_this_thread))))))
    }

    /// The counts so far.
    fn look<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let counts = self.0.lock(py).as_ref().map(Region::counts);
        counts.map(|counts| dict(py, counts)).transpose()
    }

    /// The same, and it ends.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.end(py).map(|counts| dict(py, counts)).transpose()
    }
}

impl ProfileRegion {
    fn end(&self, py: Python<'_>) -> Option<RegionCounts> {
        let region = self.0.lock(py).take()?; // whoever takes it ends it, once
        let counts = region.counts();
        drop(region);
        unwatch(py);
        Some(counts)
    }
}

impl Drop for ProfileRegion {
    fn drop(&mut self) {
        Python::attach(|py| self.end(py));
    }
}

fn dict(py: Python<'_>, counts: RegionCounts) -> PyResult<Bound<'_, PyDict>> {
    let dict = Dict::new(py)?;
    dict.set_item("allocated", counts.allocated)?;
    dict.set_item("arrays", counts.blocks)?;
    dict.set_item("peak", counts.peak)?;
    dict.set_item("largest", counts.largest)?;
    dict.set_item("kept", counts.live)?;
    dict.set_item("kept_arrays", counts.live_blocks)?;
    Ok(dict.done())
}
