//! What a decorated function returns, and the arrays that escape from its scope.

use crate::custom::raise_scope_error;
use crate::numpy::abi::{OWNDATA, WRITEABLE};
use crate::numpy::c_api::NumPy;
use crate::python::callbacks::callback;
use crate::python::errors::PyValueError;
use crate::python::values::Name;
use crate::scratch::diagnostics;
use crate::scratch::entered_scope::EnteredScope;
use firsttouch::scratch::{Hold, Scope};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::collections::HashSet;
use std::ptr::NonNull;

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

/// Containers inside one another that are looked into. What lies deeper stays where it is.
const DEPTH: usize = 8;

/// An array, the array that owns its memory, and its copy once there is one.
type Escaping<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

/// The arrays of a result that lie among others on the buffer of a scope: alone, or in tuples, lists and dicts. One that
/// has memory of its own becomes an ordinary array as it is, which costs nothing.
struct Found<'a, 'py> {
    scope: &'a Scope,
    numpy: &'static NumPy,
    arrays: Vec<Escaping<'py>>,
    containers: HashSet<usize>,
    /// Whether blocks that are alone are released.
    releases: bool,
}

/// The array that owns the memory of `array`, through those that it is a view of. `None` where another object owns it.
fn owner<'py>(numpy: &NumPy, array: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let mut at = array.clone();
    loop {
        let fields = numpy.array(&at)?;
        if fields.flags & OWNDATA != 0 {
            return Some(at);
        }
        // SAFETY: the array keeps a reference to its base.
        #[allow(unsafe_code)]
        let base = unsafe { Bound::from_borrowed_ptr_or_opt(array.py(), fields.base) };
        at = base?;
    }
}

/// Whether the block of an array that owns its memory shares a chunk with others. One that is alone is released.
fn is_among_others(scope: &Scope, numpy: &NumPy, owner: &Bound<'_, PyAny>, releases: bool) -> bool {
    let Some(address) = numpy.array(owner).and_then(|fields| NonNull::new(fields.data.cast())) else { return false };
    let hold = scope.hold(address);
    if hold == Hold::Alone && releases {
        scope.release(address);
    }
    hold == Hold::Shared || (hold == Hold::Alone && !releases)
}

/// The items of a tuple, a list or a dict's values, where `value` is exactly one.
fn items<'py>(value: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return Some(tuple.iter().collect());
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        return Some(list.iter().collect());
    }
    value.cast_exact::<PyDict>().ok().map(|dict| dict.values().iter().collect())
}

impl<'a, 'py> Found<'a, 'py> {
    fn new(scope: &'a Scope, numpy: &'static NumPy, releases: bool) -> Self {
        Self { scope, numpy, arrays: Vec::new(), containers: HashSet::new(), releases }
    }

    fn look(&mut self, value: &Bound<'py, PyAny>, depth: usize) {
        if self.numpy.is_exact(value) {
            let known = self.arrays.iter().any(|(array, ..)| array.is(value));
            let owner = owner(self.numpy, value).filter(|_| !known);
            if let Some(owner) = owner.filter(|owner| is_among_others(self.scope, self.numpy, owner, self.releases)) {
                self.arrays.push((value.clone(), owner, None));
            }
        } else if depth > 0
            && let Some(items) = items(value)
            && self.containers.insert(value.as_ptr() as usize)
        {
            items.iter().for_each(|item| self.look(item, depth - 1));
        }
    }

    /// Copies the arrays. Those that share memory with one another stay, as they would not in their copies, and so do views
    /// that are larger than their memory.
    fn copy(&mut self) -> PyResult<()> {
        for at in 0..self.arrays.len() {
            let (array, owner, _) = &self.arrays[at];
            let alone = self.arrays.iter().filter(|(_, other, _)| other.is(owner)).count() == 1;
            let nbytes = |array: &Bound<'py, PyAny>| array.getattr(Name("nbytes"))?.extract::<usize>();
            if alone && (array.is(owner) || nbytes(array)? <= nbytes(owner)?) {
                let copy = copy(self.numpy, array)?;
                self.arrays[at].2 = Some(copy);
            }
        }
        self.containers.clear();
        Ok(())
    }

    /// The value with its copies: lists and dicts stay the same objects, tuples are made again.
    fn replaced(&mut self, value: &Bound<'py, PyAny>, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.numpy.is_exact(value) {
            return Ok(self.arrays.iter().find(|(array, ..)| array.is(value)).and_then(|(.., copy)| copy.clone()));
        }
        if depth == 0 || items(value).is_none() || !self.containers.insert(value.as_ptr() as usize) {
            return Ok(None);
        }
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            for item in dict.items() {
                let (key, item) = item.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
                if let Some(new) = self.replaced(&item, depth - 1)? {
                    dict.set_item(key, new)?;
                }
            }
            return Ok(None);
        }
        let mut all = items(value).unwrap_or_default();
        let mut changed = false;
        for (at, item) in all.iter_mut().enumerate() {
            let Some(new) = self.replaced(item, depth - 1)? else { continue };
            if let Ok(list) = value.cast_exact::<PyList>() {
                list.set_item(at, &new)?;
            }
            (*item, changed) = (new, true);
        }
        if changed && value.is_exact_instance_of::<PyTuple>() {
            return PyTuple::new(value.py(), all).map(|tuple| Some(tuple.into_any()));
        }
        Ok(None)
    }
}

/// A copy in the same order, read-only if the array is.
fn copy<'py>(numpy: &NumPy, array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let copy = numpy.copy(array)?;
    if numpy.array(array).is_some_and(|fields| fields.flags & WRITEABLE == 0) {
        copy.getattr(Name("flags"))?.setattr(Name("writeable"), false)?;
    }
    Ok(copy)
}

/// What a function returns, with copies of those of its arrays that would keep a chunk of the buffer alive.
fn copied<'py>(scope: &Scope, returned: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = NumPy::get(returned.py())?;
    // The usual case needs no search: one array that owns its memory.
    if numpy.is_exact(&returned) && numpy.array(&returned).is_some_and(|fields| fields.flags & OWNDATA != 0) {
        return if is_among_others(scope, numpy, &returned, true) { copy(numpy, &returned) } else { Ok(returned) };
    }
    let mut found = Found::new(scope, numpy, true);
    found.look(&returned, DEPTH);
    if found.arrays.is_empty() {
        return Ok(returned);
    }
    found.copy()?;
    Ok(found.replaced(&returned, DEPTH)?.unwrap_or(returned))
}

/// The blocks of a scope that are live and not in what its function returns, as Python's half takes them.
fn left_behind<'py>(
    scope: &Scope,
    returned: Option<&Bound<'py, PyAny>>,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyList>> {
    let numpy = NumPy::get(py)?;
    let mut found = Found::new(scope, numpy, false);
    if let Some(returned) = returned {
        found.look(returned, DEPTH);
    }
    let kept = |address| {
        found.arrays.iter().any(|(_, owner, _)| numpy.array(owner).is_some_and(|it| it.data as usize == address))
    };
    let mut survivors = scope.backing().survivors(scope.slot());
    survivors.retain(|survivor| !kept(survivor.address));
    diagnostics::listed(py, &survivors)
}

/// Ends the scope of a call: copies what it returns, and reports what it leaves behind.
pub fn settled<'py>(
    entered: EnteredScope,
    function: &Bound<'py, PyAny>,
    returned: PyResult<Bound<'py, PyAny>>,
    options: ResultOptions,
) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    // From here on memory is that of who is around: copies belong there.
    let stepped = entered.step_back(py);
    let scope = entered.parts.scope.clone();
    let copies = options.copy && scope.living() > 0;
    let returned = returned.and_then(|value| if copies { copied(&scope, value) } else { Ok(value) });
    let closed = entered.close(py);
    stepped?;
    let reports = options.escape != Escape::Keep && closed.survivors > 0;
    let value = match returned {
        Err(error) => {
            let raised = error.value(py).clone().into_any();
            diagnostics::explain(&raised)?;
            if let Err(other) = raise_scope_error() {
                raised.call_method1(Name("add_note"), (format!("and its scope could not end: {other}"),))?;
            }
            if reports {
                let survivors = left_behind(&scope, None, py)?;
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
    if reports {
        let word = if options.escape == Escape::Warn { "warn" } else { "raise" };
        py.import(Name("gc"))?.call_method0(Name("collect"))?;
        let left = left_behind(&scope, Some(&value), py)?;
        callback(py, "report")?.call1((function, left, word, scope.backing().expression()))?;
    }
    Ok(value)
}
