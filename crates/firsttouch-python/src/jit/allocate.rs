//! Memory for arrays, where bumping does not do: the next chunk, or memory of an array's own.

#![allow(unsafe_code)] // Safety: frames in a cursor's list are its own.

use super::chunk::Chunk;
use super::cursor::Cursor;
use super::failure::Failure;
use super::hold::Hold;
use firsttouch::scratch::Refused;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of the first chunk; the next are twice as large, four times in all.
pub const CHUNK: usize = 64 << 10;
/// Larger arrays have memory of their own.
const LARGE: usize = CHUNK / 4;
/// Set-aside chunks hold no more than this: then every array has memory of its own until some are back.
const ASIDE: usize = 2 * CHUNK;
/// Smaller chunks are not worth it.
const SMALLEST: usize = 4 << 10;

/// Bytes that an array takes: a multiple of 64, never none.
const fn rounded(size: usize) -> usize {
    ((size - (size != 0) as usize) | 63) + 1
}

impl Cursor {
    /// Memory for an array, with its count in `info`, where bumping does not do.
    pub fn allocate(&mut self, size: usize) -> Result<usize, Failure> {
        let size = rounded(size);
        if size > LARGE || self.aside.load(Relaxed) > ASIDE {
            return self.allocate_apart(size);
        }
        if size > self.end - self.top && !self.enter_spare(size) && !self.enter_new(size)? {
            return self.allocate_apart(size);
        }
        let address = self.top;
        self.top += size;
        // SAFETY: compiled code runs in an open frame.
        self.info = unsafe { self.frame.as_ref() }.map_or(null_mut(), |frame| frame.info);
        Ok(address)
    }

    /// Memory of an array's own.
    fn allocate_apart(&mut self, size: usize) -> Result<usize, Failure> {
        let chunk = Chunk::new(&self.backing, &self.aside, size)?;
        let address = chunk.start();
        let none = || Failure::Memory("no memory is left to count an array".into());
        let hold = Hold::new(vec![chunk]).ok_or_else(none)?;
        self.info = hold.info();
        // SAFETY: compiled code runs in an open frame.
        let frame = unsafe { self.frame.as_mut() }.ok_or_else(none)?;
        frame.slow = 1;
        frame.large.push(hold);
        Ok(address)
    }

    /// Goes on in the next chunk, if there is one with room.
    fn enter_spare(&mut self, size: usize) -> bool {
        let next = self.chunk + 1;
        let fits = self.chunks.get(next).is_some_and(|chunk| chunk.size() >= size);
        if fits {
            self.enter(next);
        }
        fits
    }

    /// Goes on in a new chunk; `false` where the buffer has none that is worth it.
    fn enter_new(&mut self, size: usize) -> Result<bool, Failure> {
        let mut wanted = CHUNK << self.chunks.len().min(4);
        let chunk = loop {
            match Chunk::new(&self.backing, &self.aside, wanted) {
                Ok(chunk) => break chunk,
                Err(Refused::Failed(_) | Refused::Crowded) if wanted / 2 >= size.max(SMALLEST) => wanted /= 2,
                Err(_) => return Ok(false),
            }
        };
        let place = if self.chunks.is_empty() { 0 } else { self.chunk + 1 };
        self.chunks.insert(place, chunk);
        self.enter(place);
        Ok(true)
    }

    /// Goes on at the beginning of a chunk that no array needs.
    pub(super) fn enter(&mut self, place: usize) {
        for frame in self.frames() {
            // SAFETY: an open frame of ours. Those that began before there was any chunk can't just set the position.
            unsafe { (*frame).slow |= usize::from(frame == self.frame || (*frame).top == 0) };
        }
        self.chunk = place;
        self.top = self.chunks[place].start();
        self.end = self.chunks[place].end();
    }
}
