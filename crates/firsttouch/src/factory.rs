//! Creates allocators from calls of what [`spec`] declares, for every front: the command line, C, Julia and Python.
//!
//! [`make`] finds the option of each argument, checks it by the kind of that option, and creates the allocator. An
//! [`Error`] names the argument, its value and what is accepted.
//!
//! The declaration does not contain allocators that must not be created from text (`from_functions` takes addresses of
//! code), nor those that only one front has, which hands them over as [`Value::Made`].

use crate::adaptors::AUTO;
use crate::allocator::Allocator;
use crate::description::{Argument, Description, Value, quoted};
use crate::expression::{self, DEEPEST, did_you_mean};
use crate::layout::{MAX_SIZE, checked_align};
use crate::numa::{Policy, Topology};
use crate::pages::placement::Page;
use crate::size;
use crate::spec::{self, DefaultValue, Opt, OptionKind, Spec};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Makes the allocator that `text` describes, such as `limited(pool(), "4 GiB")`.
///
/// # Errors
/// What is wrong with `text` and where, or why the allocator cannot be made.
///
/// # Examples
/// ```
/// let limited = firsttouch::allocator_from_expression("limited(pool(), '4 GiB')").unwrap();
/// assert!(limited.expression().ends_with(", '4 GiB')"));
///
/// let error = firsttouch::allocator_from_expression("pool(decai=3)").err().unwrap();
/// assert!(error.to_string().contains("did you mean decay?"));
/// ```
pub fn allocator_from_expression(text: &str) -> Result<Arc<dyn Allocator>, Error> {
    allocator_from(&expression::parse(text)?).map_err(|error| error.within(text.trim()))
}

/// Creates the allocator that `description` describes.
///
/// # Errors
/// As for [`allocator_from_expression`].
pub fn allocator_from(description: &Description) -> Result<Arc<dyn Allocator>, Error> {
    let spec = Spec::find(&description.name).ok_or_else(|| no_allocator(&description.name))?;
    make(spec, description.arguments())
}

/// The error for a name that is not declared.
fn no_allocator(name: &str) -> Error {
    let mut known: Vec<&str> = spec::all().map(|spec| spec.name).collect();
    known.sort_unstable_by_key(|name| name.to_lowercase());
    let near = did_you_mean(name, known.iter().copied());
    let name = Value::from(name.to_owned());
    Error::NoAllocator { what: format!("no allocator {name}{near}"), known: format!("there are {}", known.join(", ")) }
}

// ---- Which option each argument is for ------------------------------------------------------------------------------

impl Spec {
    /// For each option, the place of its argument in the call.
    fn slots(&self, call: &[Argument]) -> Result<Vec<Option<usize>>, Error> {
        let mut slots = vec![None; self.options.len()];
        for (at, Argument { name, value }) in call.iter().enumerate() {
            let slot = match name {
                None if at < self.positional => at,
                None => return Err(self.refuse("too many positional arguments")),
                Some(name) => self.position(name)?,
            };
            let option = &self.options[slot];
            if slots[slot].replace(at).is_some() {
                return Err(self.refuse(&format!("multiple values for argument '{}'", option.name)));
            }
            option.check_quotes(value, name.is_some())?;
        }
        let given = |slot: Option<usize>| slot.map(|at| &call[at].value).filter(|&value| *value != Value::None);
        if let Some(budget) = self.options.iter().position(|option| option.kind == OptionKind::Budget)
            && given(slots[0]) == Some(&Value::from(AUTO))
            && given(slots[budget]).is_none()
        {
            slots.swap(0, budget); // `limited("auto")` gives a budget in the place of the upstream
        }
        for (option, &slot) in self.options.iter().zip(&slots) {
            match option.default {
                DefaultValue::Required if slot.is_none() => {
                    return Err(self.refuse(&format!("missing a required argument: '{}'", option.name)));
                }
                DefaultValue::Needed(what) if given(slot).is_none() => {
                    return Err(Error::Type(format!("{}() needs {what}", self.name)));
                }
                _ => {}
            }
        }
        Ok(slots)
    }

    fn position(&self, name: &str) -> Result<usize, Error> {
        self.options.iter().position(|option| option.name == name).ok_or_else(|| {
            let near = did_you_mean(name, self.options.iter().map(|option| option.name));
            Error::Call(format!("{}() takes no {name}{near}: it takes {}", self.name, self.takes()))
        })
    }

    fn refuse(&self, why: &str) -> Error {
        Error::Call(format!("{}(): {why}; it takes {}", self.name, self.takes()))
    }

    fn takes(&self) -> String {
        let names: Vec<&str> = self.options.iter().map(|option| option.name).collect();
        if names.is_empty() { "nothing".into() } else { names.join(", ") }
    }
}

/// The most allocators that may stand on each other: a few less than an expression may nest, so that theirs can be parsed.
const LEVELS: usize = DEEPEST - 4;

/// Checks the arguments of a call, and creates the allocator.
///
/// # Errors
/// The first invalid argument, or why it cannot be created. The upstream comes last, because creating it may take memory.
pub fn make(spec: &'static Spec, call: &[Argument]) -> Result<Arc<dyn Allocator>, Error> {
    let slots = spec.slots(call)?;
    let values = spec.options.iter().zip(&slots).map(|(option, slot)| match (slot, &option.default) {
        (Some(at), _) => option.check(&call[*at].value),
        (None, DefaultValue::Is(value)) => Ok(value.clone()),
        (None, _) => Ok(Value::None), // rejected by `slots`
    });
    let arguments = Arguments { spec, values: values.collect::<Result<_, _>>()? };
    let made = spec.make(&arguments)?;
    match std::iter::successors(Some(&made), |allocator| allocator.upstream()).nth(LEVELS) {
        // Requests and frees descend level by level, and would come to the end of the thread's stack.
        Some(_) => Err(Error::Value(format!("{} stands on more than {LEVELS} other allocators", arguments.caller()))),
        None => Ok(made),
    }
}

/// The arguments of a call, checked, with defaults.
pub struct Arguments {
    spec: &'static Spec,
    /// One for each option, in normalized form; the upstream as it was given.
    values: Vec<Value>,
}

impl Arguments {
    /// The value of the option `name`.
    pub fn value(&self, name: &str) -> &Value {
        let at = self.spec.options.iter().position(|option| option.name == name);
        at.map_or(&Value::None, |at| &self.values[at])
    }

    /// The number of the option `name`, unless it is `None`.
    pub fn number(&self, name: &str) -> Option<usize> {
        match self.value(name) {
            Value::Integer(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The text of the option `name`, unless it is `None`.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.value(name) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether the option `name` is `True`.
    pub fn is_set(&self, name: &str) -> bool {
        *self.value(name) == Value::Flag(true)
    }

    /// The allocator's name.
    pub fn name(&self) -> &'static str {
        self.spec.name
    }

    /// The allocator's name for messages, like `pool()`.
    fn caller(&self) -> String {
        format!("{}()", self.spec.name)
    }

    /// The upstream that is given, or the usual one.
    ///
    /// # Errors
    /// If what is given is not an allocator.
    pub fn upstream(&self) -> Result<Arc<dyn Allocator>, Error> {
        let usual = self.spec.options.iter().find_map(|option| match option.kind {
            OptionKind::Upstream(usual) => Some(usual),
            _ => None,
        });
        match self.value("upstream") {
            Value::None => allocator_from_expression(usual.unwrap_or_default()),
            Value::Made(made) => Ok(made.0.clone()),
            Value::Allocator(description) => allocator_from(description),
            Value::Text(text) => allocator_from_expression(text),
            value => {
                let (caller, kind, shown) = (self.caller(), value.kind(), value.shown());
                Err(Error::Type(format!("{caller} takes an allocator, like pool(), not {kind}: {shown}")))
            }
        }
    }
}

// ---- What each kind of option accepts --------------------------------------------------------------------------------

/// The most threads that may prefault.
const THREADS: i128 = 1024;

/// Why a value is refused.
enum Wrong {
    /// It is of another type.
    Type,
    /// Of the right type, it is not what is wanted; this follows the value in the message.
    Value(String),
    /// The same, and this says what is wanted, too.
    Said(String),
}

impl Opt {
    /// The normalized value of an argument.
    fn check(&self, value: &Value) -> Result<Value, Error> {
        self.kind.check(self.name, value, matches!(self.default, DefaultValue::Is(Value::None)))
    }

    /// Rejects a bare word in the place of a text, if no allocator has its name, as in `pages(huge=thp)`: the shell
    /// removes quotes where the expression itself is not quoted.
    fn check_quotes(&self, value: &Value, is_named: bool) -> Result<(), Error> {
        let texts = matches!(
            self.kind,
            OptionKind::Word(_) | OptionKind::PageSize | OptionKind::Policy | OptionKind::Size | OptionKind::Budget
        );
        match value {
            Value::Allocator(inner) if texts && inner.arguments().is_empty() && Spec::find(&inner.name).is_none() => {
                let (word, name) = (&inner.name, if is_named { format!("{}=", self.name) } else { String::new() });
                Err(Error::Value(format!(
                    "{word} is not in quotes: write {name}\"{word}\", and the whole expression in '...' in a shell"
                )))
            }
            _ => Ok(()),
        }
    }
}

impl OptionKind {
    /// The normalized value of an argument for the option `name`, which may be `None` if it is `optional`.
    ///
    /// # Errors
    /// The argument, and what is accepted.
    pub fn check(self, name: &str, value: &Value, optional: bool) -> Result<Value, Error> {
        if optional && *value == Value::None {
            return Ok(Value::None);
        }
        let given = || format!("{name}={}", value.shown());
        let wanted = || self.wanted() + if optional && matches!(self, Self::Size) { ", or None" } else { "" };
        self.accept(value).map_err(|wrong| match wrong {
            Wrong::Type => Error::Type(format!("{} is {}: give {}", given(), value.kind(), wanted())),
            Wrong::Value(why) => Error::Value(format!("{}{why}: give {}", given(), wanted())),
            Wrong::Said(why) => Error::Value(format!("{}: {why}", given())),
        })
    }

    /// What is accepted, for messages.
    fn wanted(self) -> String {
        match self {
            Self::Upstream(_) => "an allocator, like pool()",
            Self::Alignment => "a power of two from 1 byte to 1 GiB, or text like \"4 KiB\"",
            Self::Size => "a number of bytes, 0 or more, or text like \"4 GiB\"",
            Self::Budget => "a number of bytes, 1 or more, text like \"4 GiB\", or \"auto\"",
            Self::Byte => "a byte, 0 to 255, or None to leave memory as it is",
            Self::Flag => "True or False",
            Self::Seconds => "seconds, 0 or more, or None for never",
            Self::Word(words) => {
                return words.iter().map(|&word| Value::from(word).to_string()).collect::<Vec<_>>().join(" or ");
            }
            Self::PageSize => "False, \"thp\" (transparent huge pages) or a size of explicit ones, like \"2M\"",
            Self::Threads => "False, True, or a number of threads from 1 to 1024",
            Self::Policy => "a node's number, or text like \"bind:0-1\"",
        }
        .into()
    }

    fn accept(self, value: &Value) -> Result<Value, Wrong> {
        match (self, value) {
            (Self::Upstream(_), _) => Ok(value.clone()), // it is created last
            (Self::Budget, Value::Text(text)) if text == AUTO => Ok(value.clone()),
            (Self::Alignment | Self::Size | Self::Budget, _) => {
                let bytes = size(value)?;
                match self {
                    Self::Alignment if bytes == 0 || checked_align(bytes).is_err() => Err(Wrong::Value(String::new())),
                    Self::Budget if bytes == 0 => Err(Wrong::Value(" would serve no array".into())),
                    _ => Ok(bytes.into()),
                }
            }
            (Self::Byte, Value::None | Value::Integer(0..=255)) | (Self::Flag, Value::Flag(_)) => Ok(value.clone()),
            (Self::Byte, Value::Integer(_)) => Err(Wrong::Value(" is not a byte".into())),
            (Self::Seconds, Value::None) => Ok(Value::None),
            (Self::Seconds, Value::Integer(number)) => seconds(*number as f64),
            (Self::Seconds, Value::Float(number)) => seconds(*number),
            (Self::Word(words), Value::Text(text)) => {
                let found = words.iter().find(|&word| word == text).map(|&word| Value::from(word));
                found.ok_or_else(|| Wrong::Value(did_you_mean(text, words.iter().copied())))
            }
            (Self::PageSize, _) => page_size(value),
            (Self::Threads, Value::Flag(_) | Value::Integer(1..=THREADS)) => Ok(value.clone()),
            (Self::Threads, Value::Integer(_)) => Err(Wrong::Value(String::new())),
            (Self::Policy, Value::Text(text)) => policy(text),
            (Self::Policy, Value::Integer(node)) => policy(&node.to_string()),
            _ => Err(Wrong::Type),
        }
    }
}

/// A number of bytes, given as a number or as text.
fn size(value: &Value) -> Result<usize, Wrong> {
    match value {
        Value::Integer(number @ 0..) if *number <= MAX_SIZE as i128 => Ok(*number as usize),
        Value::Integer(0..) => Err(Wrong::Value(" is larger than any address space".into())),
        Value::Integer(_) => Err(Wrong::Value(" is not a number of bytes".into())),
        Value::Other { kind, .. } if kind == "int" => Err(Wrong::Value(" is larger than any address space".into())),
        Value::Text(text) => size::parse(text).map_err(Wrong::Said),
        _ => Err(Wrong::Type),
    }
}

fn seconds(number: f64) -> Result<Value, Wrong> {
    match Duration::try_from_secs_f64(number) {
        Ok(_) => Ok(Value::Float(number)),
        Err(_) => Err(Wrong::Value(" is not a time".into())),
    }
}

/// `False`, or a page size of this machine.
fn page_size(value: &Value) -> Result<Value, Wrong> {
    match value {
        Value::Flag(false) => Ok(Value::Flag(false)),
        Value::Text(text) if !text.is_empty() => {
            Page::parse(text).map(|page| page.value()).map_err(|why| Wrong::Value(format!(" ({why})")))
        }
        Value::Text(_) | Value::Flag(_) | Value::Integer(_) => Err(Wrong::Value(String::new())),
        _ => Err(Wrong::Type),
    }
}

/// The canonical text of a policy of this machine.
fn policy(text: &str) -> Result<Value, Wrong> {
    let found = Policy::parse(text).and_then(|policy| policy.check(&Topology::read()).map(|()| policy));
    found.map(|policy| policy.to_string().into()).map_err(Wrong::Said)
}

// ---- Errors ------------------------------------------------------------------------------------------------------

/// Why a call creates no allocator. Fronts convert each kind to an error of their language.
#[derive(Debug)]
pub enum Error {
    /// There is no allocator of this name.
    NoAllocator {
        /// The name, and the nearest known one.
        what: String,
        /// The known names.
        known: String,
    },
    /// The arguments do not match the options.
    Call(String),
    /// An argument is of the wrong type.
    Type(String),
    /// An argument or the expression itself has the right type but an invalid value.
    Value(String),
    /// This build lacks the allocator.
    Unsupported(String),
}

impl Error {
    /// The same, with the expression that contains the call.
    #[must_use]
    pub fn within(self, text: &str) -> Self {
        let text = quoted(text, expression::SHOWN);
        match self {
            Self::NoAllocator { what, known } => Self::Value(format!("{what} in {text}: {known}")),
            Self::Call(message) => Self::Type(format!("{message} (in {text})")),
            other => other,
        }
    }
}

impl From<String> for Error {
    fn from(message: String) -> Self {
        Self::Value(message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAllocator { what, known } => write!(f, "{what}: {known}"),
            Self::Call(message) | Self::Type(message) | Self::Value(message) | Self::Unsupported(message) => {
                f.write_str(message)
            }
        }
    }
}

impl std::error::Error for Error {}
