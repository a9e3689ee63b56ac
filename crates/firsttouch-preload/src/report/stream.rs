//! A copy of a standard stream, as many programs close theirs before they end.

use libc::c_int;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

/// Copies get numbers from here on: a program expects low ones to be free.
const HIGH: c_int = 500;

pub struct Stream {
    file: AtomicI32,
    /// What it was: a program may close all descriptors, and get a copy's number for a file of its own.
    device: AtomicU64,
    inode: AtomicU64,
}

impl Stream {
    pub const fn none() -> Self {
        Self { file: AtomicI32::new(-1), device: AtomicU64::new(0), inode: AtomicU64::new(0) }
    }

    /// Copies a descriptor, in a way that no program started from this one inherits, or keeps itself.
    pub fn keep(&self, file: c_int) {
        let Some((device, inode)) = identity(file) else { return };
        self.device.store(device, Relaxed);
        self.inode.store(inode, Relaxed);
        // SAFETY: has no preconditions.
        let high = unsafe { libc::fcntl(file, libc::F_DUPFD_CLOEXEC, HIGH) };
        self.file.store(if high < 0 { file } else { high }, Relaxed);
    }

    /// The descriptor, if one is kept and the program has not made it another file's.
    pub fn get(&self) -> Option<c_int> {
        let file = Some(self.file.load(Relaxed)).filter(|&file| file >= 0)?;
        (identity(file)? == (self.device.load(Relaxed), self.inode.load(Relaxed))).then_some(file)
    }

    pub fn close(&self) {
        let file = self.get();
        self.file.store(-1, Relaxed);
        if let Some(copy) = file.filter(|&file| file >= HIGH) {
            // SAFETY: the descriptor is ours.
            unsafe { libc::close(copy) };
        }
    }
}

fn identity(file: c_int) -> Option<(u64, u64)> {
    // SAFETY: a stat of zero bytes is valid, and the kernel writes one.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::fstat(file, &raw mut stat) == 0).then_some((stat.st_dev, stat.st_ino))
    }
}
