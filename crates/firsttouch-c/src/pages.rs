//! The pages behind memory: made real, on huge pages, on nodes; receipts; the machine's nodes; what is there.

use crate::allocator::text;
use crate::error::{Status, ensure_memory, fail, put, status_of};
use firsttouch::allocator::find;
use firsttouch::numa::{NodeMemory, Policy, Topology};
use firsttouch::os;
use firsttouch::owners;
use firsttouch::pages::migration::{migrate, whole_pages};
use firsttouch::pages::placement::{Reason, page_bytes};
use firsttouch::pages::touch::{lacking, prefault};
use firsttouch::residency::{query, summarize};
use firsttouch::size::Bytes;
use firsttouch::sources::Pages;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

/// No program has addresses beyond.
const END: usize = 1 << 56;

/// The whole pages that `size` bytes at `address` lie on: their address and bytes.
pub fn range(address: *const c_void, size: usize) -> Result<(usize, usize), Status> {
    let address = address.addr();
    if address.checked_add(size).is_none_or(|end| end > END) {
        let why = format_args!("{size} bytes at {address:#x} extend beyond the end of the address space");
        return Err(fail(Status::Invalid, why));
    }
    Ok(whole_pages(address, size))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_touch(address: *mut c_void, size: usize, write: bool, threads: c_int) -> Status {
    status_of(|| {
        ensure_memory()?;
        let (address, bytes) = range(address, size)?;
        if bytes == 0 {
            return Ok(());
        }
        if let Some((_, why)) = lacking((address, bytes), None).filter(|_| write) {
            return Err(fail(Status::NoMemory, format_args!("cannot touch {}: {why}", Bytes(size))));
        }
        let threads = usize::try_from(threads).unwrap_or(0);
        // SAFETY: memory of the caller's, writable where `write` says so (header).
        let made = unsafe { prefault((address, bytes), os::page_size(), write, threads) };
        let refused = |error| fail(Status::System, format_args!("cannot touch {}: {}", Bytes(size), Reason::of(error)));
        made.map(|_| ()).map_err(refused)
    })
}

/// `firsttouch_migration`.
#[repr(C)]
struct Migration {
    moved: u64,
    stayed: u64,
    absent: u64,
    failed: u64,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_migrate(
    address: *mut c_void,
    size: usize,
    numa: *const c_char,
    out: *mut Migration,
) -> Status {
    status_of(|| {
        ensure_memory()?;
        range(address, size)?;
        // SAFETY: a string (header).
        let numa = unsafe { text("numa", numa)? };
        let invalid = |message: String| fail(Status::Invalid, message);
        let refused = |reason| fail(Status::System, format_args!("cannot move the pages to {numa}: {reason}"));
        let policy = Policy::parse(numa).map_err(invalid)?;
        policy.check(&Topology::read()).map_err(invalid)?;
        let binding = policy.binding().map_err(refused)?;
        let sum = migrate((address.addr(), size), &binding).map_err(|error| refused(Reason::of(error)))?;
        if out.is_null() {
            return Ok(());
        }
        let [moved, stayed, absent, failed] = [sum.moved, sum.stayed, sum.absent, sum.failed].map(|bytes| bytes as u64);
        // SAFETY: a structure (header).
        unsafe { put("migration", out, Migration { moved, stayed, absent, failed }) }
    })
}

/// `firsttouch_receipt`.
#[repr(C)]
struct Receipt {
    asked: u64,
    mapped: u64,
    page_size: u64,
    numa: c_int,
    populate: c_int,
    lock: c_int,
    threads: c_int,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_get_receipt(block: *const c_void, out: *mut Receipt) -> Status {
    status_of(|| {
        // SAFETY: a living block, or none of ours (header).
        let owner = NonNull::new(block.cast_mut().cast()).and_then(|block| unsafe { owners::shared(block) });
        let pages = owner.as_ref().and_then(find::<Pages>);
        let Some((pages, (_, receipt))) = pages.and_then(|pages| Some((pages, pages.receipt(block.addr())?))) else {
            let reason = format_args!("{block:p} has no receipt: only blocks of pages() and numa() have one");
            return Err(fail(Status::Invalid, reason));
        };
        let receipt = Receipt {
            asked: receipt.asked as u64,
            mapped: receipt.bytes as u64,
            page_size: page_bytes(receipt.page) as u64,
            // `firsttouch_outcome`
            numa: match (receipt.policy, receipt.policy_refused) {
                (None, None) => 0,
                (Some(_), None) => 1,
                (Some(_), Some(_)) => 2,
                (None, Some(_)) => 3,
            },
            populate: c_int::from(receipt.threads > 0),
            lock: c_int::from(pages.placement().lock),
            threads: receipt.threads as c_int,
        };
        // SAFETY: null, or a structure (header).
        unsafe { put("receipt", out, receipt) }
    })
}

/// `firsttouch_node`.
#[repr(C)]
struct Node {
    number: c_int,
    highest: c_int,
    processors: c_int,
    total: u64,
    free: u64,
    available: u64,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_get_node(number: c_int, out: *mut Node) -> Status {
    status_of(|| {
        ensure_memory()?;
        let machine = Topology::read();
        let highest = machine.highest();
        let found = if number == -1 { Some(os::current_node()) } else { usize::try_from(number).ok() };
        let Some(node) = found.and_then(|number| machine.node(number)) else {
            return Err(fail(Status::Invalid, format_args!("node {number} is not online: the highest is {highest}")));
        };
        let memory = |bytes: fn(&NodeMemory) -> usize| node.memory.as_ref().map_or(0, |memory| bytes(memory) as u64);
        let node = Node {
            number: node.number as c_int,
            highest: highest as c_int,
            processors: node.processors.iter().count() as c_int,
            total: memory(|memory| memory.total),
            free: memory(|memory| memory.free),
            available: memory(|memory| memory.available),
        };
        // SAFETY: null, or a structure (header).
        unsafe { put("node", out, node) }
    })
}

/// `firsttouch_residency`: the number of pages, then these figures of [`summarize`] in bytes.
type Residency = [u64; 1 + FIGURES.len()];

const FIGURES: [&str; 6] = ["absent", "zero_page", "small", "huge", "real", "swapped"];

/// `FIRSTTOUCH_UNKNOWN`.
const UNKNOWN: u64 = u64::MAX;

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_inspect(
    address: *const c_void,
    size: usize,
    out: *mut Residency,
    states: *mut u8,
    capacity: usize,
) -> Status {
    status_of(|| {
        ensure_memory()?;
        let (start, bytes) = range(address, size)?;
        let found = query(&(start..start + bytes));
        if !found.is_complete() {
            let why = format_args!("cannot allocate the states of {} of pages", Bytes(bytes));
            return Err(fail(Status::NoMemory, why));
        }
        if capacity > 0 && !states.is_null() {
            // SAFETY: room for `capacity` bytes (header).
            let states = unsafe { std::slice::from_raw_parts_mut(states, capacity) };
            let each = found.iter().flat_map(|run| {
                let pages = run.range.len() / os::page_size();
                std::iter::repeat_n(run.state as u8, pages)
            });
            states.iter_mut().zip(each).for_each(|(to, state)| *to = state);
        }
        let figures = summarize(&found).figures;
        let figure = |name: &str| {
            let found = figures.iter().find(|(figure, _)| *figure == name);
            found.and_then(|(_, bytes)| *bytes).map_or(UNKNOWN, |bytes| bytes as u64)
        };
        let mut residency = [(bytes / os::page_size()) as u64; 1 + FIGURES.len()];
        residency[1..].iter_mut().zip(FIGURES).for_each(|(to, name)| *to = figure(name));
        // SAFETY: null, or a structure (header).
        unsafe { put("residency", out, residency) }
    })
}
