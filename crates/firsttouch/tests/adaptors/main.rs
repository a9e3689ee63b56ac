//! What adaptors and listed sources promise beyond the contract, one file each.

#[path = "../common/mod.rs"]
mod common;

mod filled;
#[cfg(unix)]
mod guarded;
mod limited;
