//! Traces for Python: record, read, replay and summarize them.

use crate::allocators::allocator::PyAllocator;
use crate::python::errors::{PyOSError, PyValueError};
use crate::tools::recorder_handler;
use crate::tools::replay_target::ReplayTarget;
use firsttouch_trace::replay::{ReplayOptions, Touch, replay};
use firsttouch_trace::summary::{Faults, Summary};
use firsttouch_trace::{Metadata, Survey, TraceError, recorder};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

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

/// Starts recording the requests to NumPy's default handler in `file`, with `facts` in its header.
#[pyfunction]
fn trace_begin(py: Python<'_>, file: PathBuf, facts: Metadata) -> PyResult<()> {
    recorder_handler::stand(py)?;
    recorder_handler::forget_lines();
    Ok(recorder::start(create(file)?, &facts)?)
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
    // Where standard output is closed, the file got its number, and would take what the program prints. A clone's number is
    // beyond those of the standard streams.
    if opened.as_raw_fd() <= libc::STDERR_FILENO { opened.try_clone() } else { Ok(opened) }
}

/// Ends the trace with `facts`: events, bytes and lost events. `None` where none is being written.
#[pyfunction]
fn trace_end(py: Python<'_>, facts: Metadata) -> PyResult<Option<(u64, u64, u64)>> {
    match py.detach(|| recorder::stop(&facts)) {
        None => Ok(None),
        Some(Ok((totals, bytes))) => Ok(Some((totals.events, bytes, totals.lost))),
        Some(Err(error)) => Err(PyOSError::new_err(error.to_string())),
    }
}

/// Whether a trace is being written.
#[pyfunction]
fn trace_is_on() -> bool {
    recorder::is_recording()
}

/// Reads a whole trace: its facts, totals, whether it has its end.
#[pyfunction]
fn trace_survey<'py>(py: Python<'py>, file: PathBuf, incomplete: bool) -> PyResult<Bound<'py, PyDict>> {
    let opened = Interruptible(File::open(file)?);
    let survey = py.detach(|| Survey::new(opened, incomplete)).map_err(trace_error)?;
    let found = PyDict::new(py);
    found.set_item("facts", survey.metadata.iter().cloned().collect::<std::collections::BTreeMap<_, _>>())?;
    found.set_item("complete", survey.complete)?;
    found.set_item("events", survey.totals.events)?;
    found.set_item("allocations", survey.totals.allocations)?;
    found.set_item("allocated_bytes", survey.totals.allocated_bytes)?;
    found.set_item("peak_in_use", survey.totals.peak_in_use)?;
    found.set_item("in_use_at_end", survey.totals.in_use)?;
    found.set_item("threads", survey.totals.threads)?;
    found.set_item("lost", survey.totals.lost)?;
    found.set_item("seconds", survey.micros as f64 / 1e6)?;
    Ok(found)
}

/// Replays a trace against the allocator that serves this process, or against `allocator` alone. `ready` is called
/// before the first event, when everything needed has been allocated.
#[pyfunction]
#[pyo3(signature = (file, allocator, touch, threads, incomplete, ready))]
fn trace_replay<'py>(
    py: Python<'py>,
    file: PathBuf,
    allocator: Option<&PyAllocator>,
    touch: &str,
    threads: bool,
    incomplete: bool,
    ready: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let touch = match touch {
        "none" => Touch::None,
        "first" => Touch::First,
        "all" => Touch::All,
        other => return Err(PyValueError::new_err(format!("touch is none, first or all, not {other:?}"))),
    };
    let (first, again) = (File::open(&file)?, File::open(file)?);
    let survey = py.detach(|| Survey::new(first, incomplete)).map_err(trace_error)?;
    let target = ReplayTarget::new(py, allocator)?;
    ready.call0()?;
    let options = ReplayOptions { touch, threads };
    let outcome = py.detach(|| replay(again, &survey, &target, options)).map_err(trace_error)?;
    let found = PyDict::new(py);
    found.set_item("seconds", outcome.seconds)?;
    found.set_item("events", outcome.events)?;
    found.set_item("refused", outcome.refused)?;
    found.set_item("peak_in_use", outcome.peak_in_use)?;
    Ok(found)
}

/// Summarizes a traced program by line: the lines that requested large blocks, what they cost, and what they cost on a pool;
/// with them, counts of the small blocks.
#[pyfunction]
fn trace_summary<'py>(
    py: Python<'py>,
    file: PathBuf,
    incomplete: bool,
    huge_from: u64,
) -> PyResult<(Vec<Bound<'py, PyDict>>, u64, u64)> {
    let (first, again) = (Interruptible(File::open(&file)?), Interruptible(File::open(file)?));
    let summarize = || Summary::new(again, &Survey::new(first, incomplete)?, huge_from);
    let summary = py.detach(summarize).map_err(trace_error)?;
    let each = summary.lines.iter().filter(|line| line.count > 0).map(|line| {
        let found = PyDict::new(py);
        found.set_item("file", &line.file)?;
        found.set_item("line", line.line)?;
        found.set_item("count", line.count)?;
        found.set_item("bytes", line.bytes)?;
        found.set_item("median_lifetime", line.median_lifetime() as f64 / 1e6)?;
        let Faults { small, huge, mapped, cleared } = line.faults;
        let pooled = line.pooled;
        let figures = [
            ("faults_small", small),
            ("faults_huge", huge),
            ("faults_mapped", mapped),
            ("cleared_bytes", cleared),
            ("pooled_small_bytes", pooled.small),
            ("pooled_huge_bytes", pooled.huge),
            ("pooled_purges", pooled.purges),
            ("pooled_cleared_bytes", pooled.cleared),
        ];
        figures.iter().try_for_each(|&(name, figure)| found.set_item(name, figure))?;
        Ok(found)
    });
    Ok((each.collect::<PyResult<_>>()?, summary.small_blocks, summary.small_bytes))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(trace_begin, module)?)?;
    module.add_function(wrap_pyfunction!(trace_end, module)?)?;
    module.add_function(wrap_pyfunction!(trace_is_on, module)?)?;
    module.add_function(wrap_pyfunction!(trace_survey, module)?)?;
    module.add_function(wrap_pyfunction!(trace_replay, module)?)?;
    module.add_function(wrap_pyfunction!(trace_summary, module)?)
}
