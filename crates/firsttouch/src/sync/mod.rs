//! Locks that can be held around a fork and need no allocator.

#![allow(unsafe_code)] // Safety: a lock's value is reached only by its holder.

pub(crate) mod brief_lock;
pub(crate) mod lock;
