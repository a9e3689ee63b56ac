//! Allocating rooms from the upstream and freeing them.

use super::canary;
use super::room::{Plan, Room};
use super::{Guarded, Overrun};
use crate::allocator::{AllocError, Limit, Request};
use crate::heap::shape::huge_page;
use crate::heap::{heap, segment};
use crate::os;
use std::ptr::{NonNull, with_exposed_provenance_mut};

pub(super) fn pointer(address: usize) -> NonNull<u8> {
    // SAFETY: only addresses of the upstream's blocks are passed.
    unsafe { NonNull::new_unchecked(with_exposed_provenance_mut(address)) }
}

impl Guarded {
    /// # Safety
    /// The block is live, or was until now.
    pub(super) unsafe fn inspect(&self, room: &Room) {
        // SAFETY: the block is live or was until now (`guarded/mod.rs`, which lists it): its pages are accessible.
        if let Some(at) = unsafe { canary::damage(room) } {
            self.kept.lock().found(Overrun { address: room.address, asked: room.asked, at });
        }
    }

    /// Allocates a room whose guard is inaccessible. Also returns whether the block's pages read zero.
    pub(super) fn take(&self, request: Request) -> Result<(Room, bool), AllocError> {
        let (page, huge) = (os::page_size(), huge_page());
        let too_large = || AllocError::new(request.size(), Limit::Size);
        let small = request.size().checked_add(page).ok_or_else(too_large)? < huge;
        let plan = Plan::new(self.options.side, request, if small { page } else { huge }).ok_or_else(too_large)?;
        let mut taken = self.ask(plan, request)?;
        if small && segment::is_huge(taken.0.base) {
            // SAFETY: it was just allocated and is not in use.
            unsafe { self.upstream.deallocate(pointer(taken.0.base)) };
            taken = self.ask(Plan::new(self.options.side, request, huge).ok_or_else(too_large)?, request)?;
        }
        let room = taken.0;
        // SAFETY: the guard's pages were just allocated with the block, and are never in use.
        unsafe {
            os::protect(room.guard, room.guard_size, false).map_err(|error| {
                self.upstream.deallocate(pointer(room.base));
                heap::refused(request.size(), error)
            })?;
            canary::put(&room);
        }
        Ok(taken)
    }

    fn ask(&self, plan: Plan, request: Request) -> Result<(Room, bool), AllocError> {
        // Bytes that are only there for alignment need not be zeroed.
        let zeroed = request.is_zeroed() && plan.lead() == 0;
        let too_large = |_| AllocError::new(request.size(), Limit::Size);
        let padded = Request::bytes(plan.total).with_zeroed(zeroed).aligned(plan.align).map_err(too_large)?;
        padded.check().map_err(|error| AllocError { asked: request.size(), ..error })?;
        let block = self.upstream.allocate(padded).map_err(|error| AllocError { asked: request.size(), ..error })?;
        Ok((plan.at(block.address.as_ptr() as usize, request.size()), block.zeroed))
    }

    /// Returns a room to the upstream. If the system refuses to make it accessible again, it is kept for another
    /// attempt.
    ///
    /// # Safety
    /// The block is no longer in use, and is not listed.
    pub(super) unsafe fn give_back(&self, room: Room) -> bool {
        let pages = room.pages();
        // SAFETY: nobody uses the block, and it is not listed (`Guarded::deallocate` and the kept blocks).
        unsafe {
            if os::protect(pages.start, pages.len(), true).is_err() {
                self.kept.lock().push(room);
                return false;
            }
            self.upstream.deallocate(pointer(room.base));
        }
        self.kept.lock().gone();
        true
    }

    /// Releases the oldest freed blocks while more than `keep` bytes are kept; returns the bytes released.
    pub(super) fn let_go(&self, keep: usize) -> usize {
        let mut gone = 0;
        loop {
            let oldest = self.kept.lock().pop(keep);
            let Some(room) = oldest else { return gone };
            // SAFETY: it was freed, and is in neither list.
            if !unsafe { self.give_back(room) } {
                return gone;
            }
            gone += room.pages().len();
        }
    }
}
