//! Touching what exists.

use super::waiting::interruptible;
use crate::memory_out::{Given, PyMemoryError, PyOSError};
use firsttouch::os;
use firsttouch::pages::migration;
use firsttouch::pages::receipt::Reason;
use firsttouch::pages::touch::{self, Job, Pattern, Way};
use pyo3::prelude::*;

/// Makes the pages of a range real, as by a write or by a read; threads that worked, and whether the kernel did it.
///
/// `progress` is called with the bytes done so far.
#[pyfunction]
fn touch_range(
    address: usize,
    nbytes: usize,
    write: bool,
    threads: Option<usize>,
    slabs: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Given<(usize, bool)>> {
    let (address, size) = migration::whole_pages(address, nbytes);
    if size == 0 {
        return Ok(Given((0, true)));
    }
    let (missing, available) = (migration::missing(address, size), os::headroom());
    if missing > available {
        return Err(PyMemoryError::new_err(format!(
            "{missing} bytes are to be real at once, and {available} are available in this machine or its memory cgroup"
        )));
    }
    let job = Job {
        address,
        size,
        step: os::page_size(),
        way: if write { Way::Write } else { Way::Read },
        threads,
        processors: None,
        pattern: if slabs { Pattern::Static } else { Pattern::Dynamic },
    };
    let mut run = |go_on: touch::GoOn<'_>| {
        #[allow(unsafe_code)]
        // SAFETY: the caller's array keeps its memory, and can be written where `write` says so.
        unsafe {
            touch::make_real(job, go_on)
        }
    };
    let done = interruptible(progress, &mut run)?;
    done.map(|done| Given((done.threads, done.by_kernel))).map_err(|error| match Reason::of(error) {
        Reason::Errno(code) if code == os::Errno::BAD_ADDRESS.0 => PyMemoryError::new_err(format!(
            "{nbytes} bytes could not be made real: a mapped file is shorter now than it was, or its file system or the \
             pool of huge pages is full (errno {code})"
        )),
        Reason::Errno(code) if code == os::Errno::NO_MEMORY.0 => PyMemoryError::new_err(format!(
            "{nbytes} bytes could not be made real: there is no memory for them, or some of it is not mapped (errno {code})"
        )),
        reason => PyOSError::new_err(format!("{nbytes} bytes could not be made real: {reason}")),
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(touch_range, module)?)
}
