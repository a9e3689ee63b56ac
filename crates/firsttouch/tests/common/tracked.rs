//! Counts what is requested of an upstream, for tests that look at what reaches it.

#![allow(unsafe_code)] // Safety: requests are passed on unchanged, and so are the promises.

use firsttouch::description::Description;
use firsttouch::{AllocError, Allocator, Block, Request, Stats};
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

/// See the module.
pub struct Tracked {
    upstream: Arc<dyn Allocator>,
    /// The bytes asked for, by address; and what has been requested so far.
    served: Mutex<(HashMap<usize, usize>, Stats)>,
}

impl Tracked {
    pub fn new(upstream: Arc<dyn Allocator>) -> Arc<Self> {
        Arc::new(Self { upstream, served: Mutex::default() })
    }

    fn note(&self, address: NonNull<u8>, asked: Option<usize>) {
        let (blocks, stats) = &mut *self.served.lock().unwrap();
        let address = address.as_ptr() as usize;
        let before = match asked {
            Some(asked) => blocks.insert(address, asked),
            None => blocks.remove(&address),
        };
        stats.in_use = stats.in_use + asked.unwrap_or(0) - before.unwrap_or(0);
        stats.peak_in_use = stats.peak_in_use.max(stats.in_use);
        stats.blocks = blocks.len();
    }
}

// SAFETY: the upstream keeps the promises of `Allocator`.
unsafe impl Allocator for Tracked {
    fn describe(&self) -> Description {
        Description::of("tracked").with(self.upstream.describe())
    }

    fn allocate(&self, request: Request) -> Result<Block, AllocError> {
        let block = self.upstream.allocate(request)?;
        self.served.lock().unwrap().1.allocations += 1;
        self.note(block.address, Some(request.size()));
        Ok(block)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>) {
        self.note(address, None);
        // SAFETY: the caller's promise.
        unsafe { self.upstream.deallocate(address) }
    }

    unsafe fn usable_size(&self, address: NonNull<u8>) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.upstream.usable_size(address) }
    }

    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool {
        // SAFETY: the caller's promise.
        let done = unsafe { self.upstream.resize_in_place(address, size) };
        if done {
            self.note(address, Some(size));
        }
        done
    }

    fn stats(&self) -> Stats {
        self.served.lock().unwrap().1
    }

    fn upstream(&self) -> Option<&Arc<dyn Allocator>> {
        Some(&self.upstream)
    }
}
