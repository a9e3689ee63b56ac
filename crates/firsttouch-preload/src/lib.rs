//! `libfirsttouch_preload.so`: serves the large blocks of any program from a pool, loaded by `LD_PRELOAD`.
//!
//! Requests of at least a threshold go to the pool of the core, all others to the C library. A free looks its address up in the
//! core's map, one load for what is not ours. Until the constructor has run, and wherever something is in the way (a program with
//! more rights than its caller, or with an allocator of its own, as sanitizers are), all requests go to the next library.
//!
//! The library needs glibc, whose allocator has names of its own (`__libc_malloc`). For any other C library it is empty.

#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(unsafe_code)] // Safety: C's allocation functions; each block names what it relies on.

mod entry;
mod idle;
mod large;
mod life;
mod next;
mod report;
mod settings;

/// The allocator of this library's own Rust code. It is never the program's, so it can't call itself.
#[global_allocator]
static OWN: next::CLibrary = next::CLibrary;
