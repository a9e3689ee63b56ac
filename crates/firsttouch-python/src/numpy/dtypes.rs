//! The dtypes that the short way of making arrays takes: NumPy's plain numbers, under their most usual names.

use crate::python::once::Once;
use crate::python::values::Name;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};

/// A dtype, and bytes of an item.
pub struct PlainDtype {
    pub object: Py<PyAny>,
    pub size: usize,
}

/// What people pass (by identity) with the dtype that is meant; the first is the default.
struct DtypeTable {
    keys: Vec<(usize, usize)>,
    dtypes: Vec<PlainDtype>,
    /// Keeps the keys alive.
    _kept: Vec<Py<PyAny>>,
}

const NAMES: [&str; 14] = [
    "float64",
    "float32",
    "int64",
    "int32",
    "uint8",
    "bool",
    "complex128",
    "int8",
    "int16",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "complex64",
];

fn table(py: Python<'_>) -> PyResult<DtypeTable> {
    let dtype = py.import(Name("numpy"))?.getattr(Name("dtype"))?;
    let mut table = DtypeTable { keys: Vec::new(), dtypes: Vec::new(), _kept: Vec::new() };
    let python =
        [py.get_type::<PyFloat>(), py.get_type::<PyInt>(), py.get_type::<PyBool>(), py.get_type::<PyComplex>()];
    let python = python.into_iter().map(Bound::into_any);
    let numpys = NAMES.iter().map(|name| dtype.call1((*name,))?.getattr(Name("type"))).collect::<PyResult<Vec<_>>>()?;
    for key in python.chain(numpys) {
        let meant = dtype.call1((&key,))?;
        for key in [key, meant.clone()] {
            table.keys.push((key.as_ptr() as usize, table.dtypes.len()));
            table._kept.push(key.unbind());
        }
        table.dtypes.push(PlainDtype { size: meant.getattr(Name("itemsize"))?.extract()?, object: meant.unbind() });
    }
    Ok(table)
}

/// The dtype that is meant, if it is one of the plain ones.
pub fn plain_dtype<'a>(py: Python<'a>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<&'a PlainDtype>> {
    static TABLE: PyOnceLock<DtypeTable> = PyOnceLock::new();
    let table = TABLE.get_or_make(py, || table(py))?;
    let Some(given) = given else { return Ok(table.dtypes.first()) };
    let wanted = given.as_ptr() as usize;
    Ok(table.keys.iter().find(|(key, _)| *key == wanted).map(|&(_, at)| &table.dtypes[at]))
}
