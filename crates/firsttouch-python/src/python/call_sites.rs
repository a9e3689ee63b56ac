//! The line of the program that requests memory, and the line of a library through which it does.

#![allow(unsafe_code)] // Safety: frames are walked with the GIL held.

use crate::python::gil::{Interned, is_attached};
use crate::python::values::Name;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Frames that are looked at: a program reaches an array of xarray's through some thirty.
const DEPTH: usize = 100;

/// Whose code a file has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Code {
    /// NumPy's or ours, of which nobody wants to know, or of Python's own way of importing.
    Hidden,
    /// Of Python's standard library or an installed package.
    Library,
    Program,
}

/// A file of Python code, by its number.
#[derive(Clone, Copy)]
struct File {
    number: usize,
    code: Code,
}

/// A line of a file, by the file's number.
type Place = (usize, i32);

/// Files and lines by name, not by code object: a program may make those without end.
#[derive(Default)]
struct SeenCode {
    files: HashMap<Arc<str>, File>,
    names: Vec<Arc<str>>,
    /// Numbers of sites from 1 on, by the program's line.
    numbers: HashMap<Place, u64>,
    /// The program's line, and the first one of a library through which it made a request.
    sites: Vec<(Place, Option<Place>)>,
}

static SEEN: Mutex<Option<SeenCode>> = Mutex::new(None);

/// The folders of installed packages, wherever they are; the last is Windows'.
const PACKAGES: [&str; 3] = ["/site-packages/", "/dist-packages/", r"\site-packages\"];

/// Where code lies that is not the program's.
struct Folders {
    /// Of NumPy and this package.
    hidden: Vec<String>,
    /// Of the standard library.
    standard: Option<String>,
}

static FOLDERS: OnceLock<Folders> = OnceLock::new();

impl Folders {
    fn get(py: Python<'_>) -> &'static Self {
        if let Some(found) = FOLDERS.get() {
            return found;
        }
        let look = || {
            let folder = |name: &str| -> PyResult<String> {
                let modules = py.import(Name("sys"))?.getattr(Name("modules"))?; // all are loaded, or being loaded, by now
                let file = text(&modules.get_item(name)?.getattr(Name("__file__"))?)?;
                Ok(file[..file.rfind(std::path::is_separator).map_or(file.len(), |at| at + 1)].to_owned())
            };
            let hidden = ["numpy", "firsttouch"].into_iter().filter_map(|name| folder(name).ok()).collect();
            Self { hidden, standard: folder("os").ok() }
        };
        let found = look(); // it runs Python, for which no other thread may wait
        FOLDERS.get_or_init(|| found)
    }

    fn code(&self, file: &str) -> Code {
        if self.hidden.iter().any(|folder| file.starts_with(folder)) || file.starts_with("<frozen importlib") {
            Code::Hidden
        } else if self.short(file).len() < file.len() || file.starts_with("<frozen ") {
            Code::Library
        } else {
            Code::Program
        }
    }

    /// The name of a library's file as it is imported.
    fn short<'a>(&self, file: &'a str) -> &'a str {
        if let Some(at) = PACKAGES.iter().filter_map(|folder| Some(file.rfind(folder)? + folder.len())).max() {
            return &file[at..];
        }
        self.standard.as_deref().and_then(|folder| file.strip_prefix(folder)).unwrap_or(file)
    }
}

/// A file's name; bytes that are not UTF-8, which Python keeps as surrogates, are replaced.
fn text(name: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(name.cast::<PyString>()?.to_string_lossy().into_owned())
}

/// Looks up now what the first call site would need.
pub fn look_up(py: Python<'_>) {
    Folders::get(py);
    let _ = FILE_NAME.get(py);
}

static FILE_NAME: Interned = Interned::new("co_filename");

/// The file of a code object; `None` where there is no memory for its name.
fn file(code: &Bound<'_, PyAny>) -> Option<File> {
    let folders = Folders::get(code.py()); // before the lock, as it runs Python
    let name = code.getattr(FILE_NAME.get(code.py()).ok()?).ok()?;
    let name = name.cast::<PyString>().ok()?.to_string_lossy();
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = seen.get_or_insert_default();
    if let Some(&found) = seen.files.get(&*name) {
        return Some(found);
    }
    seen.files.try_reserve(1).and_then(|()| seen.names.try_reserve(1)).ok()?;
    let file = File { number: seen.names.len(), code: folders.code(&name) };
    let name: Arc<str> = name.as_ref().into();
    seen.names.push(name.clone());
    seen.files.insert(name, file);
    Some(file)
}

/// The number of the program's line that asks: the nearest one that is neither in an installed package nor in the standard
/// library; where all are, the nearest that is not NumPy's or ours. Zero where this thread runs no Python code, or that of
/// another interpreter, and while an exception is on its way. CPython asks for memory under locks of its own, so this waits
/// for nobody: NumPy's text parsers, which ask without the GIL, have no line.
pub fn site() -> u64 {
    if !is_attached() {
        return 0;
    }
    // SAFETY: this thread is attached to an interpreter, and stays so.
    unsafe {
        let is_main = ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0;
        if is_main && ffi::PyErr_Occurred().is_null() { find(Python::assume_attached()) } else { 0 }
    }
}

fn find(py: Python<'_>) -> u64 {
    // SAFETY: a borrowed reference or null; all others are owned.
    let mut frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
    let mut library = None;
    for _ in 0..DEPTH {
        let Some(at) = &frame else { break };
        // SAFETY: the frame lives, and the code object is a new reference.
        let code = unsafe { Bound::from_owned_ptr(py, ffi::PyFrame_GetCode(at.as_ptr().cast()).cast()) };
        let Some(file) = file(&code) else { break };
        // SAFETY: the frame lives.
        let place = || (file.number, unsafe { ffi::PyFrame_GetLineNumber(at.as_ptr().cast()) });
        match file.code {
            Code::Program => return note(place(), library),
            Code::Library if library.is_none() => library = Some(place()),
            Code::Library | Code::Hidden => {}
        }
        frame = at.getattr(Name("f_back")).ok().filter(|back| !back.is_none());
    }
    library.map_or(0, |library| note(library, None))
}

fn note(program: Place, library: Option<Place>) -> u64 {
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = seen.get_or_insert_default();
    if let Some(&found) = seen.numbers.get(&program) {
        return found;
    }
    if seen.numbers.try_reserve(1).is_err() || seen.sites.try_reserve(1).is_err() {
        return 0;
    }
    seen.sites.push((program, library));
    let site = seen.sites.len() as u64;
    seen.numbers.insert(program, site);
    site
}

/// A line of the program.
pub struct Site {
    pub file: String,
    pub line: i32,
    /// The line of a library through which it made its first request, as `package/file.py:12`; empty where it made it
    /// itself.
    pub library: String,
}

/// What a number of [`site`] stands for.
pub fn place(site: u64) -> Option<Site> {
    let folders = FOLDERS.get()?;
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = seen.as_ref()?;
    let &((file, line), library) = seen.sites.get((site as usize).checked_sub(1)?)?;
    let library = library.and_then(|(file, line)| Some(format!("{}:{line}", folders.short(seen.names.get(file)?))));
    Some(Site { file: seen.names.get(file)?.to_string(), line, library: library.unwrap_or_default() })
}

/// The same as text, for messages of the core, in any thread.
pub fn as_text(site: u64) -> Option<String> {
    place(site).map(|Site { file, line, library }| match library.is_empty() {
        true => format!("{file}:{line}"),
        false => format!("{file}:{line}, in {library}"),
    })
}
