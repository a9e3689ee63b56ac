//! NumPy's handlers (NEP 49) in front of allocators: for the process, a context, a scope or one constructor.
//!
//! [`handler`] has the type, the four functions that NumPy calls, and what they tell profiles and traces. [`front`] has the
//! process's handler, which NumPy reaches through its default capsule; [`raw`] takes CPython's other requests to another one.
//! [`capsules`] are how NumPy knows all others.
//!
//! *Invariants*: the size that NumPy passes is never trusted, and every handler has a block freed by its owner, which the
//! block's address tells (law 4). A handler lives as long as any array that may call it.

pub mod capsules;
pub mod front;
pub mod handler;
pub mod raw;
