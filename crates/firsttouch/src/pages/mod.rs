//! Pages: their size, huge pages, prefault, locking, placement, and receipts of what was granted.

pub mod migration;
pub mod placement;
pub mod touch;
