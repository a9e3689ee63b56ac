//! The libraries that are built in: what they have in common is thread-local data, and that a build may lack them.

use crate::allocator::Allocator;
use crate::factory::{Arguments, Error};
use crate::spec::{Made, Spec};
use std::sync::Arc;

/// The declaration.
pub const SPECS: &[Spec] = &[
    Spec {
        name: "jemalloc",
        summary: "the process's jemalloc, the allocator of FreeBSD and Meta, built in.",
        options: &[],
        positional: 0,
        notes: "A build of firsttouch without it raises :exc:`UnsupportedError`.",
        example: "\
>>> ft.jemalloc().zeros(3)
array([0., 0., 0.])",
    },
    Spec {
        name: "mimalloc",
        summary: "the process's mimalloc, Microsoft's allocator, built in.",
        options: &[],
        positional: 0,
        notes: "A build of firsttouch without it raises :exc:`UnsupportedError`.",
        example: "\
>>> ft.mimalloc().zeros(3)
array([0., 0., 0.])",
    },
];

pub fn make(arguments: &Arguments) -> Made {
    match arguments.name() {
        #[cfg(all(feature = "jemalloc", unix))]
        "jemalloc" => Ok(super::Jemalloc::get()),
        #[cfg(feature = "mimalloc")]
        "mimalloc" => Ok(super::Mimalloc::get()),
        lacks => Err(Error::Unsupported(format!("this build of firsttouch does not include {lacks}"))),
    }
}

/// Whether the background purger's thread may call `upstream`: it runs no foreign code, and has no thread-local data, which
/// jemalloc and mimalloc have. glibc allocates these when a thread first uses them, and ends the process where there is no
/// memory.
pub(crate) fn may_be_called_by_purger(upstream: &Arc<dyn Allocator>) -> bool {
    #[cfg(all(feature = "jemalloc", unix))]
    if crate::allocator::find::<super::Jemalloc>(upstream).is_some() {
        return false;
    }
    #[cfg(feature = "mimalloc")]
    if crate::allocator::find::<super::Mimalloc>(upstream).is_some() {
        return false;
    }
    !upstream.calls_out()
}

/// Lets the libraries that handle forks themselves register their handlers.
pub(crate) fn register_fork_handlers() {
    #[cfg(all(feature = "jemalloc", unix))]
    super::jemalloc::initialize();
}
