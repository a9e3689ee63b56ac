//! The line of the program that requests memory, and the line of a library through which it does.

#![allow(unsafe_code)] // Safety: frames are walked with the GIL held.

use crate::python::gil::{Name, is_attached};
use crate::python::symbol;
use firsttouch::heap::purger;
use firsttouch::sync::OnceBox;
use firsttouch::sync::lock::Lock;
use firsttouch_trace::{live, trace};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

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

type Line = (&'static str, i32);

/// Files and lines by name, not by code object: a program may make those without end. Names stay for ever.
#[derive(Default)]
struct SeenCode {
    files: HashMap<&'static str, Code>,
    /// Numbers of sites from 1 on, by the program's line.
    numbers: HashMap<Line, u64>,
    /// The program's line, and the first one of a library through which it made a request.
    sites: Vec<(Line, Option<Line>)>,
}

/// No Python runs while it is locked, nor is a reference given back.
static SEEN: Lock<Option<SeenCode>> = Lock::new(None);

/// The folders of installed packages, wherever they are; the last is Windows'.
const PACKAGES: [&str; 3] = ["/site-packages/", "/dist-packages/", r"\site-packages\"];

/// Where code lies that is not the program's.
struct Folders {
    /// Of NumPy and this package.
    hidden: Vec<String>,
    /// Of the standard library.
    standard: Option<String>,
}

static FOLDERS: OnceBox<Folders> = OnceBox::new();

impl Folders {
    fn get(py: Python<'_>) -> &'static Self {
        FOLDERS.get_or_init(|| {
            let folder = |name: &str| -> PyResult<String> {
                let modules = py.import("sys")?.getattr("modules")?; // all are loaded, or being loaded, by now
                let file = text(&modules.get_item(name)?.getattr("__file__")?)?;
                Ok(file[..file.rfind(std::path::is_separator).map_or(file.len(), |at| at + 1)].to_owned())
            };
            let hidden = ["numpy", "firsttouch"].into_iter().filter_map(|name| folder(name).ok()).collect();
            Box::new(Self { hidden, standard: folder("os").ok() })
        })
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
    static ENTERED: AtomicBool = AtomicBool::new(false);
    purger::enter_once(&SEEN, &ENTERED);
    Folders::get(py);
    let _ = (FILE_NAME.get(py), Frames::get(), is_attached());
}

/// The attribute with a code object's file.
static FILE_NAME: Name = Name::new("co_filename");

/// The file of a code object, and whose code it has; `None` where there is no memory for its name.
fn file(code: &Bound<'_, PyAny>) -> Option<(&'static str, Code)> {
    let folders = Folders::get(code.py()); // before the lock, as it runs Python
    let name = code.getattr(FILE_NAME.get(code.py())).ok()?;
    let name = name.cast::<PyString>().ok()?.to_string_lossy();
    let mut seen = SEEN.lock();
    let files = &mut seen.get_or_insert_default().files;
    if let Some((&name, &code)) = files.get_key_value(&*name) {
        return Some((name, code));
    }
    files.try_reserve(1).ok()?;
    let (code, name) = (folders.code(&name), &*name.into_owned().leak());
    files.insert(name, code);
    Some((name, code))
}

/// The number of the program's line that asks: the nearest one that is neither in an installed package nor in the standard
/// library; where all are, the nearest that is not NumPy's or ours. Zero where this thread runs no Python code, or that of
/// another interpreter, and while an exception is on its way. CPython asks for memory under locks of its own, so this waits
/// for nobody: NumPy's text parsers, which ask without the GIL, have no line.
pub fn site() -> u64 {
    let Some(frames) = Frames::get().filter(|_| is_attached()) else { return 0 };
    // Up to CPython 3.11 asking for a frame would collect garbage at once, which runs any code, perhaps while the list that grows is
    // in the middle of that; later versions wait for the next bytecode.
    // SAFETY: this thread is attached to an interpreter, and stays so meanwhile.
    unsafe {
        let collects = ffi::Py_Version < 0x030c_0000 && ffi::PyGC_Disable() != 0;
        let site = site_of_caller(Python::assume_attached(), frames);
        if collects {
            ffi::PyGC_Enable();
        }
        site
    }
}

fn site_of_caller(py: Python<'_>, frames: &Frames) -> u64 {
    // SAFETY: the frame is a borrowed reference or null, and runs meanwhile.
    unsafe {
        let frame = ffi::PyEval_GetFrame();
        if frame.is_null() {
            return 0;
        }
        let (_, instruction) = frames.instruction(py, frame);
        if let Some(site @ 1..) = known(instruction) {
            return site;
        }
        let is_main = ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0;
        let may_look = is_main && ffi::PyErr_Occurred().is_null();
        if may_look { find(frames, &Bound::from_borrowed_ptr(py, frame.cast())) } else { 0 }
    }
}

/// CPython's functions for frames that are public, but not in the limited API.
struct Frames {
    /// The offset of the last instruction in its code object.
    last_instruction: unsafe extern "C" fn(*mut ffi::PyFrameObject) -> c_int,
    /// A new reference to the caller's frame, or null.
    back: unsafe extern "C" fn(*mut ffi::PyFrameObject) -> *mut ffi::PyObject,
}

impl Frames {
    fn get() -> Option<&'static Self> {
        static FOUND: OnceBox<Option<Frames>> = OnceBox::new();
        // SAFETY: both symbols, where they exist, have had these types since CPython 3.11.
        let look = || unsafe {
            Some(Self { last_instruction: symbol(c"PyFrame_GetLasti")?, back: symbol(c"PyFrame_GetBack")? })
        };
        FOUND.get_or_init(|| Box::new(look())).as_ref()
    }

    /// The code object of a frame, and the address of its last instruction: those lie in their code object.
    ///
    /// # Safety
    /// The frame lives.
    unsafe fn instruction<'py>(&self, py: Python<'py>, frame: *mut ffi::PyFrameObject) -> (Bound<'py, PyAny>, usize) {
        // SAFETY: the caller's promise; the code object is a new reference.
        unsafe {
            let code = Bound::from_owned_ptr(py, ffi::PyFrame_GetCode(frame).cast());
            let at = (code.as_ptr() as usize).wrapping_add_signed((self.last_instruction)(frame) as isize);
            (code, at)
        }
    }

    /// A frame and its callers.
    fn from<'py>(&self, top: &Bound<'py, PyAny>) -> impl Iterator<Item = Bound<'py, PyAny>> {
        let back = |frame: &Bound<'py, PyAny>| {
            // SAFETY: the frame lives; a new reference or null, and then perhaps an error, for want of memory.
            unsafe {
                let found = (self.back)(frame.as_ptr().cast());
                if found.is_null() {
                    ffi::PyErr_Clear();
                }
                Bound::from_owned_ptr_or_opt(frame.py(), found)
            }
        };
        std::iter::successors(Some(top.clone()), back).take(DEPTH)
    }
}

/// Instructions that asked for memory while the table of live blocks was filled or the process traced, each with its site, or 0 where it is not the
/// program's, in a word that is read without a lock: addresses have 48 bits. They stay, and their code objects with them, whose
/// addresses would be others' otherwise. Budgets keep no code alive, and look each time; so does what finds no room, as a program
/// may make code without end.
static KNOWN: [AtomicU64; 4096] = [const { AtomicU64::new(0) }; 4096];
const SITES: u64 = 1 << 16;

fn slots(instruction: usize) -> impl Iterator<Item = &'static AtomicU64> {
    let first = (instruction as u64 / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    (0..8).map(move |next| &KNOWN[(first as usize + next) % KNOWN.len()])
}

fn known(instruction: usize) -> Option<u64> {
    let mut words = slots(instruction).map(|slot| slot.load(Relaxed)).take_while(|&word| word != 0);
    words.find(|word| word / SITES == instruction as u64).map(|word| word % SITES)
}

fn remember(instruction: usize, site: u64, code: Bound<'_, PyAny>) {
    let word = instruction as u64 * SITES + site;
    let enters = |slot: &AtomicU64| slot.compare_exchange(0, word, Relaxed, Relaxed).is_ok();
    if (live::is_open() || trace::is_on()) && site < SITES && slots(instruction).any(enters) {
        std::mem::forget(code); // kept alive for good
    }
}

fn find(frames: &Frames, top: &Bound<'_, PyAny>) -> u64 {
    for frame in frames.from(top) {
        // SAFETY: `frame` is a reference to it.
        let (code, instruction) = unsafe { frames.instruction(top.py(), frame.as_ptr().cast()) };
        let site = match known(instruction) {
            Some(site) => site,
            None => {
                let Some((file, whose)) = file(&code) else { break };
                let is_program = whose == Code::Program;
                let site = if is_program { number_of((file, line_of(&frame)), library(frames, top)) } else { 0 };
                remember(instruction, site, code);
                site
            }
        };
        if site != 0 {
            return site;
        }
    }
    library(frames, top).map_or(0, |library| number_of(library, None))
}

/// The first line of a library, before that of the program.
fn library(frames: &Frames, top: &Bound<'_, PyAny>) -> Option<Line> {
    for frame in frames.from(top) {
        // SAFETY: `frame` is a reference to it.
        let (code, _) = unsafe { frames.instruction(top.py(), frame.as_ptr().cast()) };
        match file(&code)? {
            (_, Code::Hidden) => {}
            (file, Code::Library) => return Some((file, line_of(&frame))),
            (_, Code::Program) => return None,
        }
    }
    None
}

/// The line that a frame is at.
fn line_of(frame: &Bound<'_, PyAny>) -> i32 {
    // SAFETY: `frame` is a reference to it.
    unsafe { ffi::PyFrame_GetLineNumber(frame.as_ptr().cast()) }
}

fn number_of(program: Line, library: Option<Line>) -> u64 {
    let mut seen = SEEN.lock();
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
    pub file: &'static str,
    pub line: i32,
    /// The line of a library through which it made its first request, as `package/file.py:12`; empty where it made it itself.
    pub library: String,
}

/// What a number of [`site`] stands for.
pub fn place(site: u64) -> Option<Site> {
    let folders = FOLDERS.get()?;
    let seen = SEEN.lock();
    let seen = seen.as_ref()?;
    let &((file, line), library) = seen.sites.get((site as usize).checked_sub(1)?)?;
    let library = library.map_or_else(String::new, |(file, line)| format!("{}:{line}", folders.short(file)));
    Some(Site { file, line, library })
}

/// The same as text, for messages of the core, in any thread.
pub fn as_text(site: u64) -> Option<String> {
    place(site).map(|Site { file, line, library }| match library.is_empty() {
        true => format!("{file}:{line}"),
        false => format!("{file}:{line}, in {library}"),
    })
}
