//! Scratch memory: what is live stays as it is, what is dead is used again, whatever happens meanwhile.

mod arena;
#[path = "../common/mod.rs"]
mod common;
mod failing;
#[cfg(unix)]
mod forks;
mod laws;
mod model;
mod pieces;
