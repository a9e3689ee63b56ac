//! The parameters of factories.

use super::{Error, Given, check};
use crate::description::Value;

/// A parameter of a factory.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What holds where it is not given.
    pub default: Default,
}

/// What holds where a parameter is not given.
#[derive(Debug)]
pub enum Default {
    /// It must be given.
    Required,
    /// It must be given; what to say where it is missing.
    Needed(&'static str),
    /// This value.
    Is(Value),
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Another allocator; by default this one. Nothing is made where the default is empty.
    Upstream(&'static str),
    /// Bytes that an alignment may be a multiple of.
    Alignment,
    /// Bytes, as a number or as text.
    Size,
    /// The same, more than none.
    Budget,
    /// A byte, or `None`.
    Byte,
    /// Yes or no.
    Flag,
    /// Seconds, or `None`.
    Seconds,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// Page sizes, in the order of preference.
    PageSizes,
    /// No, yes, or a number of threads.
    Threads,
    /// A NUMA policy.
    Policy,
}

impl Parameter {
    /// The value that the parameter takes for `given`, in its usual form.
    pub(super) fn check(&self, given: &Given) -> Result<Value, Error> {
        let (name, optional) = (self.name, matches!(self.default, Default::Is(Value::None)));
        if optional && given.is_none() {
            return Ok(Value::None);
        }
        match self.kind {
            Kind::Upstream(_) => Ok(Value::None), // it is made last
            Kind::Alignment => check::alignment(name, given).map(Value::from),
            Kind::Size => check::size(name, given, optional).map(Value::from),
            Kind::Budget => check::budget(name, given).map(Value::from),
            Kind::Byte => check::byte(name, given).map(|byte| byte.map(usize::from).into()),
            Kind::Flag => check::flag(name, given).map(Value::from),
            Kind::Seconds => check::seconds(name, given),
            Kind::Word(words) => check::one_of(name, given, words).map(Value::from),
            Kind::PageSizes => check::page_sizes(name, given),
            Kind::Threads => check::threads(name, given),
            Kind::Policy => check::policy(name, given).map(|policy| policy.to_string().into()),
        }
    }
}
