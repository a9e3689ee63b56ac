//! Array constructors on an allocator.

pub mod functions;
mod make;
mod methods;
