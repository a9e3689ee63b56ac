//! Creates allocators from calls of what [`spec`] declares, for every front: the command line, C, Julia and Python.
//!
//! [`make`] finds the option of each argument, checks it by the kind of that option, and creates the allocator. An
//! [`Error`] names the argument, its value and what is accepted.
//!
//! The declaration does not contain allocators that must not be created from text (`from_functions` takes addresses of
//! code), nor those that only one front has, which hands them over as [`Value::Existing`].

use crate::adaptors::AUTO;
use crate::allocator::Allocator;
use crate::description::{Argument, Description, Value, quoted};
use crate::expression::{self, DEEPEST, did_you_mean};
use crate::layout::{MAX_SIZE, checked_align};
use crate::numa::{Policy, Topology};
use crate::pages::placement::Page;
use crate::size;
use crate::spec::{self, OptionKind, Spec};
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
    allocator_from(&expression::parse(text)?)
}

/// Creates the allocator that `description` describes.
///
/// # Errors
/// As for [`allocator_from_expression`].
pub fn allocator_from(description: &Description) -> Result<Arc<dyn Allocator>, Error> {
    let name = &description.name;
    let unknown = || {
        let mut known: Vec<&str> = spec::all().map(|spec| spec.name).collect();
        known.sort_unstable();
        let near = did_you_mean(name, known.iter().copied());
        Error::Value(format!("no allocator {}{near}: there are {}", quoted(name, usize::MAX), known.join(", ")))
    };
    make(Spec::find(name).ok_or_else(unknown)?, description.arguments())
}

// ---- A call ---------------------------------------------------------------------------------------------------------

/// The most allocators that may stand on each other: a few less than an expression may nest, so that theirs can be parsed.
const LEVELS: usize = DEEPEST - 4;

/// Checks the arguments of a call, and creates the allocator.
///
/// # Errors
/// The first invalid argument, or why it cannot be created. The upstream comes last, because creating it may take memory.
pub fn make(spec: &'static Spec, call: &[Argument]) -> Result<Arc<dyn Allocator>, Error> {
    let refused = |why: String| {
        let names: Vec<&str> = spec.options.iter().map(|option| option.name).collect();
        let takes = if names.is_empty() { "nothing".into() } else { names.join(", ") };
        Error::Type(format!("{}() {why}: it takes {takes}", spec.name))
    };
    let mut given = vec![None; spec.options.len()];
    for (at, Argument { name, value }) in call.iter().enumerate() {
        let place = match name {
            None if at < spec.positional => at,
            None => return Err(refused("got too many positional arguments".into())),
            Some(name) => spec.options.iter().position(|option| option.name == name).ok_or_else(|| {
                let near = did_you_mean(name, spec.options.iter().map(|option| option.name));
                refused(format!("takes no {name}{near}"))
            })?,
        };
        let option = &spec.options[place];
        let optional = matches!(option.default, Some(Value::None));
        if given[place].replace(option.kind.check(option.name, value, optional)?).is_some() {
            return Err(refused(format!("got multiple values for argument '{}'", option.name)));
        }
    }
    let values = given.into_iter().zip(spec.options).map(|(value, option)| match (value, &option.default) {
        (Some(value), _) => Ok(value),
        (None, Some(value)) => Ok(value.clone()),
        (None, None) => Err(refused(format!("is missing the argument '{}'", option.name))),
    });
    let made = spec.make(&Arguments { spec, values: values.collect::<Result<_, _>>()? })?;
    match std::iter::successors(Some(&made), |allocator| allocator.upstream()).nth(LEVELS) {
        // Requests and frees descend level by level, and would come to the end of the thread's stack.
        Some(_) => Err(Error::Value(format!("{}() stands on more than {LEVELS} other allocators", spec.name))),
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

    /// The upstream that is given, or the default.
    ///
    /// # Errors
    /// If what is given is not an allocator.
    pub fn upstream(&self) -> Result<Arc<dyn Allocator>, Error> {
        let default = self.spec.options.iter().find_map(|option| match option.kind {
            OptionKind::Upstream(default) => Some(default),
            _ => None,
        });
        match self.value("upstream") {
            Value::None => allocator_from_expression(default.unwrap_or_default()),
            Value::Existing(made) => Ok(made.clone()),
            Value::Allocator(description) => allocator_from(description),
            Value::Text(text) => allocator_from_expression(text),
            value => {
                let (name, kind, shown) = (self.spec.name, value.kind(), value.shown());
                Err(Error::Type(format!("{name}() takes an allocator, like pool(), not {kind}: {shown}")))
            }
        }
    }
}

// ---- What each kind of option accepts --------------------------------------------------------------------------------

/// The most threads that may prefault.
const THREADS: i128 = 1024;

impl OptionKind {
    /// The normalized value of an argument for the option `name`, which may be `None` if it is `optional`.
    ///
    /// # Errors
    /// The argument, and what is accepted.
    pub fn check(self, name: &str, value: &Value, optional: bool) -> Result<Value, Error> {
        // A bare word is a text, except where it names an allocator: a shell removes the quotes of `pages(huge="thp")`.
        let word = match value {
            Value::Allocator(inner) if inner.arguments().is_empty() => Some(Value::Text(inner.name.clone())),
            _ => None,
        };
        let value = word.as_ref().filter(|_| !matches!(self, Self::Upstream(_))).unwrap_or(value);
        let wanted = || self.wanted(optional);
        let wrong = |why: String| Error::Value(format!("{name}={}: {why}", value.shown()));
        let found = match (self, value) {
            (Self::Upstream(_), _) => Some(value.clone()), // it is created last
            (Self::Byte | Self::Seconds, Value::None) => Some(Value::None),
            (_, Value::None) if optional => Some(Value::None),
            (Self::Budget, Value::Text(text)) if text == AUTO => Some(value.clone()),
            (Self::Alignment | Self::Size | Self::Budget, Value::Text(text)) => {
                self.bytes(size::parse(text).map_err(wrong)?)
            }
            (Self::Alignment | Self::Size | Self::Budget, Value::Integer(number)) => {
                usize::try_from(*number).ok().and_then(|bytes| self.bytes(bytes))
            }
            (Self::Alignment | Self::Size | Self::Budget, Value::Other { kind, .. }) if kind == "int" => None,
            (Self::Byte, Value::Integer(number)) => (0..=255).contains(number).then(|| value.clone()),
            (Self::Flag, Value::Flag(_)) => Some(value.clone()),
            (Self::Seconds, Value::Integer(number)) => seconds(*number as f64),
            (Self::Seconds, Value::Float(number)) => seconds(*number),
            (Self::Word(words), Value::Text(text)) => words.iter().find(|&word| word == text).map(|&word| word.into()),
            (Self::PageSize, Value::Text(text)) => Some(Page::parse(text).map_err(wrong)?.value()),
            (Self::PageSize, Value::Flag(false)) => Some(Value::Flag(false)),
            (Self::PageSize, Value::Flag(true) | Value::Integer(_)) => None,
            (Self::Threads, Value::Flag(_)) => Some(value.clone()),
            (Self::Threads, Value::Integer(number)) => (1..=THREADS).contains(number).then(|| value.clone()),
            (Self::Policy, Value::Text(text)) => Some(policy(text).map_err(wrong)?),
            (Self::Policy, Value::Integer(node)) => Some(policy(&node.to_string()).map_err(wrong)?),
            _ => {
                let (shown, kind) = (value.shown(), value.kind());
                return Err(Error::Type(format!("{name}={shown} is {kind}: give {}", wanted())));
            }
        };
        found.ok_or_else(|| wrong(format!("give {}", wanted())))
    }

    /// What is accepted, for messages.
    fn wanted(self, optional: bool) -> String {
        match self {
            Self::Upstream(_) => "an allocator, like pool()",
            Self::Alignment => "a power of two from 1 byte to 1 GiB, or text like \"4 KiB\"",
            Self::Size if optional => "a number of bytes, 0 to 8 EiB, text like \"4 GiB\", or None",
            Self::Size => "a number of bytes, 0 to 8 EiB, or text like \"4 GiB\"",
            Self::Budget => "a number of bytes, 1 to 8 EiB, text like \"4 GiB\", or \"auto\"",
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

    /// A number of bytes, if the option takes that many.
    fn bytes(self, bytes: usize) -> Option<Value> {
        let suits = match self {
            Self::Alignment => checked_align(bytes).is_ok(),
            Self::Budget => (1..=MAX_SIZE).contains(&bytes),
            _ => bytes <= MAX_SIZE,
        };
        suits.then(|| bytes.into())
    }
}

fn seconds(number: f64) -> Option<Value> {
    Duration::try_from_secs_f64(number).ok().map(|_| Value::Float(number))
}

/// The canonical text of a policy of this machine.
fn policy(text: &str) -> Result<Value, String> {
    let policy = Policy::parse(text)?;
    policy.check(&Topology::read())?;
    Ok(policy.to_string().into())
}

/// Why a call creates no allocator. Fronts convert each kind to an error of their language.
#[derive(Debug)]
pub enum Error {
    /// The arguments do not match the options, or one is of the wrong type.
    Type(String),
    /// An argument or the expression itself has the right type but an invalid value.
    Value(String),
    /// This build lacks the allocator.
    Unsupported(String),
}

impl From<String> for Error {
    fn from(message: String) -> Self {
        Self::Value(message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Type(message) | Self::Value(message) | Self::Unsupported(message)) = self;
        f.write_str(message)
    }
}

impl std::error::Error for Error {}
