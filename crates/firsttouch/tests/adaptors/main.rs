//! What adaptors promise beyond the contract, one file each, and what a fork does to them.

#[path = "../common/mod.rs"]
mod common;

mod filled;
#[cfg(unix)]
mod forks;
#[cfg(unix)]
mod guarded;
mod limited;
mod tracked;
