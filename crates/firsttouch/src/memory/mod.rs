//! What the operating system gives, made safe to hold: segments of address space, spans of units inside them, the map
//! from an address to its owner, and giving idle memory back.

#![allow(unsafe_code)] // Safety: records lie outside the memory they describe, and each field names the lock it needs.

pub mod address_map;
pub(crate) mod ages;
pub mod caretaker;
mod claim;
mod class;
mod free_lists;
pub(crate) mod heap;
#[cfg(test)]
mod invariants;
pub mod ledger;
pub(crate) mod lock;
mod open;
pub(crate) mod purge;
mod records;
pub(crate) mod region;
#[cfg(any(feature = "mimalloc", feature = "jemalloc"))]
pub(crate) mod reserve;
pub mod residency;
mod segment;
mod spans;
mod top;
