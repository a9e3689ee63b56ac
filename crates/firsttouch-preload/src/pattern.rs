//! The name of a file for a report as JSON.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// In it `%p` stands for the process and `%%` for a percent sign; `-` is standard output. Names are bytes.
#[derive(Clone)]
pub struct Pattern(pub Vec<u8>);

impl Pattern {
    pub fn is_output(&self) -> bool {
        self.0 == b"-"
    }

    /// Whether each process gets a file of its own.
    pub fn has_process(&self) -> bool {
        let mut rest = self.0.as_slice();
        while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
            if rest.get(at + 1) == Some(&b'p') {
                return true;
            }
            rest = rest.get(at + 2..).unwrap_or_default();
        }
        false
    }

    /// The file of a process.
    pub fn of(&self, process: u32) -> PathBuf {
        let mut name = Vec::new();
        let mut bytes = self.0.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            match (byte, bytes.peek()) {
                (b'%', Some(b'p')) => name.extend(process.to_string().into_bytes()),
                (b'%', Some(b'%')) => name.push(b'%'),
                _ => {
                    name.push(byte);
                    continue;
                }
            }
            bytes.next();
        }
        OsString::from_vec(name).into()
    }
}
