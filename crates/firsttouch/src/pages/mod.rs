//! Pages: their size, huge pages, prefault, locking, placement, and receipts of what was granted.

#![allow(unsafe_code)] // Safety: mappings belong to the caller until they are unmapped.

pub(crate) mod mapping;
pub mod migration;
pub mod placement;
pub mod receipt;
pub mod touch;

pub use mapping::explicit_page_sizes;
