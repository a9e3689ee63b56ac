//! Profiled regions of a Python program.

use crate::handlers::front::{unwatch, watch};
use crate::python::values::ensure_memory;
use firsttouch::sync::lock::Lock;
use firsttouch_trace::profile::{Region, RegionCounts};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A region of the run in which arrays are counted, until it is closed.
#[pyclass(name = "ProfileRegion", module = "firsttouch._firsttouch", frozen)]
pub struct ProfileRegion(Lock<Option<Region>>);

#[pymethods]
impl ProfileRegion {
    #[new]
    fn open(py: Python<'_>) -> PyResult<Self> {
        ensure_memory(py)?;
        watch(py)?;
        Ok(Self(Lock::new(Some(py.detach(Region::open)))))
    }

    /// The counts so far.
    fn look<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let counts = self.0.lock().as_ref().map(Region::counts);
        counts.map(|counts| dict(py, counts)).transpose()
    }

    /// The same, and it ends.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.end().map(|counts| dict(py, counts)).transpose()
    }
}

impl ProfileRegion {
    fn end(&self) -> Option<RegionCounts> {
        let region = self.0.lock().take()?; // whoever takes it ends it, once
        let counts = region.counts();
        drop(region);
        unwatch();
        Some(counts)
    }
}

impl Drop for ProfileRegion {
    fn drop(&mut self) {
        self.end();
    }
}

fn dict(py: Python<'_>, counts: RegionCounts) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("allocated", counts.allocated)?;
    dict.set_item("arrays", counts.blocks)?;
    dict.set_item("peak", counts.peak)?;
    dict.set_item("largest", counts.largest)?;
    dict.set_item("kept", counts.live)?;
    dict.set_item("kept_arrays", counts.live_blocks)?;
    Ok(dict)
}
