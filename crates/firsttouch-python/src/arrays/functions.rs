//! The functions `empty` and `zeros`.

use crate::arrays::make::{Arguments, make};
use pyo3::prelude::*;

macro_rules! constructor {
    ($name:ident, $zeroed:literal, $doc:literal) => {
        #[doc = $doc]
        #[pyfunction]
        #[pyo3(signature = (shape, dtype=None, order=None, *, device=None, like=None, allocator=None))]
        #[pyo3(text_signature = "(shape, dtype=None, order='C', *, device=None, like=None, allocator=None)")]
        fn $name<'py>(
            py: Python<'py>,
            shape: &Bound<'py, PyAny>,
            dtype: Option<&Bound<'py, PyAny>>,
            order: Option<&Bound<'py, PyAny>>,
            device: Option<&Bound<'py, PyAny>>,
            like: Option<&Bound<'py, PyAny>>,
            allocator: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<Bound<'py, PyAny>> {
            make(py, &Arguments { shape, dtype, order, device, like, allocator }, $zeroed)
        }
    };
}

constructor!(
    empty,
    false,
    r#"Return a new uninitialized array of the given shape and type.

Parameters
----------
shape : int or tuple of int
    Shape of the new array.
dtype, order, device, like : optional
    As for :func:`numpy.empty`.
allocator : AllocatorLike, optional
    Allocator that the memory comes from. The default is the current one.

Returns
-------
ndarray
    Array of uninitialized values; from ``calloc()`` they are zero, and objects are ``None``.

Raises
------
TypeError, ValueError
    If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
MemoryError
    If there is not enough memory; it states what was requested and which limit was exceeded.

See Also
--------
numpy.empty : Equivalent function of NumPy."#
);
constructor!(
    zeros,
    true,
    r#"Return a new array of the given shape and type, filled with zeros.

Parameters
----------
shape : int or tuple of int
    Shape of the new array.
dtype, order, device, like : optional
    As for :func:`numpy.zeros`.
allocator : AllocatorLike, optional
    Allocator that the memory comes from. The default is the current one.

Returns
-------
ndarray
    Array of zeros with the given shape, dtype and order.

Raises
------
TypeError, ValueError
    If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
MemoryError
    If there is not enough memory; it states what was requested and which limit was exceeded.

See Also
--------
numpy.zeros : Equivalent function of NumPy.

Notes
-----
Pages of fresh memory are faulted in when they are first written, whatever the size of the array."#
);

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(empty, module)?)?;
    module.add_function(wrap_pyfunction!(zeros, module)?)
}
