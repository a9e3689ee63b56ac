//! Anonymous memory: every block is a mapping of its own, fresh from the system and returned at once, with the page size, NUMA
//! policy, prefault and lock that were requested.

#![allow(unsafe_code)] // Safety: each block is a mapping of its own, which is unmapped once.

use crate::allocator::{AllocError, Allocator, Block, BlockList, Description, Request};
use crate::description::Value;
use crate::factory::{Arguments, Error};
use crate::failure;
use crate::ledger::Ledger;
use crate::numa::Policy;
use crate::os;
use crate::pages::placement::{Page, Placement, Receipt};
use crate::sources::library::Counts;
use crate::spec::{MakeResult, NO, NONE, Opt, OptionKind, REQUIRED, Spec, opt};
use crate::stats::Stats;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::Arc;

const HUGE: Opt = opt(
    "huge",
    OptionKind::PageSize,
    NO,
    "Page size. ``False`` means base pages, ``\"thp\"`` transparent huge pages, and a size such as ``\"2M\"`` or ``\"1G\"`` \
     explicit huge pages, for blocks of at least one. Where they are not to be had, transparent ones are asked for.",
);
const POPULATE: Opt = opt(
    "populate",
    OptionKind::Threads,
    NO,
    "Whether pages are faulted in before the constructor returns. An integer is the number of threads; ``True`` lets \
     firsttouch choose it. Populating releases the GIL; Ctrl-C takes effect at its end.",
);
const LOCK: Opt = opt("lock", OptionKind::Flag, NO, "Whether pages are locked in memory (``mlock``).");
const STRICT: Opt = opt(
    "strict",
    OptionKind::Flag,
    NO,
    "Whether a request that cannot be granted in full raises :exc:`MemoryError` instead of being recorded in the receipt.",
);
const NODES: &str = "Node or policy to allocate from: ``1``, ``\"bind:0-1\"`` (these nodes and no others), \
    ``\"preferred:1\"`` (others where it has no memory left), ``\"interleave:all\"`` (page by page) or ``\"local\"`` (the \
    node of the thread that first touches a page). A policy or cpuset imposed from outside is never widened.";

/// The declaration.
pub const SPECS: &[Spec] = &[
    Spec {
        name: "numa",
        summary: "an allocator of fresh pages from a NUMA node, or from where a policy says.",
        options: &[opt("numa", OptionKind::Policy, REQUIRED, NODES), HUGE, POPULATE, LOCK, STRICT],
        positional: 1,
        notes: "It is :func:`pages` with its `numa` first. Where the nodes of ``bind`` have no memory left, the kernel ends a process; ``preferred`` uses others.",
        example: "\
>>> ft.receipt(ft.numa(0).zeros(10**6)).numa
'bind:0'",
    },
    Spec {
        name: "pages",
        summary: "an allocator that maps fresh pages for every array and unmaps them when the array is freed.",
        options: &[HUGE, POPULATE, LOCK, opt("numa", OptionKind::Policy, NONE, NODES), STRICT],
        positional: 1,
        notes: "Mapping and faulting in new pages costs more than the arithmetic on most temporaries; put a :func:`pool` on \
        top for arrays that come and go. Arrays raise :exc:`MemoryError` where more is to be populated than is \
        available, or where ``RLIMIT_MEMLOCK`` does not allow `lock`. :func:`receipt` tells what was granted.",
        example: "\
>>> a = ft.pages(huge=\"thp\", populate=True).zeros(10**6)
>>> ft.receipt(a).populated
True",
    },
];

pub fn make(arguments: &Arguments) -> MakeResult {
    Ok(Pages::placed(placement_of(arguments)?))
}

fn placement_of(arguments: &Arguments) -> Result<Placement, Error> {
    let populate = match arguments.value("populate") {
        Value::Flag(true) => Some(0),
        Value::Integer(threads) => Some(*threads as usize),
        _ => None,
    };
    let page = match arguments.value("huge") {
        Value::Text(text) => Page::parse(text).map_err(Error::Value)?,
        _ => Page::Base,
    };
    let (lock, strict) = (arguments.is_set("lock"), arguments.is_set("strict"));
    let policy = arguments.text("numa").map(Policy::parse).transpose().map_err(Error::Value)?;
    Ok(Placement { page, populate, lock, policy, strict })
}

/// See the module.
pub struct Pages {
    placement: Placement,
    ledger: Arc<Ledger<Receipt>>,
    counts: Counts,
}

impl Pages {
    /// Creates a source of base pages or, for blocks of at least one, of transparent huge pages.
    pub fn new(huge: bool) -> Arc<Self> {
        Self::placed(Placement::of_pages(huge))
    }

    /// Creates a source of pages with this placement.
    pub fn placed(placement: Placement) -> Arc<Self> {
        Arc::new(Self { placement, ledger: Ledger::new(), counts: Counts::default() })
    }

    /// The requested placement.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The live block that contains `address`, and its receipt.
    pub fn receipt(&self, address: usize) -> Option<(usize, Receipt)> {
        let mut found = None;
        self.ledger.each(|start, receipt| {
            if (start..start + receipt.bytes).contains(&address) {
                found = Some((start, receipt));
            }
        });
        found
    }
}

/// Unmaps a block. If the kernel cannot (too many mappings), at least its content is discarded.
///
/// # Safety
/// It is a mapping of its own, and not in use.
pub(super) unsafe fn unmap(start: usize, size: usize) {
    // SAFETY: a mapping of its own that nobody uses, as demanded.
    unsafe {
        if os::unmap(start, size).is_err() {
            let _ = os::discard(start, size);
        }
    }
}

// SAFETY: every block is a mapping of its own, which reads zero and stays until it is freed.
unsafe impl Allocator for Pages {
    fn describe(&self) -> Description {
        self.placement.describe()
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        let (start, receipt) = self.placement.map(request.size(), request.align())?;
        // SAFETY: a mapping never lies at zero.
        let address = unsafe { NonNull::new_unchecked(with_exposed_provenance_mut::<u8>(start)) };
        self.ledger.enter(address, request.size(), receipt).inspect_err(|&error| {
            failure::remember(error);
            // SAFETY: it was just mapped and is not in use.
            unsafe { unmap(start, receipt.bytes) };
        })?;
        self.counts.served(receipt.asked);
        Ok(Block { address, size: receipt.bytes, zeroed: true })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        let Some(receipt) = self.ledger.leave(address) else { return };
        self.counts.freed(receipt.asked);
        // SAFETY: the block was a mapping of its own and is no longer in use (`Allocator::deallocate`).
        unsafe { unmap(address.as_ptr() as usize, receipt.bytes) }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        self.ledger.get(address).map_or(0, |receipt| receipt.bytes)
    }

    fn stats(&self) -> Stats {
        let (counts, mut mapped) = (self.counts.stats(), 0);
        self.ledger.each(|_, receipt| mapped += receipt.bytes);
        mapped = mapped.max(counts.in_use);
        Stats { active: mapped, mapped, ..counts }
    }

    fn list(&self) -> Option<&dyn BlockList> {
        Some(&*self.ledger)
    }
}
