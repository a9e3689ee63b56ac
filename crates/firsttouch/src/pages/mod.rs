//! Pages: their size, huge pages, prefault, locking, where they lie, and the receipt of what was granted.

#![allow(unsafe_code)] // Safety: mappings are the caller's own until they are unmapped.

pub(crate) mod collapse;
pub(crate) mod mapping;
pub mod migration;
pub(crate) mod page;
pub mod placement;
pub mod receipt;
pub mod touch;
