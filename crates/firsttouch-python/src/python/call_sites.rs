//! The Python line that requests memory: the innermost frame that is neither NumPy's nor ours.

#![allow(unsafe_code)] // Safety: frames are walked with the GIL held.

use crate::python::gil::Interned;
use crate::python::values::Name;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Frames that are looked at: deep enough for NumPy's helpers of helpers.
const DEPTH: usize = 16;

/// A file of Python code, by its number.
#[derive(Clone, Copy)]
struct File {
    number: usize,
    /// Whether it belongs to NumPy or us.
    is_library: bool,
}

/// Files and lines by name, not by code object: a program may make those without end.
#[derive(Default)]
struct SeenCode {
    files: HashMap<Arc<str>, File>,
    names: Vec<Arc<str>>,
    /// Numbers of lines from 1 on, by file and line.
    numbers: HashMap<(usize, i32), u64>,
    lines: Vec<(usize, i32)>,
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
    let _ = FILE_NAME.get(py);
}

static FILE_NAME: Interned = Interned::new("co_filename");

/// The file of a code object; `None` where there is no memory for its name.
fn file(code: &Bound<'_, PyAny>) -> Option<File> {
    let libraries = libraries(code.py()); // before the lock, as it runs Python
    let name = code.getattr(FILE_NAME.get(code.py()).ok()?).ok()?;
    let name = name.cast::<PyString>().ok()?.to_string_lossy();
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = seen.get_or_insert_default();
    if let Some(&found) = seen.files.get(&*name) {
        return Some(found);
    }
    seen.files.try_reserve(1).and_then(|()| seen.names.try_reserve(1)).ok()?;
    let is_library = libraries.iter().any(|folder| name.starts_with(folder));
    let file = File { number: seen.names.len(), is_library };
    let name: Arc<str> = name.as_ref().into();
    seen.names.push(name.clone());
    seen.files.insert(name, file);
    Some(file)
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
        let Some(file) = file(&code) else { return 0 };
        if !file.is_library {
            // SAFETY: the frame lives.
            let number = unsafe { ffi::PyFrame_GetLineNumber(at.as_ptr().cast()) };
            return note((file.number, number));
        }
        frame = at.getattr(Name("f_back")).ok().filter(|back| !back.is_none());
    }
    0
}

fn note(line: (usize, i32)) -> u64 {
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = seen.get_or_insert_default();
    if let Some(&found) = seen.numbers.get(&line) {
        return found;
    }
    if seen.numbers.try_reserve(1).is_err() || seen.lines.try_reserve(1).is_err() {
        return 0;
    }
    seen.lines.push(line);
    let site = seen.lines.len() as u64;
    seen.numbers.insert(line, site);
    site
}

/// File and line of a site.
pub fn place(_: Python<'_>, site: u64) -> Option<(String, i32)> {
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = seen.as_ref()?;
    let &(file, number) = seen.lines.get((site as usize).checked_sub(1)?)?;
    Some((seen.names.get(file)?.to_string(), number))
}

/// The same as text, for messages of the core, in any thread.
pub fn file_and_line(site: u64) -> Option<String> {
    let found = Python::try_attach(|py| place(py, site)).flatten();
    found.map(|(file, line)| format!("{file}:{line}"))
}
