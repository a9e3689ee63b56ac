//! Custom scratch memory: an object with `allocate`, `mark` and `rewind`, or a table of C functions. Each has one backing,
//! or two would rewind each other's blocks.

use crate::allocators::factories::{given, raised};
use crate::custom::{CallDepth, as_address, interrupt, keep_error, keep_scope_error, raise_scope_error};
use crate::python::errors::{PyMemoryError, PyRuntimeError, PyValueError};
use crate::python::guarded::Guarded;
use crate::python::pending;
use crate::python::values::Name;
use crate::scratch::buffer::PyBuffer;
use firsttouch::allocator::{AllocError, Limit};
use firsttouch::arena::{Scratch, TableScratch};
use firsttouch::failure;
use firsttouch::scratch::MarkBacking;
use firsttouch::size::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use std::collections::BTreeMap;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// What scratch memory is told by: an object's address, or a table's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ScratchKey {
    Object(usize),
    Table(usize),
}

/// A backing that lives as long as a buffer or a block on it, and the buffer around it. As long as it lives, so does the
/// object, so that nothing else has its address.
struct SharedScratch {
    backing: Weak<MarkBacking>,
    buffer: Option<Py<PyWeakrefReference>>,
    /// Whether the backing is done with the scratch memory: where it ends in another thread, it rewinds what is left first.
    ended: Arc<AtomicBool>,
}

/// Scratch memory that tells its entry when it is done with.
struct Telling {
    scratch: Box<dyn Scratch>,
    ended: Arc<AtomicBool>,
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.ended.store(true, Release);
    }
}

// SAFETY: each call is passed on to a `Scratch`, which keeps the promises.
#[allow(unsafe_code)]
unsafe impl Scratch for Telling {
    fn allocate(&self, size: usize, align: usize) -> Result<NonNull<u8>, AllocError> {
        self.scratch.allocate(size, align)
    }

    fn mark(&self) -> u64 {
        self.scratch.mark()
    }

    unsafe fn rewind(&self, mark: u64) {
        // SAFETY: the mark is of this memory and what was allocated since is not used (`MarkBacking`).
        unsafe { self.scratch.rewind(mark) }
    }
}

static KNOWN: Guarded<BTreeMap<ScratchKey, SharedScratch>> = Guarded::new(BTreeMap::new());

/// The buffer of an entry, where anyone still has it.
fn living<'py>(py: Python<'py>, known: Option<&SharedScratch>) -> Option<Bound<'py, PyAny>> {
    known?.buffer.as_ref()?.bind(py).upgrade()
}

/// How long a thread waits for another one to end a backing.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long until it looks again.
const TURN: Duration = Duration::from_millis(1);

/// The backing on the scratch memory that `key` tells, the same while anyone has it.
fn shared_backing(
    py: Python<'_>,
    key: ScratchKey,
    expression: &str,
    make: impl FnOnce() -> Box<dyn Scratch>,
) -> PyResult<Arc<MarkBacking>> {
    let began = Instant::now();
    loop {
        let mut all = KNOWN.lock(py);
        match all.get(&key).map(|known| (known.backing.upgrade(), known.ended.load(Acquire))) {
            Some((Some(backing), _)) => return Ok(backing),
            Some((None, false)) if began.elapsed() < PATIENCE => {
                drop(all);
                py.detach(|| std::thread::sleep(TURN));
            }
            Some((None, false)) => {
                let message = format!("{expression} cannot be used: an array outlives the last buffer on it");
                return Err(PyRuntimeError::new_err(message));
            }
            Some((None, true)) | None => {
                let ended = Arc::new(AtomicBool::new(false));
                let telling = Telling { scratch: make(), ended: ended.clone() };
                let backing = MarkBacking::new(Box::new(telling), expression.to_owned());
                all.retain(|_, known| !known.ended.load(Acquire));
                all.insert(key, SharedScratch { backing: Arc::downgrade(&backing), buffer: None, ended });
                return Ok(backing);
            }
        }
    }
}

/// In a forked child: the threads that were ending backings do not exist here, and will not finish.
pub fn forget_ending(py: Python<'_>) {
    KNOWN.lock(py).retain(|_, known| known.backing.strong_count() > 0);
}

/// The buffer around the scratch memory that `key` tells, the same while anyone has it; `make` runs no code of Python's.
fn shared_buffer(
    py: Python<'_>,
    key: ScratchKey,
    expression: &str,
    make: impl FnOnce() -> Box<dyn Scratch>,
) -> PyResult<Py<PyBuffer>> {
    let backing = shared_backing(py, key, expression, make)?;
    if let Some(buffer) = living(py, KNOWN.lock(py).get(&key)) {
        return Ok(buffer.cast_into::<PyBuffer>()?.unbind());
    }
    let made = Py::new(py, PyBuffer::new(backing, false))?;
    let weak = PyWeakrefReference::new(made.bind(py))?.unbind();
    let mut all = KNOWN.lock(py);
    let Some(known) = all.get_mut(&key) else { return Ok(made) };
    // Another thread may have made one meanwhile.
    if let Some(buffer) = living(py, Some(known)) {
        return Ok(buffer.cast_into::<PyBuffer>()?.unbind());
    }
    known.buffer = Some(weak);
    Ok(made)
}

struct CustomScratch {
    object: Py<PyAny>,
    name: String,
    /// The marks that its `mark` returned, by ours.
    marks: Guarded<(u64, BTreeMap<u64, Py<PyAny>>)>,
}

/// No mark was made.
const NONE: u64 = 0;

impl CustomScratch {
    fn ask(&self, py: Python<'_>, size: usize, align: usize) -> PyResult<usize> {
        raise_scope_error()?; // of `mark` or `rewind`, which were called for this block if it lies outside all scopes
        let _depth = CallDepth::enter(&self.name)?;
        let answer = self.object.bind(py).call_method1(Name("allocate"), (size, align))?;
        let call = || format!("{}.allocate({size}, {align})", self.name);
        let address = if answer.is_none() { 0 } else { as_address(&answer, &call)? };
        if address == 0 {
            return Err(PyMemoryError::new_err(format!("{} has no room", call())));
        }
        if !address.is_multiple_of(align) {
            return Err(PyValueError::new_err(format!(
                "{} returned {address:#x}, which is not a multiple of {align}",
                call()
            )));
        }
        Ok(address)
    }
}

// SAFETY: the object's author promises what `Scratch` demands, and is called with the GIL held; its addresses are
// checked for their alignment.
#[allow(unsafe_code)]
unsafe impl Scratch for CustomScratch {
    fn allocate(&self, size: usize, align: usize) -> Result<NonNull<u8>, AllocError> {
        let error = AllocError::new(size, Limit::Upstream);
        let asked = Python::try_attach(|py| {
            self.ask(py, size, align).map_err(|raised| {
                failure::explain(error, format!("cannot allocate {}: {}: {raised}", Bytes(size), self.name));
                interrupt(py, &raised);
                keep_error(raised);
                error
            })
        });
        let address = asked.unwrap_or(Err(error))?;
        NonNull::new(with_exposed_provenance_mut(address)).ok_or(error)
    }

    fn mark(&self) -> u64 {
        let marked = Python::try_attach(|py| match self.object.bind(py).call_method0(Name("mark")) {
            Ok(mark) => {
                let mut marks = self.marks.lock(py);
                marks.0 += 1;
                let number = marks.0;
                marks.1.insert(number, mark.unbind());
                number
            }
            Err(error) => {
                keep_scope_error(error);
                NONE
            }
        });
        marked.unwrap_or(NONE)
    }

    unsafe fn rewind(&self, mark: u64) {
        if mark == NONE {
            return;
        }
        Python::try_attach(|py| {
            let gone = self.marks.lock(py).1.split_off(&mark);
            let Some((_, mark)) = gone.first_key_value() else { return };
            pending::aside(&|| {
                if let Err(error) = self.object.bind(py).call_method1(Name("rewind"), (mark,)) {
                    keep_scope_error(error);
                }
            });
        });
    }
}

/// The buffer around an object that was checked: the same while anyone has it.
#[pyfunction]
fn own_buffer(object: &Bound<'_, PyAny>) -> PyResult<Py<PyBuffer>> {
    pending::prepare_aside();
    let name = object.get_type().name()?.to_string();
    let expression = object.repr()?.to_string();
    shared_buffer(object.py(), ScratchKey::Object(object.as_ptr() as usize), &expression, || {
        Box::new(CustomScratch { object: object.clone().unbind(), name, marks: Guarded::default() })
    })
}

/// Return a buffer on the scratch memory of a C library.
///
/// Parameters
/// ----------
/// address : int
///     Address of a table of four pointers: a context, which is the first argument of each function,
///     ``void *allocate(context, size_t size, size_t alignment)``, ``uint64_t mark(context)`` and
///     ``void rewind(context, uint64_t mark)``.
///
/// Returns
/// -------
/// firsttouch.buffers.Buffer
///
/// Raises
/// ------
/// TypeError, ValueError
///     If `address` cannot be that of a table.
///
/// See Also
/// --------
/// OwnScratch : Scratch memory written in Python.
///
/// Notes
/// -----
/// The functions are called by one thread at a time and must not run Python code. The library has to stay loaded.
#[pyfunction]
fn scratch_from_table(py: Python<'_>, address: &Bound<'_, PyAny>) -> PyResult<Py<PyBuffer>> {
    let address = given(address)?.address("address").map_err(raised)?;
    // SAFETY: that a table stands there, as `Scratch` requires, is what this function demands of the program, as ctypes
    // does.
    #[allow(unsafe_code)]
    let table = unsafe { TableScratch::from_address(address) }.map_err(|bad| PyValueError::new_err(bad.to_string()))?;
    let expression = format!("scratch_from_table({address:#x})");
    shared_buffer(py, ScratchKey::Table(address), &expression, || Box::new(table))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(own_buffer, module)?)?;
    module.add_function(wrap_pyfunction!(scratch_from_table, module)?)
}
