//! What is behind the pages of some memory.

use crate::error::{Status, ensure_memory, fail, protect};
use crate::options::{self, Versioned};
use crate::range::range;
use firsttouch::os;
use firsttouch::residency::{Residency, query, summarize};
use firsttouch::size::Bytes;
use std::ffi::c_void;

/// `firsttouch_residency`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Summary {
    struct_size: usize,
    pages: u64,
    absent: u64,
    zero_page: u64,
    small: u64,
    huge: u64,
    real: u64,
    swapped: u64,
    cached: u64,
    locked: u64,
}

// SAFETY: numbers, the size first.
unsafe impl Versioned for Summary {
    const NAME: &'static str = "firsttouch_residency";
    const INITIALIZER: &'static str = "FIRSTTOUCH_INIT(firsttouch_residency)";
    const LEAST: usize = 80;
}

/// `FIRSTTOUCH_UNKNOWN`.
const UNKNOWN: u64 = u64::MAX;

/// The states of the pages of a range.
fn states(address: *const c_void, size: usize) -> Result<(Residency, usize), Status> {
    ensure_memory()?;
    let (start, bytes) = range(address, size)?;
    #[allow(clippy::single_range_in_vec_init)] // one range of pages
    let ranges = [start..start + bytes];
    let found = query(if bytes == 0 { &[] } else { &ranges });
    if !found.runs.is_complete() {
        return Err(fail(Status::NoMemory, format_args!("cannot allocate the states of {} of pages", Bytes(bytes))));
    }
    Ok((found, bytes / os::page_size()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_inspect(address: *const c_void, size: usize, out: *mut Summary) -> Status {
    protect(Status::Internal, || {
        let (found, pages) = match states(address, size) {
            Ok(found) => found,
            Err(status) => return status,
        };
        let figures = summarize(&found).figures;
        let figure = |name: &str| {
            let found = figures.iter().find(|(figure, _)| *figure == name);
            found.and_then(|(_, figure)| figure.bytes).map_or(UNKNOWN, |bytes| bytes as u64)
        };
        let summary = Summary {
            struct_size: 0,
            pages: pages as u64,
            absent: figure("absent"),
            zero_page: figure("zero_page"),
            small: figure("small"),
            huge: figure("huge"),
            real: figure("real"),
            swapped: figure("swapped"),
            cached: figure("cached"),
            locked: figure("locked"),
        };
        // SAFETY: a structure (header).
        unsafe { options::write(out, &summary) }.err().unwrap_or(Status::Ok)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_pagemap(
    address: *const c_void,
    size: usize,
    out: *mut u8,
    capacity: usize,
    pages: *mut usize,
) -> Status {
    protect(Status::Internal, || {
        let (found, count) = match states(address, size) {
            Ok(found) => found,
            Err(status) => return status,
        };
        // SAFETY: null, or a place for a number, and room for `capacity` bytes (header).
        unsafe {
            if let Some(pages) = pages.as_mut() {
                *pages = count;
            }
            if capacity == 0 || out.is_null() {
                return Status::Ok;
            }
            let states = std::slice::from_raw_parts_mut(out, capacity);
            let each = found
                .runs
                .iter()
                .flat_map(|run| std::iter::repeat_n(run.state as u8, run.range.len() / os::page_size()));
            states.iter_mut().zip(each).for_each(|(to, state)| *to = state);
        }
        Status::Ok
    })
}

#[unsafe(no_mangle)]
extern "C" fn firsttouch_page_size() -> usize {
    os::page_size()
}
