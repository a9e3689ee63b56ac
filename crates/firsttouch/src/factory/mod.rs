//! Creates allocators from expressions, for every front: the command line, C, Julia and Python.
//!
//! [`TABLE`] lists the factories, with the names, kinds and defaults of their parameters. A call is bound to the
//! parameters, each argument is checked by the kind of its parameter, and then the allocator is created. An [`Error`]
//! names the argument, its value and what is accepted.
//!
//! A front whose arguments are objects of its own implements [`Argument`] for them and calls [`build`]. The table does
//! not contain allocators that must not be created from text (`from_functions` takes addresses of code), nor those
//! that only one front has.

mod adaptors;
mod argument;
mod arguments;
mod binding;
pub mod check;
mod error;
mod pages;
mod parameter;
mod quotes;
mod recycled;
mod sources;
mod table;

use crate::allocator::{Allocator, Description};
use crate::description::Value;
use crate::expression::{self, DEEPEST, did_you_mean};
use std::sync::Arc;

pub use adaptors::set_call_sites;
pub use argument::{Argument, Given};
pub use error::Error;
pub use pages::placement;
pub use parameter::{Default, Kind, Parameter};
pub use quotes::check_quotes;
pub use recycled::upstream_of;
pub use table::{Factory, TABLE, find};

/// The arguments of a call in order, each with its name if it has one.
pub type Call<'a> = [(Option<&'a str>, &'a dyn Argument)];

/// Makes the allocator that `text` describes, such as `limited(pool(), "4 GiB")`.
///
/// # Errors
/// What is wrong with `text` and where, or why the allocator cannot be made.
///
/// # Examples
/// ```
/// let limited = firsttouch::allocator_from_expression("limited(pool(), '4 GiB')").unwrap();
/// assert!(limited.expression().ends_with(", 4294967296)"));
///
/// let error = firsttouch::allocator_from_expression("pool(decai=3)").err().unwrap();
/// assert!(error.to_string().contains("did you mean decay?"));
/// ```
pub fn allocator_from_expression(text: &str) -> Result<Arc<dyn Allocator>, Error> {
    let description = expression::parse(text)?;
    check_quotes(&description, &[])?;
    allocator_from(&description).map_err(|error| error.within(text.trim()))
}

/// Creates the allocator that `description` describes.
///
/// # Errors
/// As for [`allocator_from_expression`].
pub fn allocator_from(description: &Description) -> Result<Arc<dyn Allocator>, Error> {
    let factory = find(&description.name).ok_or_else(|| no_factory(&description.name, &[]))?;
    let arguments = description.arguments.iter().flatten();
    let call: Vec<_> = arguments.map(|each| (each.name.as_deref(), &each.value as &dyn Argument)).collect();
    build(factory, &call)
}

/// Creates an allocator by a call of its factory.
///
/// # Errors
/// What is wrong with the call, or why the allocator cannot be created.
pub fn build(factory: &'static Factory, call: &Call<'_>) -> Result<Arc<dyn Allocator>, Error> {
    let made = (factory.make)(&factory.arguments(call)?)?;
    match std::iter::successors(Some(&made), |allocator| allocator.upstream()).nth(LEVELS) {
        // Requests and frees descend level by level, and would come to the end of the thread's stack.
        Some(_) => Err(Error::Value(format!("{}() stands on more than {LEVELS} other allocators", factory.name))),
        None => Ok(made),
    }
}

/// The most allocators that may stand on each other: a few less than an expression may nest, so that theirs can be parsed.
const LEVELS: usize = DEEPEST - 4;

/// Checks an expression without creating anything: names of factories and arguments, but not values, which may only be
/// valid on another machine. Calls `other` with each name of a factory that is in `others` but not in the table.
///
/// # Errors
/// As for [`allocator_from_expression`].
pub fn check_expression(text: &str, others: &[&str], other: &mut dyn FnMut(&str)) -> Result<(), Error> {
    fn checked(description: &Description, others: &[&str], other: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let arguments = description.arguments.as_deref().unwrap_or_default();
        match find(&description.name) {
            Some(factory) => {
                let call: Vec<_> = arguments.iter().map(|each| (each.name.as_deref(), &each.value as _)).collect();
                factory.bind(&call)?;
            }
            None if others.contains(&description.name.as_ref()) => other(&description.name),
            None => return Err(no_factory(&description.name, others)),
        }
        arguments.iter().try_for_each(|each| match &each.value {
            Value::Allocator(inner) => checked(inner, others, other),
            _ => Ok(()),
        })
    }
    let description = expression::parse(text)?;
    check_quotes(&description, others)?;
    checked(&description, others, other).map_err(|error| error.within(text.trim()))
}

/// Allocators that replace the program's `malloc`, and serve NumPy's arrays only so.
const PRELOADED: [&str; 2] = ["tcmalloc", "tbbmalloc"];

/// The error for a name that neither the table nor `others` contains.
pub fn no_factory(name: &str, others: &[&str]) -> Error {
    let mut known: Vec<&str> = TABLE.iter().map(|factory| factory.name).chain(others.iter().copied()).collect();
    known.sort_unstable_by_key(|name| name.to_lowercase());
    let near = match PRELOADED.iter().find(|&&other| name.starts_with(other)) {
        Some(other) => {
            format!(" is built in ({other} is loaded by LD_PRELOAD, and measured by firsttouch compare --all)")
        }
        None => did_you_mean(name, known.iter().copied()),
    };
    let name = Value::from(name.to_owned());
    Error::NoFactory { what: format!("no allocator {name}{near}"), known: format!("there are {}", known.join(", ")) }
}
