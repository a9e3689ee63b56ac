//! Placement: pages made real, on huge pages, on nodes; receipts; the machine's nodes.

use crate::allocator::{Handle, shared, text};
use crate::error::{Status, ensure_memory, fail, protect};
use crate::options::{self, Versioned};
use crate::range::range;
use firsttouch::allocator::find;
use firsttouch::heap::migration::{collapse, migrate};
use firsttouch::numa::policy::{Outer, Policy};
use firsttouch::numa::topology::{NodeMemory, Topology};
use firsttouch::os;
use firsttouch::pages::placement::page_bytes;
use firsttouch::pages::receipt::{Outcome, Reason};
use firsttouch::pages::touch::{Job, Pattern, Way, make_real};
use firsttouch::size::Bytes;
use firsttouch::sources::PlacedPages;
use std::ffi::{c_char, c_int, c_void};

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_touch(address: *mut c_void, size: usize, write: bool, threads: c_int) -> Status {
    let body = || {
        ensure_memory()?;
        let (address, bytes) = range(address, size)?;
        if bytes == 0 {
            return Ok(());
        }
        let job = Job {
            address,
            size: bytes,
            step: os::page_size(),
            way: if write { Way::Write } else { Way::Read },
            threads: usize::try_from(threads).ok().filter(|&threads| threads > 0),
            processors: None,
            pattern: Pattern::Dynamic,
        };
        // SAFETY: memory of the caller's, writable where `write` says so (header).
        let made = unsafe { make_real(job, &mut |_| true) };
        let refused = |error| fail(Status::System, format_args!("cannot touch {}: {}", Bytes(size), Reason::of(error)));
        made.map(|_| ()).map_err(refused)
    };
    protect(Err(Status::Internal), body).err().unwrap_or(Status::Ok)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_collapse(address: *mut c_void, size: usize, huge: *mut usize) -> Status {
    let body = || {
        ensure_memory()?;
        range(address, size)?;
        let (done, why_not) = collapse((address.addr(), size), &mut |_| true);
        // SAFETY: null, or a place for a number (header).
        if let Some(huge) = unsafe { huge.as_mut() } {
            *huge = done;
        }
        match why_not {
            Some(reason) if done == 0 => {
                Err(fail(Status::System, format_args!("cannot collapse {} into huge pages: {reason}", Bytes(size))))
            }
            _ => Ok(()),
        }
    };
    protect(Err(Status::Internal), body).err().unwrap_or(Status::Ok)
}

/// `firsttouch_migration`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Migration {
    struct_size: usize,
    moved: u64,
    stayed: u64,
    absent: u64,
    failed: u64,
}

// SAFETY: numbers, the size first.
unsafe impl Versioned for Migration {
    const NAME: &'static str = "firsttouch_migration";
    const INITIALIZER: &'static str = "FIRSTTOUCH_INIT(firsttouch_migration)";
    const LEAST: usize = 40;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_migrate(
    address: *mut c_void,
    size: usize,
    numa: *const c_char,
    out: *mut Migration,
) -> Status {
    let body = || {
        ensure_memory()?;
        range(address, size)?;
        // SAFETY: a string (header).
        let numa = unsafe { text("numa", numa)? };
        let invalid = |message: String| fail(Status::Invalid, message);
        let refused = |reason| fail(Status::System, format_args!("cannot move the pages to {numa}: {reason}"));
        let topology = Topology::read();
        let policy = Policy::parse(numa).map_err(invalid)?;
        policy.check(&topology).map_err(invalid)?;
        let orders = policy.within(&Outer::now(topology.with_memory())).map_err(refused)?;
        let sum =
            migrate((address.addr(), size), &orders, &mut |_| true).map_err(|error| refused(Reason::of(error)))?;
        if out.is_null() {
            return Ok(());
        }
        let (moved, stayed, absent, failed) =
            (sum.moved as u64, sum.stayed as u64, sum.absent as u64, sum.failed as u64);
        // SAFETY: a structure (header).
        unsafe { options::write(out, &Migration { struct_size: 0, moved, stayed, absent, failed }) }
    };
    protect(Err(Status::Internal), body).err().unwrap_or(Status::Ok)
}

/// `firsttouch_receipt`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Receipt {
    struct_size: usize,
    asked: u64,
    mapped: u64,
    page_size: u64,
    numa: c_int,
    populate: c_int,
    lock: c_int,
    threads: c_int,
}

// SAFETY: numbers, the size first.
unsafe impl Versioned for Receipt {
    const NAME: &'static str = "firsttouch_receipt";
    const INITIALIZER: &'static str = "FIRSTTOUCH_INIT(firsttouch_receipt)";
    const LEAST: usize = 48;
}

/// `firsttouch_outcome`.
fn outcome(outcome: Outcome) -> c_int {
    match outcome {
        Outcome::NotAsked => 0,
        Outcome::Granted => 1,
        Outcome::Partly(_) => 2,
        Outcome::Refused(_) => 3,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_get_receipt(handle: *const Handle, block: *const c_void, out: *mut Receipt) -> Status {
    let body = || {
        // SAFETY: null or a living handle (header).
        let allocator = unsafe { shared(handle) };
        let Some(pages) = find::<PlacedPages>(&allocator) else {
            let writers = "pages() with sizes of huge pages, numa, populate, lock or strict";
            return Err(fail(
                Status::Unsupported,
                format_args!("this allocator writes no receipts: only {writers} do"),
            ));
        };
        let Some((_, receipt)) = pages.receipt(block.addr()) else {
            return Err(fail(Status::Invalid, format_args!("{block:p} lies in no block of this allocator")));
        };
        let receipt = Receipt {
            struct_size: 0,
            asked: receipt.asked as u64,
            mapped: receipt.bytes as u64,
            page_size: page_bytes(receipt.page) as u64,
            numa: outcome(receipt.policy),
            populate: outcome(receipt.populate),
            lock: outcome(receipt.lock),
            threads: receipt.threads as c_int,
        };
        // SAFETY: a structure (header).
        unsafe { options::write(out, &receipt) }
    };
    protect(Err(Status::Internal), body).err().unwrap_or(Status::Ok)
}

#[unsafe(no_mangle)]
extern "C" fn firsttouch_current_node() -> c_int {
    protect(0, || os::current_node() as c_int)
}

#[unsafe(no_mangle)]
extern "C" fn firsttouch_highest_node() -> c_int {
    protect(0, || ensure_memory().map_or(0, |()| Topology::read().highest() as c_int))
}

/// `firsttouch_node`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Node {
    struct_size: usize,
    total: u64,
    free: u64,
    available: u64,
    processors: c_int,
}

// SAFETY: numbers, the size first.
unsafe impl Versioned for Node {
    const NAME: &'static str = "firsttouch_node";
    const INITIALIZER: &'static str = "FIRSTTOUCH_INIT(firsttouch_node)";
    const LEAST: usize = 40;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_get_node(number: c_int, out: *mut Node) -> Status {
    let body = || {
        ensure_memory()?;
        let machine = Topology::read();
        let Some(node) = usize::try_from(number).ok().and_then(|number| machine.node(number)) else {
            let highest = machine.highest();
            return Err(fail(Status::Invalid, format_args!("node {number} is not online: the highest is {highest}")));
        };
        let memory = |bytes: fn(&NodeMemory) -> usize| node.memory.as_ref().map_or(0, |memory| bytes(memory) as u64);
        let node = Node {
            struct_size: 0,
            total: memory(|memory| memory.total),
            free: memory(|memory| memory.free),
            available: memory(|memory| memory.available),
            processors: node.processors.iter().count() as c_int,
        };
        // SAFETY: a structure (header).
        unsafe { options::write(out, &node) }
    };
    protect(Err(Status::Internal), body).err().unwrap_or(Status::Ok)
}
