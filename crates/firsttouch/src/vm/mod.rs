//! Address space: claims, and the map from an address to its owner.

#![allow(unsafe_code)] // Safety: claimed address space has one owner; the map leads to areas that stay readable.

pub mod address_map;
pub(crate) mod area;
pub(crate) mod claim;
