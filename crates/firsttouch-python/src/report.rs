//! The report on a Python process: the start-up hook's facts, and the pool's figures.

use crate::allocators::allocator::PyAllocator;
use crate::handlers::front::arrays_only;
use crate::process::stats_of;
use firsttouch::heap::malloc_trim;
use firsttouch::layout::SMALL_LIMIT;
use firsttouch::os::{self, Usage};
use firsttouch::{Stats, failure};
use firsttouch_report::Report;
use firsttouch_report::glibc::{self, Plainly};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What this process has used since `start`, which is as the launcher and the hook count it: the fields of [`Usage`].
pub fn used_since(start: [f64; 6]) -> Usage {
    os::usage().since(&usage(start))
}

fn usage([wall, user, kernel, minor_faults, major_faults, children]: [f64; 6]) -> Usage {
    let (minor_faults, major_faults) = (minor_faults as u64, major_faults as u64);
    Usage { wall, user, kernel, minor_faults, major_faults, children }
}

/// What was counted at the moment from which a report counts.
#[pyclass(frozen, module = "firsttouch._firsttouch")]
pub struct ReportStart {
    usage: Usage,
    stats: Stats,
    plainly: Plainly,
    returned: usize,
    failure: Option<String>,
}

#[pymethods]
impl ReportStart {
    /// The start of a process: nothing but what the kernel had counted of it.
    #[new]
    fn new(counted: [f64; 6]) -> Self {
        Self { usage: usage(counted), stats: Stats::default(), plainly: Plainly::default(), returned: 0, failure: None }
    }

    /// This moment.
    #[staticmethod]
    #[pyo3(signature = (allocator=None))]
    fn now(allocator: Option<&PyAllocator>) -> Self {
        let (stats, plainly) = (stats_of(allocator), glibc::plainly());
        Self { usage: os::usage(), stats, plainly, returned: malloc_trim::returned(), failure: failure::last_reason() }
    }
}

/// The report as text and as JSON.
#[pyfunction]
#[pyo3(signature = (facts, start, pooled, allocator=None))]
pub fn report(
    facts: &Bound<'_, PyDict>,
    start: &ReportStart,
    pooled: bool,
    allocator: Option<&PyAllocator>,
) -> PyResult<(String, String)> {
    fn fact<'py, T: FromPyObjectOwned<'py>>(facts: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>> {
        let found = facts.get_item(name)?.filter(|value| !value.is_none());
        found.map(|value| value.extract().map_err(Into::into)).transpose()
    }
    let arrays_only = !pooled || arrays_only().is_some();
    let (now, plainly) = if pooled { (stats_of(allocator), glibc::plainly()) } else { <(Stats, Plainly)>::default() };
    let last_failure = failure::last().zip(failure::last_reason());
    let last_failure = last_failure.filter(|(_, reason)| pooled && start.failure.as_ref() != Some(reason));
    let report = Report {
        process: std::process::id(),
        main: fact(facts, "main_process")?.unwrap_or_default(),
        rank: fact(facts, "rank")?,
        command: fact(facts, "command")?.unwrap_or_default(),
        python: fact(facts, "python")?,
        numpy: fact(facts, "numpy")?,
        refused: fact(facts, "not_pooled_because")?,
        used: os::usage().since(&start.usage),
        resident: os::resident_and_peak(),
        allocator: allocator.map(|allocator| allocator.expression()),
        c_library: (malloc_trim::returned() - start.returned, malloc_trim::free()),
        arrays_only,
        from: SMALL_LIMIT,
        pool: pooled.then(|| now.since(&start.stats)),
        plainly: plainly.since(start.plainly),
        last_failure,
        elsewhere: fact(facts, "elsewhere")?.unwrap_or_default(),
    };
    Ok(report.text_and_json())
}
