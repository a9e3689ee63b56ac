//! Heaps: segments cut into spans of units, their free lists, and giving idle memory back to the operating system.

#![allow(unsafe_code)] // Safety: records lie outside the memory they describe, and each field names the lock it needs.

pub(crate) mod ages;
pub mod bound;
pub(crate) mod build;
pub(crate) mod class;
pub(crate) mod free_lists;
#[expect(clippy::module_inception)]
pub(crate) mod heap;
#[cfg(test)]
mod invariants;
pub mod ledger;
pub(crate) mod locality;
mod mapped;
pub(crate) mod mapping_limit;
pub mod migration;
pub(crate) mod misplaced;
pub(crate) mod occupant;
pub(crate) mod open;
pub(crate) mod purge;
pub mod purgeable;
pub mod purger;
pub(crate) mod records;
pub(crate) mod region;
pub(crate) mod register;
pub(crate) mod segment;
pub(crate) mod shape;
pub(crate) mod spans;
pub(crate) mod top;
pub(crate) mod victims;

pub use purge::map_anew;
