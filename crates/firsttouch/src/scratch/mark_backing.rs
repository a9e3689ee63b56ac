//! A backing on a custom scratch allocator, which knows marks but no blocks: blocks are counted here, and nothing is
//! rewound while a block above the mark is live.

use super::backing::{Backing, Closed, Refused, Slot, Survivor};
use super::levels::Levels;
use crate::address_map;
use crate::allocator::{AllocError, Block, Description, Limit, Request};
use crate::arena::Scratch;
use crate::failure;
use crate::heap::purger::{self, Purgeable};
use crate::sync::lock::Lock;
use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};

/// See the module.
pub struct MarkBacking {
    levels: Lock<Levels>,
    /// Whether `scratch` is in use. Not a lock, because `scratch` may run code that waits for other threads or calls
    /// back.
    busy: AtomicBool,
    scratch: UnsafeCell<ManuallyDrop<Box<dyn Scratch>>>,
    expression: String,
}

// SAFETY: `scratch` is used only by the thread that set `busy`, and may move between threads.
unsafe impl Sync for MarkBacking {}
// SAFETY: as above.
unsafe impl Send for MarkBacking {}

/// The exclusive right to use `scratch`, until it is dropped.
struct Turn<'a>(&'a MarkBacking);

impl Turn<'_> {
    fn scratch(&self) -> &dyn Scratch {
        // SAFETY: there is only one turn at a time, and nothing drops `scratch` during one.
        unsafe { &***self.0.scratch.get() }
    }

    /// Rewinds levels without live blocks.
    fn settle(&self) {
        loop {
            let mark = self.0.levels.lock().ended();
            let Some(mark) = mark else { return };
            // SAFETY: the mark is the latest, as marks are made and rewound to only in turns, and no block above it is
            // live.
            unsafe { self.scratch().rewind(mark) };
        }
    }

    /// Makes sure that a block outside all scopes lies above a mark, so that its memory is not lost when it dies.
    fn begin_outside(&self) {
        self.settle();
        if self.0.levels.lock().is_empty() {
            let mark = self.scratch().mark();
            self.0.levels.lock().open_outside(mark);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Release);
    }
}

impl MarkBacking {
    /// Creates a backing on `scratch`, which `expression` describes.
    pub fn new(scratch: Box<dyn Scratch>, expression: String) -> Arc<Self> {
        let backing = Arc::new(Self {
            levels: Lock::new(Levels::default()),
            busy: AtomicBool::new(false),
            scratch: UnsafeCell::new(ManuallyDrop::new(scratch)),
            expression,
        });
        let address: *const Self = Arc::as_ptr(&backing);
        // SAFETY: it is not moved before it is dropped, which unregisters it.
        unsafe { purger::enter(address) };
        backing
    }

    fn turn(&self) -> Option<Turn<'_>> {
        (!self.busy.swap(true, Acquire)).then(|| Turn(self))
    }

    fn taken(&self, slot: Slot, request: Request) -> Result<Block, Refused> {
        request.check()?;
        let turn = self.turn().ok_or(Refused::Fragmented)?;
        if slot == Slot::OUTSIDE {
            turn.begin_outside();
        }
        if !self.levels.lock().make_room().map_err(|()| AllocError::new(request.size(), Limit::Upstream))? {
            return Err(Refused::Fragmented);
        }
        let before = failure::now();
        let address = turn.scratch().allocate(request.size(), request.align());
        // If ended scopes keep memory from being rewound, another allocator may serve the request; otherwise the
        // memory is full.
        let address = address.map_err(|error| match self.levels.lock().holds_up() {
            true => {
                failure::retract(before);
                Refused::Fragmented
            }
            false => error.into(),
        })?;
        if !self.levels.lock().on_alloc(slot, address.as_ptr() as usize, request.size()) {
            let error = AllocError::new(request.size(), Limit::Upstream);
            failure::explain(error, format!("{} returned an address at which an array is live", self.expression));
            return Err(error.into());
        }
        address_map::note_outside(address.as_ptr() as usize);
        Ok(Block { address, size: request.size(), zeroed: request.is_zeroed() })
    }
}

// SAFETY: `scratch` keeps its own promises; a mark is rewound to only if no block above it is live.
unsafe impl Backing for MarkBacking {
    fn open(&self) -> Slot {
        let turn = self.turn();
        let mark = turn.as_ref().map(|turn| {
            turn.settle();
            turn.scratch().mark()
        });
        self.levels.lock().open(mark)
    }

    fn close(&self, slot: Slot) -> Closed {
        let closed = self.levels.lock().close(slot);
        if let Some(turn) = self.turn() {
            turn.settle();
        }
        closed
    }

    fn allocate(&self, slot: Slot, request: Request) -> Result<Block, Refused> {
        let block = self.taken(slot, request).inspect_err(|refused| {
            if let Refused::Failed(error) = refused
                && failure::last() != Some(*error)
            {
                failure::remember(*error);
            }
        })?;
        if request.is_zeroed() {
            // SAFETY: the block was just allocated and is not in use yet.
            unsafe { block.address.write_bytes(0, request.size()) };
        }
        Ok(block)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) -> bool {
        self.levels.lock().on_free(address.as_ptr() as usize)
    }

    fn usable_size(&self, address: NonNull<u8>) -> Option<usize> {
        self.levels.lock().size(address.as_ptr() as usize)
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        self.usable_size(address).is_some_and(|usable| size <= usable)
    }

    fn survivors(&self, slot: Slot) -> Vec<Survivor> {
        self.levels.lock().survivors(slot)
    }

    fn used(&self) -> usize {
        self.levels.lock().used
    }

    fn capacity(&self) -> usize {
        self.levels.lock().taken()
    }

    fn peak(&self) -> usize {
        self.levels.lock().peak
    }

    fn depth(&self) -> usize {
        self.levels.lock().depth()
    }

    fn reset(&self) -> Result<(), usize> {
        let open = self.depth();
        if open > 0 {
            return Err(open);
        }
        if let Some(turn) = self.turn() {
            turn.settle();
        }
        self.levels.lock().forget_peak();
        Ok(())
    }

    fn in_segments(&self) -> bool {
        false
    }

    fn describe(&self) -> Description {
        Description::opaque(self.expression.clone())
    }
}

impl Purgeable for MarkBacking {
    fn hold(&self) {
        self.levels.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` acquired it.
        unsafe { self.levels.release() };
    }
}

impl Drop for MarkBacking {
    fn drop(&mut self) {
        purger::leave(std::ptr::from_ref(self));
        if self.levels.lock().used == 0 {
            Turn(self).settle(); // the last block may have been freed after the last scope ended
            // SAFETY: there are no other references, and no block is live; otherwise it is leaked (law 8).
            unsafe { ManuallyDrop::drop(self.scratch.get_mut()) };
        }
    }
}

#[cfg(test)]
#[path = "mark_backing_tests.rs"]
mod tests;
