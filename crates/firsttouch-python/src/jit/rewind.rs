//! Going back: what no array needs is used again, and what arrays need is set aside until they die.

#![allow(unsafe_code)] // Safety: frames in a cursor's list are its own; law 8 is kept by looking at counts first.

use super::allocate::CHUNK;
use super::chunk::Chunk;
use super::cursor::Cursor;
use super::frame::Frame;
use super::hold::Hold;
use std::ptr::null_mut;
use std::sync::Arc;

impl Cursor {
    /// Closes an open frame and all frames in it.
    pub fn close(&mut self, frame: *mut Frame) {
        loop {
            let innermost = self.frame;
            if innermost.is_null() {
                return;
            }
            self.close_innermost();
            if innermost == frame {
                return;
            }
        }
    }

    fn close_innermost(&mut self) {
        // SAFETY: an open frame of ours; nobody else looks at it meanwhile.
        let Some(frame) = (unsafe { self.frame.as_mut() }) else { return };
        self.frame = frame.outer;
        frame.large.clear();
        if !frame.is_alone() {
            self.set_aside(frame);
        }
        self.go_back(frame.chunk, frame.top);
    }

    /// Leaves the memory since a frame was opened to the arrays on it.
    fn set_aside(&mut self, frame: &mut Frame) {
        let range = frame.chunk.min(self.chunks.len())..(self.chunk + 1).min(self.chunks.len());
        let held: Vec<Arc<Chunk>> = self.chunks[range.clone()].to_vec();
        for (chunk, place) in held.iter().zip(range) {
            chunk.set_aside(if place == self.chunk { self.top } else { chunk.end() });
        }
        match Hold::new(Vec::new()) {
            Some(fresh) => frame.replace(fresh).leave(held),
            // No memory for another count: this one keeps its chunks for as long as the cursor lives.
            None => std::mem::forget(held),
        }
        for outer in self.frames() {
            // SAFETY: an open frame of ours.
            unsafe { (*outer).slow |= usize::from((*outer).chunk >= frame.chunk) };
        }
    }

    /// Sets the position, or the first one after it that no array needs.
    fn go_back(&mut self, place: usize, top: usize) {
        let mut number = 0;
        self.chunks.retain_mut(|chunk| {
            number += 1;
            number <= place + 1 || Chunk::is_free(chunk)
        });
        let was_further = self.chunk > place;
        self.chunk = place;
        (self.top, self.end) = match self.chunks.get_mut(place) {
            Some(chunk) => (Chunk::usable_from(chunk, top), chunk.end()),
            None => (0, 0),
        };
        // A loop that needs more than this would otherwise come and go in every turn.
        if was_further && self.end - self.top < CHUNK / 2 && self.chunks.len() > place + 1 {
            self.enter(place + 1);
        }
    }

    /// Gives all chunks back, but those that arrays need; with no frame open.
    pub fn empty(&mut self) {
        self.chunks.clear();
        (self.top, self.end, self.chunk) = (0, 0, 0);
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        while !self.frame.is_null() {
            self.close_innermost();
        }
        let first = std::mem::replace(&mut self.first, null_mut());
        // SAFETY: all are closed, and this cursor, which made them, ends.
        unsafe { Frame::drop_all(first) };
    }
}
