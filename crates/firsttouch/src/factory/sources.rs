//! Creates allocators that obtain memory.

use super::Error;
use super::arguments::Arguments;
use crate::allocator::Allocator;
use crate::sources::{Aligned, Calloc, Malloc};
use crate::sync::first::First;
use std::sync::Arc;

type Made = Result<Arc<dyn Allocator>, Error>;

/// The C library's `malloc`; it has no state, so there is only one.
pub(super) fn malloc(_: &Arguments<'_>) -> Made {
    static ONE: First<Arc<dyn Allocator>> = First::new();
    Ok(ONE.get_or_make(|| Arc::new(Malloc)).clone())
}

/// The C library's `calloc`; likewise.
pub(super) fn calloc(_: &Arguments<'_>) -> Made {
    Ok(Calloc::shared().clone())
}

pub(super) fn aligned(arguments: &Arguments<'_>) -> Made {
    let align = arguments.number("alignment").unwrap_or_default(); // was checked
    Ok(Aligned::new(align).map_err(|error| Error::Value(error.to_string()))?)
}

#[cfg(feature = "mimalloc")]
pub(super) fn mimalloc(_: &Arguments<'_>) -> Made {
    Ok(crate::sources::Mimalloc::get().map_err(Error::Memory)?)
}

#[cfg(feature = "jemalloc")]
pub(super) fn jemalloc(_: &Arguments<'_>) -> Made {
    Ok(crate::sources::Jemalloc::get().map_err(Error::Memory)?)
}

#[cfg(not(feature = "mimalloc"))]
pub(super) fn mimalloc(_: &Arguments<'_>) -> Made {
    Err(Error::Unsupported("this build of firsttouch does not include mimalloc".into()))
}

#[cfg(not(feature = "jemalloc"))]
pub(super) fn jemalloc(_: &Arguments<'_>) -> Made {
    Err(Error::Unsupported("this build of firsttouch does not include jemalloc".into()))
}
