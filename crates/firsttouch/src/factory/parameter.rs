//! The parameters of factories.

use super::{Error, Given, check};
use crate::description::Value;

/// A parameter of a factory.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The kind of its argument.
    pub kind: Kind,
    /// Its default.
    pub default: Default,
}

/// The default of a parameter.
#[derive(Debug)]
pub enum Default {
    /// None: it must be given.
    Required,
    /// None: it must be given, as the message explains.
    Needed(&'static str),
    /// This value.
    Is(Value),
}

/// The kind of a parameter's argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Another allocator; by default this one. Nothing is created if the default is empty.
    Upstream(&'static str),
    /// An alignment in bytes.
    Alignment,
    /// A size in bytes, as a number or as text.
    Size,
    /// The same, at least one byte, or `auto`.
    Budget,
    /// A byte, or `None`.
    Byte,
    /// Yes or no.
    Flag,
    /// Seconds, or `None`.
    Seconds,
    /// One of a few keywords.
    Word(&'static [&'static str]),
    /// Page sizes, in the order of preference.
    PageSizes,
    /// No, yes, or a number of threads.
    Threads,
    /// A NUMA policy.
    Policy,
}

impl Parameter {
    /// The normalized value for `given`.
    pub(super) fn check(&self, given: &Given) -> Result<Value, Error> {
        let (name, optional) = (self.name, matches!(self.default, Default::Is(Value::None)));
        if optional && given.is_none() {
            return Ok(Value::None);
        }
        match self.kind {
            Kind::Upstream(_) => Ok(Value::None), // it is created last
            Kind::Alignment => check::alignment(name, given).map(Value::from),
            Kind::Size => check::size(name, given, optional).map(Value::from),
            Kind::Budget => check::budget(name, given),
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
