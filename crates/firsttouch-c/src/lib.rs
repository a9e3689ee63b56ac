//! The C interface. `include/firsttouch.h` is its documentation; each function here does what is said there.
//!
//! The rooms, from the bottom: [`error`] (status codes and messages) and [`options`] (structures that begin with their
//! size), [`allocator`] (handles), [`constructors`], [`block`], [`scratch`], [`placement`], [`residency`], [`statistics`].

#![allow(unsafe_code)] // Safety: the promises of callers stand in the header, and at each function.
#![allow(clippy::missing_safety_doc)] // they stand in the header

mod allocator;
mod block;
mod constructors;
mod error;
mod options;
mod placement;
mod range;
mod residency;
mod scratch;
mod statistics;
