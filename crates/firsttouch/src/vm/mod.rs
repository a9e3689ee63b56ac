//! Address space: claims, and the map from an address to its owner.

#![allow(unsafe_code)] // Safety: claimed address space belongs to one segment; the map leads to segments that live.

pub mod address_map;
pub(crate) mod claim;
