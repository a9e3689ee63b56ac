//! The memory behind arrays.
//!
//! The floors, from the bottom: [`layout`] and [`allocator`] say what is asked and what is given; [`os`] is the only
//! place that names a system call; [`vm`], [`heap`], [`numa`], [`pages`], [`residency`] and [`shared`] make what the system gives safe to hold; [`sources`] bring memory in;
//! [`adaptors`] stand on another allocator; an [`arena`] is scratch memory for Rust; [`scratch`] memory is used again when
//! its scope ends. A [`factory`] makes allocators from expressions. An arrow never runs back up, and nothing here knows of
//! Python.

pub mod adaptors;
pub mod allocator;
pub mod arena;
pub mod description;
pub mod expression;
pub mod factory;
pub mod failure;
pub mod heap;
pub mod layout;
pub mod numa;
pub mod os;
pub mod owners;
pub mod pages;
mod reason;
pub mod residency;
pub mod scratch;
pub mod shared;
pub mod size;
pub mod sources;
pub mod stats;
#[doc(hidden)]
pub mod sync;
pub mod vm;

pub use allocator::{AllocError, Allocator, Block, Description, Request};
pub use factory::allocator_from_expression;
pub use stats::Stats;
