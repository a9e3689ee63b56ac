//! The Python line that requests memory: the innermost frame that is neither NumPy's nor ours.

#![allow(unsafe_code)] // Safety: frames are walked with the GIL held, and code objects are kept once seen.

use crate::python::values::Name;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Frames that are looked at: deep enough for NumPy's helpers of helpers.
const DEPTH: usize = 16;

/// A line, and the code object it belongs to, kept so that its address stays its own.
struct SourceLine {
    code: Py<PyAny>,
    number: i32,
}

#[derive(Default)]
struct SeenCode {
    /// Whether a code object belongs to NumPy or us.
    library: HashMap<usize, bool>,
    /// Numbers of lines from 1 on, by code object and line.
    numbers: HashMap<(usize, i32), u64>,
    lines: Vec<SourceLine>,
}

impl SeenCode {
    /// Makes room for one more line; where there is no memory for it, a block has no line.
    fn has_room(&mut self) -> bool {
        self.library.try_reserve(1).is_ok() && self.numbers.try_reserve(1).is_ok() && self.lines.try_reserve(1).is_ok()
    }
}

static SEEN: Mutex<Option<SeenCode>> = Mutex::new(None);

/// Where NumPy and this package lie, and what is Python's own way of importing.
fn libraries(py: Python<'_>) -> &'static [String] {
    static FOUND: PyOnceLock<Vec<String>> = PyOnceLock::new();
    FOUND.get_or_init(py, || {
        let folder = |name: &str| -> PyResult<String> {
            let modules = py.import(Name("sys"))?.getattr(Name("modules"))?; // both are loaded, or being loaded, by now
            let file = text(&modules.get_item(name)?.getattr(Name("__file__"))?)?;
            Ok(file.trim_end_matches("__init__.py").to_owned())
        };
        let folders = ["numpy", "firsttouch"].into_iter().filter_map(|name| folder(name).ok());
        folders.chain(["<frozen importlib".to_owned()]).collect()
    })
}

/// A file's name; bytes that are not UTF-8, which Python keeps as surrogates, are replaced.
fn text(name: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(name.cast::<PyString>()?.to_string_lossy().into_owned())
}

/// Looks up now what the first call site would need.
pub fn look_up(py: Python<'_>) {
    libraries(py);
}

fn is_library(code: &Bound<'_, PyAny>) -> bool {
    let file = code.getattr(Name("co_filename")).and_then(|name| text(&name)).unwrap_or_default();
    libraries(code.py()).iter().any(|folder| file.starts_with(folder))
}

/// The number of the line that asks; zero where no Python code runs in this thread. (NumPy's text parsers ask without the
/// GIL; they wait for it here.)
pub fn site() -> u64 {
    Python::try_attach(find).unwrap_or(0)
}

fn find(py: Python<'_>) -> u64 {
    // SAFETY: a borrowed reference or null; all others are owned.
    let mut frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
    for _ in 0..DEPTH {
        let Some(at) = &frame else { return 0 };
        // SAFETY: the frame lives, and the code object is a new reference.
        let code = unsafe { Bound::from_owned_ptr(py, ffi::PyFrame_GetCode(at.as_ptr().cast()).cast()) };
        let key = code.as_ptr() as usize;
        let known =
            SEEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().library.get(&key).copied();
        let library = known.unwrap_or_else(|| is_library(&code));
        if !library {
            // SAFETY: the frame lives.
            let number = unsafe { ffi::PyFrame_GetLineNumber(at.as_ptr().cast()) };
            return note(code, number);
        }
        if known.is_none() {
            let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
            let seen = seen.get_or_insert_default();
            if !seen.has_room() {
                return 0;
            }
            seen.library.insert(key, true);
            seen.lines.push(SourceLine { code: code.unbind(), number: 0 }); // keeps it
        }
        frame = at.getattr(Name("f_back")).ok().filter(|back| !back.is_none());
    }
    0
}

fn note(code: Bound<'_, PyAny>, number: i32) -> u64 {
    let key = (code.as_ptr() as usize, number);
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = seen.get_or_insert_default();
    if let Some(&found) = seen.numbers.get(&key) {
        return found;
    }
    if !seen.has_room() {
        return 0;
    }
    seen.library.insert(key.0, false);
    seen.lines.push(SourceLine { code: code.unbind(), number });
    let site = seen.lines.len() as u64;
    seen.numbers.insert(key, site);
    site
}

/// File and line of a site.
pub fn place(py: Python<'_>, site: u64) -> PyResult<Option<(String, i32)>> {
    let found = {
        let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        let line = seen.as_ref().and_then(|seen| seen.lines.get((site as usize).checked_sub(1)?));
        line.map(|line| (line.code.clone_ref(py), line.number))
    };
    let Some((code, number)) = found else { return Ok(None) };
    Ok(Some((text(&code.bind(py).getattr(Name("co_filename"))?)?, number)))
}

/// The same as text, for messages of the core, in any thread.
pub fn file_and_line(site: u64) -> Option<String> {
    let found = Python::try_attach(|py| place(py, site).ok().flatten()).flatten();
    found.map(|(file, line)| format!("{file}:{line}"))
}
