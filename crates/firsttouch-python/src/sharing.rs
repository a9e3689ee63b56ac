//! Memory that several processes map, for Python to render.

use crate::python::values::{PyMemoryError, UnsupportedError, ensure_memory};
use firsttouch::failure;
use firsttouch::os::Errno;
use firsttouch::shared::{Handle, Shared, message, wait_until_opened};
use firsttouch::size::Bytes;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Duration;

/// A mapping of shared memory, which lasts as long as this object.
#[pyclass(module = "firsttouch._firsttouch", frozen, weakref)]
pub struct SharedMapping(Shared);

/// Name, process, file, and bytes.
type HandleFields = (String, u32, i32, usize);

#[pymethods]
impl SharedMapping {
    /// New memory of at least `nbytes`.
    #[new]
    fn new(py: Python<'_>, nbytes: usize) -> PyResult<Self> {
        ensure_memory(py)?;
        py.detach(|| Shared::new(nbytes)).map(Self).map_err(|error| refused(nbytes, error))
    }

    /// Maps what another process shares; or returns why not.
    #[staticmethod]
    fn open(py: Python<'_>, words: HandleFields, write: bool) -> PyResult<(Option<Py<Self>>, String)> {
        ensure_memory(py)?;
        let (token, process, file, size) = words;
        let handle = Handle { token, process, file, size };
        match Shared::open(&handle, write) {
            Ok(shared) => Ok((Some(Py::new(py, Self(shared))?), String::new())),
            Err(Errno::NO_MEMORY) => Err(PyMemoryError::new_err(message(Errno::NO_MEMORY, &handle))),
            Err(error) => Ok((None, message(error, &handle))),
        }
    }

    /// The fields by which another process opens it.
    fn handle(&self) -> PyResult<HandleFields> {
        let made = self.0.handle();
        let Handle { token, process, file, size } =
            made.map_err(|error| PyOSError::new_err((error.0, format!("no handle can be made: {}", words(error.0)))))?;
        Ok((token, process, file, size))
    }

    /// Tells the sender of a handle of this memory that it arrived. If that fails, it waits a minute.
    fn arrived(&self) {
        let _ = self.0.arrived();
    }

    #[getter]
    fn address(&self) -> usize {
        self.0.address()
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.0.size()
    }

    #[getter]
    fn token(&self) -> &str {
        self.0.token()
    }

    /// All of it as bytes, for NumPy.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("version", 3_i32)?;
        dict.set_item("typestr", "|u1")?;
        dict.set_item("shape", (self.0.size(),))?;
        dict.set_item("data", (self.0.address(), !self.0.is_writable()))?;
        Ok(dict)
    }
}

fn words(code: i32) -> String {
    std::io::Error::from_raw_os_error(code).to_string()
}

fn refused(nbytes: usize, error: Errno) -> PyErr {
    match error {
        Errno::NO_MEMORY => PyMemoryError::new_err(
            failure::last_reason()
                .unwrap_or_else(|| format!("cannot allocate {} of shared memory: none is left", Bytes(nbytes))),
        ),
        Errno::UNSUPPORTED => UnsupportedError::new_err("shared arrays need Linux or Windows"),
        error => {
            let why = match error.0 {
                libc::EMFILE => "each shared array takes a file number, and RLIMIT_NOFILE (ulimit -n) leaves none",
                libc::EFBIG => "it is larger than RLIMIT_FSIZE (ulimit -f) allows",
                _ => "the system refuses it (memfd_create or getrandom)",
            };
            PyOSError::new_err((
                error.0,
                format!("cannot allocate {} of shared memory: {why}: {}", Bytes(nbytes), words(error.0)),
            ))
        }
    }
}

/// Waits until no handle of this process is in flight, for at most this many seconds; returns whether that was
/// reached.
#[pyfunction]
pub fn shared_wait_until_opened(py: Python<'_>, seconds: f64) -> bool {
    py.detach(|| wait_until_opened(Duration::from_secs_f64(seconds)))
}
