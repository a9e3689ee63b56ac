//! What a decorated function returns, and the arrays that escape from its scope.

use crate::custom::calls::raise_scope_error;
use crate::numpy::abi::{OWNDATA, WRITEABLE};
use crate::numpy::c_api::NumPy;
use crate::python::callbacks::callback;
use crate::python::errors::PyValueError;
use crate::python::values::Name;
use crate::scratch::diagnostics;
use crate::scratch::entered_scope::EnteredScope;
use firsttouch::scratch::{Backing, Hold, Scope, Slot};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple, PyType};
use std::ptr::NonNull;
use std::sync::Arc;

/// What happens to arrays that outlive the call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    Keep,
    Warn,
    Raise,
}

/// The options of the decorator.
#[derive(Clone, Copy)]
pub struct ResultOptions {
    copy: bool,
    escape: Escape,
}

impl ResultOptions {
    pub fn new(result: &str, escape: &str) -> PyResult<Self> {
        let copy = match result {
            "copy" => true,
            "keep" => false,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "result={result:?}: give \"copy\" (returned arrays go to ordinary memory) or \"keep\" (they stay)"
                )));
            }
        };
        let escape = match escape {
            "keep" => Escape::Keep,
            "warn" => Escape::Warn,
            "raise" => Escape::Raise,
            _ => return Err(PyValueError::new_err(format!("escape={escape:?}: give \"keep\", \"warn\" or \"raise\""))),
        };
        Ok(Self { copy, escape })
    }

    /// An error for an option that needs the decorator.
    pub fn check_block(self) -> PyResult<()> {
        let word = match self.escape {
            Escape::Keep => return Ok(()),
            Escape::Warn => "warn",
            Escape::Raise => "raise",
        };
        Err(PyValueError::new_err(format!(
            "escape={word:?} needs the decorator, @scratch(escape={word:?}): at the end of a `with` block every local \
             name is still alive, so that its arrays can only be kept"
        )))
    }
}

/// Tells the arrays that have to be copied out of a scope: those that lie among others on its buffer. One that has
/// memory of its own becomes an ordinary array as it is, which costs nothing.
#[pyclass(frozen)]
struct IsOnBuffer(Arc<Scope>);

impl IsOnBuffer {
    fn has(&self, numpy: &NumPy, array: &Bound<'_, PyAny>) -> bool {
        let mut at = array.clone();
        loop {
            let base = match numpy.array(&at) {
                Some(fields) if fields.flags & OWNDATA != 0 => {
                    let Some(address) = NonNull::new(fields.data.cast()) else { return false };
                    let hold = self.0.hold(address);
                    if hold == Hold::Alone {
                        self.0.release(address);
                    }
                    return hold == Hold::Shared;
                }
                // SAFETY: the array keeps a reference to its base.
                #[allow(unsafe_code)]
                Some(fields) => unsafe { Bound::from_borrowed_ptr_or_opt(array.py(), fields.base) },
                None => lender(numpy, &at),
            };
            let Some(base) = base else { return false };
            at = base;
        }
    }
}

/// What is behind a base that is no array: the owner of a memoryview, as `np.frombuffer` takes one, or the array that is its
/// own base: of a scalar of a structured type, whose field an array is, or of the stand-in that `as_strided` makes.
fn lender<'py>(numpy: &NumPy, base: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    if base.is_instance_of::<PyMemoryView>() {
        return base.getattr(Name("obj")).ok(); // it may have been released
    }
    base.getattr_opt(Name("base")).ok()?.filter(|found| numpy.array(found).is_some())
}

#[pymethods]
impl IsOnBuffer {
    fn __call__(&self, array: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.has(NumPy::get(array.py())?, array))
    }
}

static SCALARS: [PyOnceLock<Py<PyType>>; 2] = [const { PyOnceLock::new() }; 2];

/// Finds NumPy's kinds of scalars, before a call needs them.
pub fn look_up(py: Python<'_>) -> PyResult<()> {
    py.get_type::<IsOnBuffer>();
    SCALARS[0].import(py, "numpy", "generic")?;
    SCALARS[1].import(py, "numpy", "void").map(drop)
}

/// Whether a value is an array or may hold some that are copied with it.
fn may_hold(numpy: &NumPy, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.is_none()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyString>()
    {
        return Ok(false);
    }
    if numpy.array(value).is_some() {
        return Ok(true);
    }
    if value.is_instance(SCALARS[0].import(value.py(), "numpy", "generic")?)? {
        // Of NumPy's scalars only those of structured types may be views.
        return value.is_instance(SCALARS[1].import(value.py(), "numpy", "void")?);
    }
    Ok(value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyDict>()
        || value.get_type().hasattr(Name("__dataclass_fields__"))?)
}

fn copied<'py>(
    scope: &Arc<Scope>,
    returned: Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = returned.py();
    let numpy = NumPy::get(py)?;
    let owned = IsOnBuffer(scope.clone());
    // The usual case needs no search: one array that has its memory to itself, and no objects.
    if let Some(fields) = numpy.array(&returned)
        && numpy.is_exact(&returned)
        && fields.flags & OWNDATA != 0
        && !fields.is_of_objects()
    {
        if !owned.has(numpy, &returned) || args.iter().any(|argument| argument.is(&returned)) {
            return Ok(returned);
        }
        if kwargs.is_none() && fields.flags & WRITEABLE != 0 {
            return numpy.copy(&returned);
        }
    }
    let kwargs = kwargs.map_or_else(|| PyDict::new(py), Clone::clone);
    callback(py, "copied")?.call1((returned, args, kwargs, Py::new(py, owned)?))
}

/// Where to find the blocks that outlive a call, if `escape` asks for them.
struct EscapedBlocks {
    backing: Arc<dyn Backing>,
    slot: Slot,
}

impl EscapedBlocks {
    fn new(scope: &Scope, options: ResultOptions) -> Option<Self> {
        let wanted = options.escape != Escape::Keep;
        wanted.then(|| Self { backing: scope.backing().clone(), slot: scope.slot() })
    }

    fn listed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        diagnostics::listed(py, &self.backing.survivors(self.slot))
    }
}

/// Ends the scope of a call: copies what it returns, and reports what it leaves behind.
pub fn settled<'py>(
    entered: EnteredScope,
    function: &Bound<'py, PyAny>,
    returned: PyResult<Bound<'py, PyAny>>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    options: ResultOptions,
) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    // From here on memory is that of who is around: copies belong there.
    let stepped = entered.step_back(py);
    let returned = returned.and_then(|value| {
        let scope = &entered.parts.scope;
        let copies = options.copy && may_hold(NumPy::get(py)?, &value)? && scope.living() > 0;
        if copies { copied(scope, value, args, kwargs) } else { Ok(value) }
    });
    let left = EscapedBlocks::new(&entered.parts.scope, options);
    let closed = entered.close(py);
    stepped?;
    let value = match returned {
        Err(error) => {
            let raised = error.value(py).clone().into_any();
            diagnostics::explain(&raised)?;
            if let Err(other) = raise_scope_error() {
                raised.call_method1(Name("add_note"), (format!("and its scope could not end: {other}"),))?;
            }
            if let Some(left) = left.filter(|_| closed.survivors > 0) {
                let survivors = left.listed(py)?;
                if let Some(traceback) = error.traceback(py) {
                    raised.setattr(Name("__traceback__"), traceback)?; // before Python 3.12 it is not there yet
                }
                callback(py, "note")?.call1((&raised, survivors))?;
            }
            return Err(error);
        }
        Ok(value) => value,
    };
    diagnostics::damage(py, closed.damage)?;
    if let Some(left) = left.filter(|_| closed.survivors > 0) {
        let word = if options.escape == Escape::Warn { "warn" } else { "raise" };
        py.import(Name("gc"))?.call_method0(Name("collect"))?;
        callback(py, "report")?.call1((function, left.listed(py)?, word, left.backing.expression(), &value))?;
    }
    Ok(value)
}
