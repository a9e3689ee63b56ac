#![doc = include_str!("../README.md")]
//!
//! The layers are those of ARCHITECTURE.md. None imports one above it, with three exceptions: [`sources`] and [`adaptors`] are
//! declared in the words of [`spec`], and made from the arguments of a [`factory`]; a [`description`] is shown by its
//! declaration, and its values may be allocators; and [`fork`], which lists what happens at a fork, is asked to register that.
//! Nothing here depends on Python.

#[cfg(not(any(target_os = "linux", windows)))]
compile_error!("firsttouch needs Linux or Windows");

pub mod adaptors;
pub mod address_map;
pub mod allocator;
pub mod description;
pub mod error;
pub mod expression;
pub mod factory;
pub mod failure;
pub mod fork;
pub mod gain;
pub mod glibc;
pub mod heap;
pub mod json;
pub mod layout;
pub mod ledger;
pub mod numa;
pub mod os;
pub mod owners;
pub mod pages;
mod policy;
mod reason;
pub mod report;
pub mod reserve;
#[cfg(not(miri))]
pub mod residency;
pub mod scratch;
pub mod shared;
pub mod size;
pub mod sources;
pub mod spec;
pub mod stats;
#[doc(hidden)]
pub mod sync;
pub mod why;

pub use allocator::{AllocError, Allocator, Block, Description, Request};
pub use factory::allocator_from_expression;
pub use stats::Stats;
