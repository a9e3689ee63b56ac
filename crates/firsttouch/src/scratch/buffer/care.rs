//! Giving chunks back, what happens around a fork, and the end.

use super::super::space::Space;
use super::{Buffer, Chunks, Source, Storage};
use crate::memory::caretaker::{self, Ward};

impl Buffer {
    /// Where no scope is open and nothing lives in chunks, keeps one of at most four times the first's size.
    pub(super) fn give_back_idle(&self) {
        let Source::Chunks(Chunks { sizes, .. }) = &self.source else { return };
        loop {
            let mut state = self.state.lock();
            if state.slots.depth > 0 || state.bumped > 0 || state.chunks <= 4 * sizes.chunk {
                return;
            }
            let Some(space) = state.spaces.remove(|space| space.blocks == 0) else { return };
            drop(state);
            self.give_back(space);
        }
    }

    /// Gives every chunk back that no block lies on.
    pub(super) fn give_back_all(&self) {
        let Source::Chunks(_) = &self.source else { return };
        loop {
            let Some(space) = self.state.lock().spaces.remove(|space| space.blocks == 0) else { return };
            self.give_back(space);
        }
    }
}

impl Ward for Buffer {
    fn tick(&self) {}

    fn rests(&self) -> bool {
        true
    }

    fn cool(&self) {}

    fn hold(&self) {
        self.state.hold();
    }

    unsafe fn release(&self) {
        if let Source::Storage(Storage { shared: true, process, .. }) = self.source
            && process != std::process::id()
        {
            // SAFETY: `hold` took the lock, and nobody else runs who could have a reference.
            unsafe { self.state.held().closed = true };
        }
        // SAFETY: `hold` took it.
        unsafe { self.state.release() }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        caretaker::leave(std::ptr::from_ref(self));
        self.give_back_all();
        let lives = self.state.lock().spaces.iter().any(|space: &Space| space.blocks > 0);
        if let Source::Storage(Storage { keep, .. }) = &mut self.source
            && lives
        {
            std::mem::forget(keep.take()); // law 8
        }
    }
}
