//! The memory of a segment's records, ages and locality bitmap, mapped as its top rises and discarded as it falls.

use crate::heap::locality;
use crate::heap::segment::{Record, Segment};
use crate::os::{self, Errno};
use std::cell::Cell;

/// Bytes mapped at a time.
pub(crate) const STEP: usize = 64 << 10;

/// Maps what the records of all units below `top` need. The caller holds the heap's lock.
pub(crate) fn open(segment: &Segment, top: u32) -> Result<(), Errno> {
    open_array(segment.records as usize, &segment.records_open, top as usize * size_of::<Record>())?;
    open_array(segment.ages as usize, &segment.ages_open, top as usize)?;
    if segment.locality.is_null() {
        return Ok(());
    }
    open_array(segment.locality as usize, &segment.locality_open, locality::bytes(top as usize))
}

/// Maps the first `need` bytes of an array, of which `open` are mapped.
pub(crate) fn open_array(start: usize, open: &Cell<usize>, need: usize) -> Result<(), Errno> {
    if need <= open.get() {
        return Ok(());
    }
    let open_to = |to: usize| os::map_at(start + open.get(), to - open.get()).map(|_| open.set(to));
    open_to(need.next_multiple_of(STEP)).or_else(|_| open_to(need.next_multiple_of(os::page_size())))
}

/// Discards the records of the units from `top` on; they read zero afterwards. The caller holds the heap's lock.
pub(crate) fn empty(segment: &Segment, top: u32) {
    let arrays = [
        (segment.records as usize, segment.records_open.get(), top as usize * size_of::<Record>()),
        (segment.ages as usize, segment.ages_open.get(), top as usize),
        (segment.locality as usize, segment.locality_open.get(), locality::bytes(top as usize)),
    ];
    for (start, open, used) in arrays {
        let from = used.next_multiple_of(os::page_size());
        if from < open {
            // SAFETY: no unit from `top` on is in use, so these records are not read. If the system refuses they stay; the
            // ages of unmapped units are zero already.
            let _ = unsafe { os::discard(start + from, open - from) };
        }
    }
}
