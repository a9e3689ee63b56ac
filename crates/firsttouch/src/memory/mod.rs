//! What the operating system gives, made safe to hold: segments of address space, spans of units inside them, the map
//! from an address to its owner, and giving idle memory back.

#![allow(unsafe_code)] // Safety: records lie outside the memory they describe, and each field names the lock it needs.

pub mod address_map;
pub(crate) mod ages;
pub mod axis;
pub mod bound;
pub(crate) mod brief_lock;
pub mod caretaker;
mod claim;
pub(crate) mod class;
pub mod collapse;
mod free_lists;
pub(crate) mod heap;
pub(crate) mod homes;
#[cfg(test)]
mod invariants;
pub mod ledger;
pub(crate) mod lock;
pub(crate) mod mapping;
pub mod migration;
mod open;
mod orders;
pub(crate) mod page;
pub mod placement;
pub mod policy;
pub(crate) mod proofs;
pub(crate) mod purge;
mod reason;
pub mod receipt;
mod records;
pub(crate) mod region;
#[cfg(any(feature = "mimalloc", feature = "jemalloc"))]
pub(crate) mod reserve;
pub mod residency;
pub mod run_on;
mod segment;
pub mod shared;
mod spans;
pub(crate) mod strays;
mod top;
pub mod topology;
pub mod touch;
