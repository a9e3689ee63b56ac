//! Allocators as Python objects: the class, the functions and expressions that make them, and introspection.

pub mod allocator;
pub mod factories;
