//! Allocators as Python objects, and the factories that make them.

use crate::install::process_pool;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::allocator::Allocator;
use firsttouch::size;
use firsttouch::sources::{Aligned, Calloc, Malloc, Pages};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::sync::Arc;
use std::time::Duration;

enum Which {
    Ours(Arc<dyn Allocator>),
    NumPy,
    Foreign(String),
}

/// Something that brings memory in for arrays. Made by `pool()`, `pages()`, `malloc()`, `calloc()`, `aligned()` and
/// `numpy_default()`. Its `repr` is the expression that makes it.
#[pyclass(name = "Allocator", module = "firsttouch", frozen, weakref)]
pub struct PyAllocator(Which);

impl PyAllocator {
    pub fn ours(allocator: Arc<dyn Allocator>) -> Self {
        Self(Which::Ours(allocator))
    }

    pub fn numpy() -> Self {
        Self(Which::NumPy)
    }

    pub fn foreign(name: String) -> Self {
        Self(Which::Foreign(name))
    }

    /// The allocator in Rust, if it is one of ours.
    pub fn native(&self) -> Option<&Arc<dyn Allocator>> {
        match &self.0 {
            Which::Ours(allocator) => Some(allocator),
            _ => None,
        }
    }

    pub fn expression(&self) -> String {
        match &self.0 {
            Which::Ours(allocator) => allocator.expression(),
            Which::NumPy => "numpy_default()".into(),
            Which::Foreign(name) => format!("<the memory handler {name:?} of another library>"),
        }
    }

    fn key(&self) -> (usize, &str) {
        match &self.0 {
            Which::Ours(allocator) => (Arc::as_ptr(allocator).cast::<()>() as usize, ""),
            Which::NumPy => (1, ""),
            Which::Foreign(name) => (2, name),
        }
    }
}

#[pymethods]
impl PyAllocator {
    fn __repr__(&self) -> String {
        self.expression()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.key().hash(&mut hasher);
        hasher.finish()
    }
}

/// A size in bytes, given as a number or as text.
fn bytes(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    if let Ok(text) = value.extract::<String>() {
        return size::parse(&text).map_err(|message| PyValueError::new_err(format!("{name}: {message}")));
    }
    let wrong_type = || {
        let kind = value.get_type().to_string();
        PyTypeError::new_err(format!("{name} is {kind}: give a number of bytes, text like \"4 GiB\", or None"))
    };
    if value.is_instance_of::<PyBool>() {
        return Err(wrong_type());
    }
    let number = value.call_method0("__index__").map_err(|_| wrong_type())?;
    number.extract::<usize>().map_err(|_| {
        PyValueError::new_err(format!(
            "{name}={number} is not a number of bytes: give 0 or more, or text like \"4 GiB\""
        ))
    })
}

/// Whether `huge=` asks for transparent huge pages.
fn wants_huge(huge: &Bound<'_, PyAny>) -> PyResult<bool> {
    if huge.extract::<bool>().is_ok_and(|huge| !huge) {
        return Ok(false);
    }
    if huge.extract::<String>().is_ok_and(|text| text == "thp") {
        return Ok(true);
    }
    Err(PyValueError::new_err(format!("huge={}: give False or \"thp\" (transparent huge pages)", huge.repr()?)))
}

#[pyfunction]
fn pages(huge: &Bound<'_, PyAny>) -> PyResult<PyAllocator> {
    Ok(PyAllocator::ours(Pages::new(wants_huge(huge)?)))
}

#[pyfunction]
fn malloc() -> PyAllocator {
    PyAllocator::ours(Arc::new(Malloc))
}

#[pyfunction]
fn calloc() -> PyAllocator {
    PyAllocator::ours(Arc::new(Calloc))
}

#[pyfunction]
fn aligned(alignment: &Bound<'_, PyAny>) -> PyResult<PyAllocator> {
    let align = bytes("alignment", alignment)?;
    let source = Aligned::new(align).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyAllocator::ours(Arc::new(source)))
}

#[pyfunction]
#[pyo3(signature = (upstream=None, *, max_idle=None, decay=None, never=false))]
fn pool(
    upstream: Option<&PyAllocator>,
    max_idle: Option<&Bound<'_, PyAny>>,
    decay: Option<f64>,
    never: bool,
) -> PyResult<PyAllocator> {
    let mut options = Options::default();
    if let Some(upstream) = upstream {
        options.huge = match upstream.expression().as_str() {
            "pages(huge='thp')" => true,
            "pages(huge=False)" => false,
            other => {
                return Err(PyTypeError::new_err(format!(
                    "pool() stands on pages(), not on {other}: give pages(), pages(huge=\"thp\") or nothing"
                )));
            }
        };
    }
    options.max_idle = max_idle.map(|value| bytes("max_idle", value)).transpose()?;
    if let Some(seconds) = decay {
        options.decay = Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
            PyValueError::new_err(format!("decay={seconds} is not a time: give seconds, 0 or more, or None for never"))
        })?);
    }
    if never {
        options.decay = None;
    }
    Ok(PyAllocator::ours(Pool::new(options)))
}

#[pyfunction]
fn numpy_default() -> PyAllocator {
    PyAllocator::numpy()
}

#[pyfunction]
fn default_pool() -> PyAllocator {
    PyAllocator::ours(process_pool().clone())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(pages, module)?)?;
    module.add_function(wrap_pyfunction!(malloc, module)?)?;
    module.add_function(wrap_pyfunction!(calloc, module)?)?;
    module.add_function(wrap_pyfunction!(aligned, module)?)?;
    module.add_function(wrap_pyfunction!(pool, module)?)?;
    module.add_function(wrap_pyfunction!(numpy_default, module)?)?;
    module.add_function(wrap_pyfunction!(default_pool, module)?)
}
