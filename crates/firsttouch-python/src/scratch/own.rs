//! Scratch memory of one's own: an object with `allocate`, `mark` and `rewind`, or a table of C functions.

use super::buffer::PyBuffer;
use super::known::{self, Key};
use crate::callbacks::given;
use crate::guarded_by_gil::GuardedByGil;
use crate::memory_out::{Name, PyMemoryError, PyValueError};
use crate::own::{Depth, as_address, interrupt, keep_error};
use firsttouch::allocator::{AllocError, Limit};
use firsttouch::arena::{Scratch, TableScratch};
use firsttouch::failure;
use firsttouch::scratch::Over;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ptr::{NonNull, with_exposed_provenance_mut};

thread_local! {
    /// What `mark` or `rewind` raised where nobody could be told.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// An error that a scope's begin or end left behind.
pub fn raised() -> PyResult<()> {
    RAISED.with(|raised| raised.borrow_mut().take()).map_or(Ok(()), Err)
}

fn raise_later(error: PyErr) {
    let before = RAISED.with(|raised| raised.borrow_mut().replace(error));
    drop(before); // its end may run code of its own
}

struct Own {
    object: Py<PyAny>,
    name: String,
    /// The marks that its `mark` returned, by ours.
    marks: GuardedByGil<(u64, BTreeMap<u64, Py<PyAny>>)>,
}

/// No mark was made.
const NONE: u64 = 0;

impl Own {
    fn ask(&self, py: Python<'_>, size: usize, align: usize) -> PyResult<usize> {
        let _depth = Depth::enter(&self.name)?;
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

// SAFETY: the object promises what the trait asks, and is called with the GIL held; its addresses are checked for their
// alignment.
#[allow(unsafe_code)]
unsafe impl Scratch for Own {
    fn allocate(&self, size: usize, align: usize) -> Result<NonNull<u8>, AllocError> {
        let error = AllocError::new(size, Limit::Upstream);
        let asked = Python::try_attach(|py| {
            self.ask(py, size, align).map_err(|raised| {
                failure::explain(error, format!("{size} bytes could not be had: {}: {raised}", self.name));
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
                let mut marks = self.marks.borrow(py);
                marks.0 += 1;
                let number = marks.0;
                marks.1.insert(number, mark.unbind());
                number
            }
            Err(error) => {
                raise_later(error);
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
            let gone = self.marks.borrow(py).1.split_off(&mark);
            let Some((_, mark)) = gone.first_key_value() else { return };
            let pending = PyErr::take(py); // an array may end while an exception is on its way
            if let Err(error) = self.object.bind(py).call_method1(Name("rewind"), (mark,)) {
                raise_later(error);
            }
            if let Some(error) = pending {
                error.restore(py);
            }
        });
    }
}

/// The buffer around an object that was checked: the same while anyone has it.
#[pyfunction]
fn own_buffer(object: &Bound<'_, PyAny>) -> PyResult<Py<PyBuffer>> {
    let name = object.get_type().name()?.to_string();
    let expression = object.repr()?.to_string();
    known::buffer(object.py(), Key::Object(object.as_ptr() as usize), || {
        let own = Own { object: object.clone().unbind(), name, marks: GuardedByGil::default() };
        Over::new(Box::new(own), expression)
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
    let checked = given(py, "address")?.call1(("address", address))?;
    let address: usize = checked.extract()?;
    // SAFETY: that a table stands there and keeps its promises is the caller's word, as with any address of C's.
    #[allow(unsafe_code)]
    let table = unsafe { TableScratch::from_address(address) }.map_err(|bad| PyValueError::new_err(bad.to_string()))?;
    let expression = format!("scratch_from_table({address:#x})");
    known::buffer(py, Key::Table(address), || Over::new(Box::new(table), expression))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(own_buffer, module)?)?;
    module.add_function(wrap_pyfunction!(scratch_from_table, module)?)
}
