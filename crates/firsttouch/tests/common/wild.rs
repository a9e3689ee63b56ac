//! Accesses that no program should make.

#![allow(unsafe_code)] // Safety: they happen in forked children, or stay on a page of the test's own.

#[cfg(unix)]
use super::forked::fork;
use super::held::Held;
use std::ptr::with_exposed_provenance_mut;

/// Writes a byte.
pub fn write(address: usize) {
    // SAFETY: the test's own doing: what is there is inaccessible, a canary, or a block that the test holds.
    unsafe { with_exposed_provenance_mut::<u8>(address).write_volatile(7) }
}

/// Reads a byte.
pub fn read(address: usize) {
    // SAFETY: as above.
    unsafe { with_exposed_provenance_mut::<u8>(address).read_volatile() };
}

/// Runs `body` in a forked child, which it must kill.
#[cfg(unix)]
pub fn dies(body: impl FnOnce()) {
    assert_eq!(fork(body).signal(), Some(libc::SIGSEGV));
}

/// Runs `body` in a forked child, which must live.
#[cfg(unix)]
pub fn survives(body: impl FnOnce()) {
    assert_eq!(fork(body).signal(), None);
}

/// The first byte behind a block that a program can't touch.
pub fn guard_behind(block: &Held) -> usize {
    (block.address() + block.asked).next_multiple_of(64)
}
