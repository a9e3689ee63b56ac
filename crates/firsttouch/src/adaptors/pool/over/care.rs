//! When the idle blocks of a pool over an upstream go back to it, and what happens around a fork.

use super::super::care::idle_limit;
use super::Over;
use crate::allocator::Allocator;
use crate::heap::caretaker::{self, Ward};
use std::sync::atomic::Ordering::Relaxed;

impl Over {
    /// Does the caretaker's work where there is no caretaker.
    #[cold]
    pub(super) fn tick_if_due(&self) {
        if self.clock.is_due() {
            self.tick();
        }
    }
}

impl Ward for Over {
    fn tick(&self) {
        let step = u32::from(self.clock.tick());
        let now = self.epoch.fetch_add(step, Relaxed).wrapping_add(step);
        if let Some(epochs) = self.clock.decay_epochs {
            self.give_back_while(|epoch, _| now.wrapping_sub(epoch) >= epochs.into());
        }
        let limit = idle_limit(self.max_idle, self.state.lock().shelf.bytes);
        self.give_back_while(|_, bytes| bytes > limit);
    }

    fn rests(&self) -> bool {
        let state = self.state.lock();
        state.counts.blocks == 0 && state.shelf.bytes == 0
    }

    fn cool(&self) {
        self.trim();
    }

    fn hold(&self) {
        self.forks.fetch_add(1, Relaxed); // whoever writes first copies pages to its own node
        self.state.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` took it.
        unsafe { self.state.release() }
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        caretaker::leave(std::ptr::from_ref(self));
        self.give_back_while(|_, _| true);
    }
}
