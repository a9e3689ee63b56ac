//! The pool of the process, and the size below which arrays stay with NumPy.

use crate::allocators::allocator::PyAllocator;
use firsttouch::adaptors::{Options, Pool, SMALL_LIMIT};
use firsttouch::allocator::Allocator;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Requests below this many bytes stay with NumPy.
static SMALL: AtomicUsize = AtomicUsize::new(SMALL_LIMIT);

/// The process's own pool, made on first use and kept.
pub fn process_pool() -> &'static Arc<dyn Allocator> {
    static POOL: OnceLock<Arc<dyn Allocator>> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(Options::default()))
}

/// Requests below this many bytes stay with NumPy.
pub fn small_limit() -> usize {
    SMALL.load(Relaxed)
}

/// Changes the size below which requests stay with NumPy.
pub fn change_small_limit(nbytes: usize) {
    SMALL.store(nbytes, Relaxed);
}

#[pyfunction]
pub fn default_pool() -> PyAllocator {
    PyAllocator::ours(process_pool().clone())
}
