//! Bytes on their way into a file: collected, hashed, written by whoever may wait for a disk.

use super::format::{self, LONGEST};
use super::grown::Grown;
use std::io::{Error, Write};

/// Names and values that belong to the whole run.
pub type Facts = Vec<(String, String)>;

/// Where an encoder writes.
pub trait Output {
    /// Takes more bytes.
    fn bytes(&mut self, bytes: &[u8]);

    /// Takes a number.
    fn number(&mut self, value: u64) {
        self.bytes(format::varint(&mut [0; LONGEST], value));
    }

    /// Takes a text.
    fn text(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(format::TEXT)];
        self.number(text.len() as u64);
        self.bytes(text);
    }

    /// Takes names and values.
    fn facts(&mut self, facts: &[(String, String)]) {
        self.number(facts.len() as u64);
        for (name, value) in facts {
            self.text(name.as_bytes());
            self.text(value.as_bytes());
        }
    }
}

impl Output for Vec<u8> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

const BUFFER: usize = 64 << 10;

/// A file behind a buffer that lies on the system's own memory.
pub(super) struct Written<W> {
    file: W,
    buffer: Grown<u8>,
    filled: usize,
    hash: u64,
    written: u64,
    error: Option<Error>,
}

impl<W: Write> Written<W> {
    pub(super) fn new(file: W) -> Option<Self> {
        Some(Self { file, buffer: Grown::zeros(BUFFER)?, filled: 0, hash: format::SEED, written: 0, error: None })
    }

    /// Writes what is collected. After an error nothing more is written.
    pub(super) fn flush(&mut self) {
        let bytes = &self.buffer.items()[..self.filled];
        self.hash = format::hashed(self.hash, bytes);
        self.written += bytes.len() as u64;
        if self.error.is_none() {
            self.error = self.file.write_all(bytes).err();
        }
        self.filled = 0;
    }

    /// Ends the file with its check; bytes written, or why they could not be.
    pub(super) fn finish(&mut self) -> Result<u64, Error> {
        self.flush();
        let hash = self.hash;
        self.bytes(&hash.to_le_bytes());
        self.flush();
        match self.error.take() {
            Some(error) => Err(error),
            None => self.file.flush().map(|()| self.written),
        }
    }

    /// Why nothing more is written.
    pub(super) fn failed(&self) -> bool {
        self.error.is_some()
    }
}

impl<W: Write> Output for Written<W> {
    fn bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.filled == BUFFER {
                self.flush();
            }
            let (at, count) = (self.filled, bytes.len().min(BUFFER - self.filled));
            self.buffer.items()[at..at + count].copy_from_slice(&bytes[..count]);
            self.filled += count;
            bytes = &bytes[count..];
        }
    }
}
