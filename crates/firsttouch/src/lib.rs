#![doc = include_str!("../README.md")]
//!
//! The picture in ARCHITECTURE.md has the modules, and each uses those below it. In four places two modules know each other:
//!
//! - Allocators and the placements of [`pages`] declare and describe themselves by [`spec`], [`description`], [`factory`] and
//!   [`expression`], which list them and make them.
//! - [`address_map`] leads to the segments of [`heap`], which enters them there.
//! - [`fork`] lists the locks of the modules above it, and these ask it to register its handlers.
//! - [`error`] names the limits of [`os`], which says what limit explains a refusal.
//!
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
pub mod heap;
pub mod layout;
pub mod ledger;
pub mod numa;
pub mod os;
pub mod owners;
pub mod pages;
mod policy;
mod reason;
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
