//! Which memory is lent to fixed buffers: two on the same memory would hand it out twice.

use crate::guarded_by_gil::GuardedByGil;
use firsttouch::os::{self, SharedPart};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use std::ops::Range;
use std::sync::LazyLock;

/// Memory that a buffer stands on.
struct Loan {
    number: u64,
    range: Range<usize>,
    /// What of it can be mapped at other addresses too.
    shared: Vec<SharedPart>,
    /// The object whose memory it is, by address: the loan keeps it.
    root: usize,
    /// For messages.
    what: String,
}

#[derive(Default)]
struct Loans {
    last: u64,
    all: Vec<Loan>,
}

static LOANS: LazyLock<GuardedByGil<Loans>> = LazyLock::new(GuardedByGil::default);

/// The object whose memory an array or a view has, and where that lies if it is an array that owns it.
struct Root {
    address: usize,
    owned: Option<Range<usize>>,
}

fn meet<T: Ord>(one: &Range<T>, other: &Range<T>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Loan {
    fn overlaps(&self, range: &Range<usize>, shared: &[SharedPart]) -> bool {
        let same = |one: &SharedPart, other: &SharedPart| one.file == other.file && meet(&one.bytes, &other.bytes);
        meet(&self.range, range) || self.shared.iter().any(|one| shared.iter().any(|other| same(one, other)))
    }

    /// Whether `root` is a block that the buffer on this memory handed out: an array that owns a part of it. That is
    /// its holder's, and the buffer works around it.
    fn handed_out(&self, root: &Root) -> bool {
        let within = |owned: &Range<usize>| self.range.start <= owned.start && owned.end <= self.range.end;
        root.address != self.root && root.owned.as_ref().is_some_and(within)
    }
}

impl Root {
    fn of(lender: &Bound<'_, PyAny>) -> PyResult<Self> {
        let ndarray = lender.py().import("numpy")?.getattr("ndarray")?;
        let mut root = lender.clone();
        loop {
            let is_array = root.is_instance(&ndarray)?;
            let base = match () {
                () if is_array => root.getattr("base")?,
                () if root.is_instance_of::<PyMemoryView>() => root.getattr("obj")?,
                () => return Ok(Self { address: root.as_ptr() as usize, owned: None }),
            };
            if base.is_none() {
                let owns = is_array && root.getattr("flags")?.getattr("owndata")?.extract()?;
                let owned = if owns { Some(range_of(&root)?) } else { None };
                return Ok(Self { address: root.as_ptr() as usize, owned });
            }
            root = base;
        }
    }
}

fn range_of(array: &Bound<'_, PyAny>) -> PyResult<Range<usize>> {
    let start: usize = array.getattr("__array_interface__")?.get_item("data")?.get_item(0)?.extract()?;
    Ok(start..start.saturating_add(array.getattr("nbytes")?.extract()?))
}

/// Notes that a buffer stands on the memory of `lender`; by which number, and whether forked children share it.
pub fn enter(lender: &Bound<'_, PyAny>, range: Range<usize>) -> PyResult<(u64, bool)> {
    let kind = lender.get_type().name()?;
    let what = format!("{kind} of {} bytes at {:#x}", range.len(), range.start);
    let (root, shared) = (Root::of(lender)?, os::shared_parts(range.clone()));
    let mut loans = LOANS.borrow(lender.py());
    let taken = loans.all.iter().find(|loan| loan.overlaps(&range, &shared) && !loan.handed_out(&root));
    if let Some(loan) = taken {
        let message = format!(
            "FixedBuffer() got a {what}, which overlaps the memory of another FixedBuffer that is in use, on a {}: \
             both would hand out the same bytes; use that buffer, or drop it and its arrays first",
            loan.what
        );
        drop(loans);
        return Err(PyValueError::new_err(message));
    }
    loans.last += 1;
    let (number, is_shared) = (loans.last, !shared.is_empty());
    loans.all.push(Loan { number, range, shared, root: root.address, what });
    Ok((number, is_shared))
}

/// The buffer is gone, and all its arrays.
pub fn leave(py: Python<'_>, number: u64) {
    LOANS.borrow(py).all.retain(|loan| loan.number != number);
}
