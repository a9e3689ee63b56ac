//! The memory behind arrays.
//!
//! The floors, from the bottom: [`layout`] and [`allocator`] say what is asked and what is given; [`os`] is the only
//! place that names a system call; [`memory`] makes what the system gives safe to hold; [`sources`] bring memory in;
//! [`adaptors`] stand on another allocator; an [`arena`] is scratch memory for Rust; [`scratch`] memory is used again when
//! its scope ends; a [`gauge`] counts what is asked for, and a [`trace`] records it. An arrow never runs back up, and
//! nothing here knows of Python.

pub mod adaptors;
pub mod allocator;
pub mod arena;
pub mod description;
pub mod failure;
pub mod gauge;
pub mod layout;
pub mod memory;
pub mod os;
pub mod owners;
pub mod scratch;
pub mod size;
pub mod sources;
pub mod stats;
pub mod trace;

pub use allocator::{AllocError, Allocator, Block, Description, Request};
pub use stats::Stats;
