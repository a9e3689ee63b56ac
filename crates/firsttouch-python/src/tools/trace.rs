//! Traces for Python: begin one, and end it as a file.

use crate::handlers::front;
use crate::python::call_sites;
use crate::report::used_since;
use firsttouch::os::Usage;
use firsttouch_report::gain::{FreshBytes, Gain, Price, Taken};
use firsttouch_report::{count, json};
use firsttouch_trace::trace::{self, Line, Trace};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::path::PathBuf;

const VERSION: u32 = 1;

/// Traces from now on the blocks that are asked of NumPy's default handler and of CPython's raw domain. Returns why it traces
/// arrays alone, if it does.
#[pyfunction]
pub fn trace_begin(py: Python<'_>) -> PyResult<Option<&'static str>> {
    front::watch(py)?;
    let arrays_only = front::watch_buffers(py).err();
    if !py.detach(trace::begin) {
        front::unwatch();
        return Err(PyOSError::new_err("the process is traced already"));
    }
    Ok(arrays_only)
}

/// Ends the trace, and writes it into `file` with these `facts` and what the process used since `start`. Returns what it has, in
/// words; `None` where the process is not traced.
#[pyfunction]
#[pyo3(signature = (file, facts, start=[0.0; 6]))]
pub fn trace_end(
    py: Python<'_>,
    file: PathBuf,
    facts: Vec<(String, String)>,
    start: [f64; 6],
) -> PyResult<Option<String>> {
    let used = used_since(start);
    let Some(found) = py.detach(trace::end) else { return Ok(None) };
    front::unwatch();
    let price = Price::measure().ok_or_else(|| PyOSError::new_err("there is no memory to measure its cost"))?;
    std::fs::write(file, as_json(&found, &facts, &used, &price))?;
    let lines = found.lines.iter().filter(|line| line.count > 0).count();
    let blocks = count(found.allocations + found.buffers);
    Ok(Some(format!("{blocks} blocks, by {lines} line{}", if lines == 1 { "" } else { "s" })))
}

/// The trace with what a pool would save. All memory is taken to be used, as far as the page faults that the process was seen
/// to take allow it.
fn as_json(found: &Trace, facts: &[(String, String)], used: &Usage, price: &Price) -> String {
    let seconds = |seconds: f64| format!("{seconds:.9}");
    let plainly = found.taken().plainly.faults();
    let touched = (found.used.minor_faults as f64 / (plainly as f64).max(1.0)).min(1.0);
    let all = found.taken().times(touched);
    let processor = used.processor();
    let price = price.within(found.used.kernel, processor, &all);
    let gain = Gain::of(all.saved_faults(), price.saved(&all), |_| processor);
    let of_line = |(site, line): (usize, &Line)| {
        let (file, number, library) = call_sites::place(site as u64)
            .map_or_else(Default::default, |place| (place.file, place.line, place.library));
        let taken = line.taken.times(touched);
        let plainly = Taken { pooled: FreshBytes::default(), cleared: 0.0, ..taken };
        let middle = |taken| seconds(price.saved(taken).middle().min(processor));
        json::object([
            ("file", json::text(file)),
            ("line", number.to_string()),
            ("library", json::text(library)),
            ("count", line.count.to_string()),
            ("bytes", line.bytes.to_string()),
            ("mean_lifetime", seconds(line.lived as f64 / 1e6 / line.count as f64)),
            ("seconds", middle(&plainly)),
            ("avoidable", middle(&taken)),
        ])
    };
    let lines = found.lines.iter().enumerate().filter(|(_, line)| line.count > 0);
    json::lines([
        ("trace", VERSION.to_string()),
        ("facts", json::object(facts.iter().map(|(name, value)| (name.as_str(), json::text(value))))),
        ("seconds", seconds(found.used.wall)),
        ("wall", seconds(used.wall)),
        ("processor", seconds(processor)),
        ("children_seconds", seconds(used.children)),
        ("allocations", found.allocations.to_string()),
        ("allocated_bytes", found.allocated_bytes.to_string()),
        ("peak_in_use", found.peak_in_use.to_string()),
        ("in_use_at_end", found.in_use.to_string()),
        ("buffers", found.buffers.to_string()),
        ("buffer_bytes", found.buffer_bytes.to_string()),
        ("verdict", json::text(gain.verdict.word())),
        ("gain_seconds", json::list([gain.seconds.low, gain.seconds.high].map(seconds))),
        ("gain_share", json::list([gain.share.low, gain.share.high].map(seconds))),
        ("faults_plainly", all.plainly.faults().to_string()),
        ("faults_pooled", all.pooled.faults().to_string()),
        ("lines", json::list(lines.map(of_line))),
    ])
}
