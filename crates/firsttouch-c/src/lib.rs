//! The C interface. `include/firsttouch.h` is its documentation; each function here does what is said there.
//!
//! From the bottom: [`error`] (status codes and messages), [`allocator`] (handles made from text, and their blocks),
//! [`pages`] (placement, receipts, residency), [`scratch`].

#![allow(unsafe_code)] // Safety: the promises of callers stand in the header, and at each function.
#![allow(clippy::missing_safety_doc)] // they stand in the header

mod allocator;
mod error;
mod pages;
mod scratch;
