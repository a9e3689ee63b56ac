//! Traces for Python: record and summarize them.

use crate::handlers::{front, observed};
use crate::python::values::PyValueError;
use crate::report::used_since;
use firsttouch::gain::{Price, Verdict};
use firsttouch::os::{self, Usage};
use firsttouch::report::count;
use firsttouch::size::Bytes;
use firsttouch_trace::summary::{ARRAYS_ONLY, RAISED_FOR, RECORDED_FAULTS, RECORDED_KERNEL};
use firsttouch_trace::{LineSummary, Metadata, Summary, TraceError, recorder};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A trace that is read for long: a signal's handler that raises (Ctrl-C) ends it, with its exception as the error.
struct Interruptible(File);

impl Read for Interruptible {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| py.check_signals()).map_err(io::Error::other)?;
        self.0.read(buffer)
    }
}

fn trace_error(error: TraceError) -> PyErr {
    match error {
        TraceError::Io(error) => error.into(),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// What the process had used when the recording began.
static BEFORE: Mutex<Option<Usage>> = Mutex::new(None);

/// Starts recording in `file` the large blocks that are asked of NumPy's default handler and of CPython's raw domain, with
/// `facts` at its beginning.
#[pyfunction]
pub fn trace_begin(py: Python<'_>, file: PathBuf, mut facts: Metadata) -> PyResult<()> {
    front::watch(py)?;
    let known = [
        ("firsttouch", env!("CARGO_PKG_VERSION").to_owned()),
        ("process", std::process::id().to_string()),
        (RAISED_FOR, front::raised_for().unwrap_or_default().to_string()),
    ];
    let arrays_only = front::watch_buffers(py).err().map(|why| (ARRAYS_ONLY, why.to_owned()));
    facts.extend(known.into_iter().chain(arrays_only).map(|(name, value)| (name.to_owned(), value)));
    observed::forget_lines();
    let started = create(file).and_then(|file| recorder::start(file, &facts));
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(os::usage());
    Ok(started.inspect_err(|_| front::unwatch())?)
}

/// Creates the file of a trace, or empties it; but not one that another process is writing to, as two programs do that are
/// traced in one directory.
fn create(file: PathBuf) -> io::Result<File> {
    let opened = File::options().write(true).create(true).truncate(false).open(file)?;
    if opened.metadata()?.is_file() {
        // Any number may write to a device: /dev/null, a terminal.
        if let Err(TryLockError::WouldBlock) = opened.try_lock() {
            return Err(io::Error::new(ErrorKind::ResourceBusy, "another process is recording to it"));
        }
        opened.set_len(0)?;
    }
    // Where standard output is closed, the file got its number, and would take what the program prints.
    os::beside_standard_streams(opened)
}

/// Ends the trace with what the process used since `start`: events, lost events, and a description of the file. `None`
/// where none is being written.
#[pyfunction]
#[pyo3(signature = (start=[0.0; 6]))]
pub fn trace_end(py: Python<'_>, start: [f64; 6]) -> PyResult<Option<(u64, u64, String)>> {
    let used = used_since(start);
    let seconds = [("wall", used.wall), ("user", used.user), ("kernel", used.kernel), ("children", used.children)];
    let mut facts = seconds.map(|(name, seconds)| (name.to_owned(), format!("{seconds:.6}"))).to_vec();
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let recorded = os::usage().since(&before);
        facts.push((RECORDED_KERNEL.to_owned(), format!("{:.6}", recorded.kernel)));
        facts.push((RECORDED_FAULTS.to_owned(), recorded.minor_faults.to_string()));
    }
    let Some(stopped) = py.detach(|| recorder::stop(&facts)) else { return Ok(None) };
    front::unwatch();
    match stopped {
        Ok(recorder::Recorded { events, bytes, lost }) => {
            let noun = if events == 1 { "event" } else { "events" };
            Ok(Some((events, lost, format!("{} {noun}, {}", count(events), Bytes(bytes as usize)))))
        }
        Err(error) => Err(PyOSError::new_err(error.to_string())),
    }
}

/// Reads a whole trace and summarizes it by line: its facts and totals, the lines that requested large blocks, what these
/// cost, and what a pool would save of it.
#[pyfunction]
pub fn trace_summary<'py>(py: Python<'py>, file: PathBuf, incomplete: bool) -> PyResult<Bound<'py, PyDict>> {
    let price =
        py.detach(Price::measure).ok_or_else(|| PyOSError::new_err("there is no memory to measure its cost"))?;
    let opened = Interruptible(File::open(file)?);
    let summary = py.detach(|| Summary::new(opened, incomplete)).map_err(trace_error)?;
    let found = PyDict::new(py);
    found.set_item("facts", summary.metadata.iter().cloned().collect::<BTreeMap<_, _>>())?;
    found.set_item("complete", summary.complete)?;
    found.set_item("seconds", summary.micros as f64 / 1e6)?;
    let figures = [
        ("events", summary.events),
        ("allocations", summary.allocations),
        ("allocated_bytes", summary.allocated_bytes),
        ("peak_in_use", summary.peak_in_use),
        ("in_use_at_end", summary.in_use),
        ("buffers", summary.buffers),
        ("buffer_bytes", summary.buffer_bytes),
        ("lost", summary.lost),
    ];
    figures.iter().try_for_each(|&(name, figure)| found.set_item(name, figure))?;
    let touched = summary.touched();
    let all = summary.taken().times(touched);
    let processor = summary.processor();
    let saved = price.range(&all, summary.seen());
    let gain = saved.gain(processor);
    let verdict = match gain.verdict(processor) {
        Verdict::Nothing => "nothing",
        Verdict::Perhaps => "perhaps",
        Verdict::Certain => "certain",
    };
    found.set_item("verdict", verdict)?;
    found.set_item("processor", processor)?;
    found.set_item("gain_seconds", (gain.low, gain.high))?;
    found.set_item("faults_plainly", all.plainly.faults())?;
    found.set_item("faults_pooled", all.pooled.faults())?;
    let alone = price.saved(&all);
    let in_program = if alone > 0.0 { saved.middle() / alone } else { 1.0 };
    let line_dict = |line: &LineSummary| {
        let found = PyDict::new(py);
        let taken = line.taken.times(touched);
        found.set_item("file", &line.file)?;
        found.set_item("line", line.line)?;
        found.set_item("library", &line.library)?;
        found.set_item("count", line.count)?;
        found.set_item("bytes", line.bytes)?;
        found.set_item("median_lifetime", line.median_lifetime() as f64 / 1e6)?;
        found.set_item("seconds", (in_program * price.plainly(&taken)).min(processor))?;
        found.set_item("avoidable", (in_program * price.saved(&taken)).min(processor))?;
        PyResult::Ok(found)
    };
    let lines = summary.lines.iter().filter(|line| line.count > 0).map(line_dict);
    found.set_item("lines", lines.collect::<PyResult<Vec<_>>>()?)?;
    Ok(found)
}
