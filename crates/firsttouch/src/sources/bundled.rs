//! The libraries that are built in: what they have in common is thread-local data, and that a build may lack them.

use crate::allocator::Allocator;
use crate::factory::{Arguments, Error};
use crate::os;
use crate::spec::{Made, Spec};
use std::hint::black_box;
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

/// The address space that has to be left for thread-local data: eight times what glibc maps for a heap.
const LEFT: usize = 1 << 30;

/// Whether the background purger's thread may call `upstream`: a [`tick`](crate::heap::purger::Purgeable::tick) asks this
/// before it returns a deferred trim.
///
/// jemalloc and mimalloc have thread-local data. glibc allocates them when a thread first uses any of them, and ends the
/// process where there is no memory. So they are called where there is some; otherwise requests and trims return blocks in the
/// program's threads. The first allocation of a thread also costs address space, for a heap that glibc never gives back, so
/// much of that has to be left.
pub(crate) fn may_be_called_by_purger(upstream: &Arc<dyn Allocator>) -> bool {
    !uses_thread_data(upstream) || (os::address_space_left() >= LEFT && has_memory())
}

/// Whether `upstream` is, or stands on, a library with thread-local data.
fn uses_thread_data(upstream: &Arc<dyn Allocator>) -> bool {
    let _ = upstream; // of a build without libraries
    #[cfg(all(feature = "jemalloc", unix))]
    if crate::allocator::find::<super::Jemalloc>(upstream).is_some() {
        return true;
    }
    #[cfg(feature = "mimalloc")]
    if crate::allocator::find::<super::Mimalloc>(upstream).is_some() {
        return true;
    }
    false
}

/// Whether the C library has memory, at least four times what the thread-local data of a thread need.
fn has_memory() -> bool {
    const ROOM: usize = 16 << 10;
    // SAFETY: `black_box` keeps the compiler from leaving both calls out.
    unsafe {
        let block = black_box(os::c_calloc(ROOM));
        os::c_free(block);
        !block.is_null()
    }
}

/// Lets the libraries that handle forks themselves register their handlers.
pub(crate) fn register_fork_handlers() {
    #[cfg(all(feature = "jemalloc", unix))]
    super::jemalloc::initialize();
}
