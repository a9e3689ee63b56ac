//! The program's lines by the numbers that the trace gives them.

use crate::sites;
use firsttouch_trace::recorder;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The trace's number of a site. Taken with the GIL held, and never while waiting for it.
static NUMBERS: Mutex<Option<HashMap<u64, u32>>> = Mutex::new(None);

/// Another trace begins, with numbers of its own.
pub fn forget() {
    *NUMBERS.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// The number of the line that asks; zero where no Python code runs in this thread.
pub fn line() -> u32 {
    Python::try_attach(|py| {
        let site = sites::site();
        if site == 0 {
            return 0;
        }
        let known = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().get(&site).copied();
        known.unwrap_or_else(|| name(py, site))
    })
    .unwrap_or(0)
}

#[cold]
fn name(py: Python<'_>, site: u64) -> u32 {
    let Ok(Some((file, line))) = sites::place(py, site) else { return 0 };
    let number = recorder::add_site(&file, line.try_into().unwrap_or(0));
    if number != 0 {
        NUMBERS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(site, number);
    }
    number
}
