//! Fills memory with a pattern when it is allocated and when it is freed, so that uninitialized reads and uses after free show.

#![allow(unsafe_code)] // Safety: only unused bytes are written: of blocks just allocated, or about to be freed.

use crate::allocator::{AllocError, Allocator, Block, BlockList, Description, Request};
use crate::description::Value;
use crate::factory::Arguments;
use crate::failure;
use crate::ledger::Ledger;
use crate::spec::{MakeResult, NONE, ON_A_POOL, OptionKind, Spec, opt};
use std::ptr::NonNull;
use std::sync::Arc;

/// The declaration.
pub const SPECS: &[Spec] = &[Spec {
    name: "filled",
    summary: "an allocator that fills memory with a byte, which exposes reads of uninitialized or freed memory.",
    options: &[
        ON_A_POOL,
        opt(
            "on_allocate",
            OptionKind::Byte,
            Some(Value::Integer(0xFF)),
            "Byte written over new memory that need not be zero. ``None`` writes nothing. The default turns floats \
             into NaN.",
        ),
        opt("on_free", OptionKind::Byte, NONE, "Byte written over memory that is freed. ``None`` writes nothing."),
    ],
    positional: 1,
    notes: "",
    example: "\
>>> ft.filled().empty(3)
array([nan, nan, nan])",
}];

pub fn make(arguments: &Arguments) -> MakeResult {
    let byte = |name| arguments.number(name).map(|byte| byte as u8);
    Ok(Filled::new(arguments.upstream()?, byte("on_allocate"), byte("on_free")))
}

/// See the module. Zeroed requests stay zero. Usable bytes beyond the requested size are filled, too, so that they have
/// the pattern when the block grows.
pub struct Filled {
    upstream: Arc<dyn Allocator>,
    on_allocate: Option<u8>,
    on_free: Option<u8>,
    /// The usable size of each block, as the upstream reported it at the allocation. The C library may report much more
    /// later, including what an alignment took.
    ledger: Arc<Ledger<usize>>,
}

impl Filled {
    /// Fills blocks of `upstream` with `on_allocate` before they are handed out and with `on_free` before they are freed.
    pub fn new(upstream: Arc<dyn Allocator>, on_allocate: Option<u8>, on_free: Option<u8>) -> Arc<Self> {
        Arc::new(Self { upstream, on_allocate, on_free, ledger: Ledger::new() })
    }
}

/// Fills a range of a block's bytes.
///
/// # Safety
/// The block is live and has these bytes, and they are not in use.
unsafe fn fill(address: NonNull<u8>, from: usize, to: usize, pattern: Option<u8>) {
    if let Some(byte) = pattern.filter(|_| from < to) {
        // SAFETY: these bytes are the block's, and not in use, as demanded.
        unsafe { address.add(from).write_bytes(byte, to - from) }
    }
}

// SAFETY: the upstream keeps the promises of `Allocator`; zeroed requests are not written, and others are no longer
// reported as zeroed.
unsafe impl Allocator for Filled {
    fn describe(&self) -> Description {
        Description::of("filled")
            .with(self.upstream.describe())
            .named("on_allocate", self.on_allocate.map(usize::from))
            .named("on_free", self.on_free.map(usize::from))
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        request.check().inspect_err(|&error| failure::remember(error))?;
        let block = self.ledger.allocate(&*self.upstream, request, |block| block.size)?;
        let from = if request.is_zeroed() { request.size() } else { 0 };
        // SAFETY: the block was just allocated and is not in use yet.
        unsafe { fill(block.address, from, block.size, self.on_allocate) };
        Ok(Block { zeroed: block.zeroed && (request.is_zeroed() || self.on_allocate.is_none()), ..block })
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        // SAFETY: the caller's promise; the block is no longer in use.
        unsafe {
            if let Some(usable) = self.ledger.leave(address) {
                fill(address, 0, usable, self.on_free);
            }
            self.upstream.deallocate(address);
        }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: a live block, as demanded, and the upstream's.
        self.ledger.get(address).unwrap_or_else(|| unsafe { self.upstream.usable_size(address) })
    }

    fn small_limit(&self) -> usize {
        0 // it serves small arrays, too
    }

    fn upstream(&self) -> Option<&Arc<dyn Allocator>> {
        Some(&self.upstream)
    }

    fn list(&self) -> Option<&dyn BlockList> {
        Some(&*self.ledger)
    }
}
