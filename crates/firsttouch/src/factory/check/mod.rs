//! Checks of arguments: messages name the argument, its value and what is accepted.

mod numbers;
mod placement;
mod words;

use super::{Error, Given};

pub use numbers::{address, alignment, budget, byte, function, seconds, size};
pub use placement::{page_sizes, policy, threads};
pub use words::{flag, one_of};

/// The error for an argument whose type is wrong.
fn wrong_type(name: &str, given: &Given, wanted: &str) -> Error {
    Error::Type(format!("{name}={} is {}: give {wanted}", given.shown(), given.kind()))
}
