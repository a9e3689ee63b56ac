//! A line of text that is built without memory.

/// At most so many bytes; what is more is cut.
const ROOM: usize = 256;

pub struct Line {
    bytes: [u8; ROOM],
    len: usize,
}

impl Line {
    pub fn new() -> Self {
        Self { bytes: [0; ROOM], len: 0 }
    }

    pub fn put(&mut self, text: &str) -> &mut Self {
        let part = &text.as_bytes()[..text.len().min(ROOM - self.len)];
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
        self
    }

    pub fn hex(&mut self, number: usize) -> &mut Self {
        let digits = (usize::BITS - number.leading_zeros()).div_ceil(4).max(1);
        for at in (0..digits).rev() {
            let digit = number >> (4 * at) & 15;
            self.put(&"0123456789abcdef"[digit..=digit]);
        }
        self
    }

    /// Writes it, as far as that can be done.
    pub fn write_to(&self, file: libc::c_int) {
        write(file, &self.bytes[..self.len]);
    }
}

/// Writes all of it to a descriptor, or as much as can be written.
pub fn write(file: libc::c_int, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the kernel reads at most the length of the slice.
        let count = unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
        let Ok(count @ 1..) = usize::try_from(count) else { return };
        bytes = &bytes[count..];
    }
}
