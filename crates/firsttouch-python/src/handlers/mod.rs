//! NumPy's handlers (NEP 49) in front of allocators: for the process, a context, a scope or one constructor.
//!
//! [`handler`] has the type, the four functions that NumPy calls, and what they tell profiles and traces. The process's handler
//! is the [`front`], which NumPy reaches through its default capsule, and CPython for what is no array through [`raw`];
//! [`capsules`] are for all others.
//!
//! *Invariants*: the size that NumPy passes is never trusted, and all handlers take blocks back in the same way, by the
//! address's owner (law 4). A handler lives as long as any array that may call it.

pub mod capsules;
pub mod front;
pub mod handler;
pub mod raw;
