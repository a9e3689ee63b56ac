//! Bound and checked arguments, including defaults.

use super::parameter::{Default, Kind};
use super::{Argument, Call, Error, Factory, allocator_from_expression};
use crate::allocator::Allocator;
use crate::description::Value;
use std::sync::Arc;

/// The arguments of a call, including defaults.
pub struct Arguments<'a> {
    factory: &'static Factory,
    /// One for each parameter, in normalized form.
    values: Vec<Value>,
    upstream: Option<&'a dyn Argument>,
}

impl Factory {
    /// Binds and checks the arguments of a call.
    ///
    /// # Errors
    /// The first invalid argument. The upstream is not checked, because creating it may take memory.
    pub(super) fn arguments<'a>(&'static self, call: &Call<'a>) -> Result<Arguments<'a>, Error> {
        let slots = self.bind(call)?;
        let mut upstream = None;
        let mut values = Vec::with_capacity(slots.len());
        for (parameter, slot) in self.parameters.iter().zip(slots) {
            let given = slot.map(Argument::given).transpose()?;
            if matches!(parameter.kind, Kind::Upstream(_)) {
                upstream = slot.filter(|_| given.as_ref().is_some_and(|given| !given.is_none()));
            }
            values.push(match (&given, &parameter.default) {
                (Some(given), _) => parameter.check(given)?,
                (None, Default::Is(value)) => value.clone(),
                (None, _) => Value::None, // rejected by `bind`
            });
        }
        Ok(Arguments { factory: self, values, upstream })
    }
}

impl<'a> Arguments<'a> {
    /// The value of the parameter `name`.
    pub fn value(&self, name: &str) -> &Value {
        let at = self.factory.parameters.iter().position(|parameter| parameter.name == name);
        at.map_or(&Value::None, |at| &self.values[at])
    }

    /// The number of the parameter `name`, unless it is `None`.
    pub fn number(&self, name: &str) -> Option<usize> {
        match self.value(name) {
            Value::Integer(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The text of the parameter `name`, unless it is `None`.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.value(name) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether the parameter `name` is `True`.
    pub fn is_set(&self, name: &str) -> bool {
        *self.value(name) == Value::Flag(true)
    }

    /// The factory's name for messages, like `pool()`.
    pub fn caller(&self) -> String {
        format!("{}()", self.factory.name)
    }

    /// The upstream as it was given.
    pub fn given_upstream(&self) -> Option<&'a dyn Argument> {
        self.upstream
    }

    /// The given upstream, or the default.
    ///
    /// # Errors
    /// If the given argument is not an allocator.
    pub fn upstream(&self) -> Result<Arc<dyn Allocator>, Error> {
        if let Some(given) = self.upstream {
            return given.upstream(&self.caller());
        }
        let kinds = self.factory.parameters.iter().map(|parameter| parameter.kind);
        let usual = kinds.filter_map(|kind| if let Kind::Upstream(usual) = kind { Some(usual) } else { None }).next();
        allocator_from_expression(usual.unwrap_or_default())
    }
}
