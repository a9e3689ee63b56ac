//! Binds the arguments of a call to parameters.

use super::parameter::{Default, Kind};
use super::{Argument, Call, Error, Factory, Given};
use crate::adaptors::AUTO;
use crate::expression::did_you_mean;

impl Factory {
    /// The argument for each parameter.
    ///
    /// # Errors
    /// If there are too many arguments, too few, or one whose name is unknown.
    pub(super) fn bind<'a>(&'static self, call: &Call<'a>) -> Result<Vec<Option<&'a dyn Argument>>, Error> {
        let mut slots = vec![None; self.parameters.len()];
        for (at, &(name, argument)) in call.iter().enumerate() {
            let slot = match name {
                None if at < self.positional => at,
                None => return Err(self.refuse("too many positional arguments")),
                Some(name) => self.position(name)?,
            };
            if slots[slot].replace(argument).is_some() {
                let name = self.parameters[slot].name;
                return Err(self.refuse(&format!("multiple values for argument '{name}'")));
            }
        }
        self.move_budget(&mut slots)?;
        for (parameter, slot) in self.parameters.iter().zip(&slots) {
            match parameter.default {
                Default::Required if slot.is_none() => {
                    return Err(self.refuse(&format!("missing a required argument: '{}'", parameter.name)));
                }
                Default::Needed(what)
                    if slot.map_or(Ok(true), |given| given.given().map(|given| given.is_none()))? =>
                {
                    return Err(Error::Type(format!("{}() needs {what}", self.name)));
                }
                _ => {}
            }
        }
        Ok(slots)
    }

    /// `limited("auto")` gives a budget in the place of the upstream.
    fn move_budget(&self, slots: &mut [Option<&dyn Argument>]) -> Result<(), Error> {
        let Some(budget) = self.parameters.iter().position(|parameter| parameter.kind == Kind::Budget) else {
            return Ok(());
        };
        let given = |slot: Option<&dyn Argument>| slot.map(Argument::given).transpose();
        if given(slots[0])? == Some(Given::Value(AUTO.into())) && given(slots[budget])?.is_none_or(|it| it.is_none()) {
            slots.swap(0, budget);
        }
        Ok(())
    }

    fn position(&self, name: &str) -> Result<usize, Error> {
        self.parameters.iter().position(|parameter| parameter.name == name).ok_or_else(|| {
            let near = did_you_mean(name, self.parameters.iter().map(|parameter| parameter.name));
            Error::Call(format!("{}() takes no {name}{near}: it takes {}", self.name, self.takes()))
        })
    }

    fn refuse(&self, why: &str) -> Error {
        Error::Call(format!("{}(): {why}; it takes {}", self.name, self.takes()))
    }

    fn takes(&self) -> String {
        let names: Vec<&str> = self.parameters.iter().map(|parameter| parameter.name).collect();
        if names.is_empty() { "nothing".into() } else { names.join(", ") }
    }
}
