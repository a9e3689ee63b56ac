//! Creates allocators from calls of what [`spec`](crate::spec) declares, for every front: the command line, C, Julia and
//! Python.
//!
//! A call is bound to the options, each argument is checked by the kind of its option, and then the allocator is
//! created. An [`Error`] names the argument, its value and what is accepted.
//!
//! A front whose arguments are objects of its own implements [`Argument`] for them and calls [`build`]. The declaration
//! does not contain allocators that must not be created from text (`from_functions` takes addresses of code), nor those
//! that only one front has.

use crate::adaptors::AUTO;
use crate::allocator::{Allocator, Description};
use crate::description::{Value, quoted};
use crate::error::AllocError;
use crate::expression::{self, DEEPEST, ParseError, did_you_mean};
use crate::layout::{MAX_SIZE, checked_align};
use crate::numa::policy::Policy;
use crate::numa::topology::Topology;
use crate::pages::placement::Page;
use crate::size;
use crate::spec::{ALLOCATORS, Default, Kind, Opt, Spec};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

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
/// assert!(limited.expression().ends_with(", '4 GiB')"));
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
    let spec = Spec::find(&description.name).ok_or_else(|| no_allocator(&description.name, &[]))?;
    let arguments = description.arguments.iter().flatten();
    let call: Vec<_> = arguments.map(|each| (each.name.as_deref(), &each.value as &dyn Argument)).collect();
    build(spec, &call)
}

/// The most allocators that may stand on each other: a few less than an expression may nest, so that theirs can be parsed.
const LEVELS: usize = DEEPEST - 4;

/// Creates an allocator from arguments.
///
/// # Errors
/// What is wrong with the call, or why the allocator cannot be created.
pub fn build(spec: &'static Spec, call: &Call<'_>) -> Result<Arc<dyn Allocator>, Error> {
    let made = (spec.make)(&Arguments::bind(spec, call)?)?;
    match std::iter::successors(Some(&made), |allocator| allocator.upstream()).nth(LEVELS) {
        // Requests and frees descend level by level, and would come to the end of the thread's stack.
        Some(_) => Err(Error::Value(format!("{}() stands on more than {LEVELS} other allocators", spec.name))),
        None => Ok(made),
    }
}

/// Checks an expression without creating anything: names of allocators and arguments, but not values, which may only be
/// valid on another machine. Calls `other` with each name of an allocator that is in `others` but not declared.
///
/// # Errors
/// As for [`allocator_from_expression`].
pub fn check_expression(text: &str, others: &[&str], other: &mut dyn FnMut(&str)) -> Result<(), Error> {
    fn checked(description: &Description, others: &[&str], other: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let arguments = description.arguments.as_deref().unwrap_or_default();
        match Spec::find(&description.name) {
            Some(spec) => {
                let call: Vec<_> = arguments.iter().map(|each| (each.name.as_deref(), &each.value as _)).collect();
                spec.slots(&call)?;
            }
            None if others.contains(&description.name.as_ref()) => other(&description.name),
            None => return Err(no_allocator(&description.name, others)),
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

/// Rejects a bare word in the place of a text, if no allocator has its name, as in `pages(huge=thp)`: the shell removes
/// quotes where the expression itself is not quoted.
///
/// # Errors
/// How to write the text.
pub fn check_quotes(description: &Description, others: &[&str]) -> Result<(), Error> {
    let Some(spec) = Spec::find(&description.name) else { return Ok(()) };
    for (at, argument) in description.arguments.iter().flatten().enumerate() {
        let Value::Allocator(inner) = &argument.value else { continue };
        let (word, name) = (&*inner.name, argument.name.as_deref());
        let option = match name {
            Some(name) => spec.options.iter().find(|option| option.name == name),
            None => spec.options.get(at),
        };
        let takes_text = option.is_some_and(|option| {
            matches!(option.kind, Kind::Word(_) | Kind::PageSizes | Kind::Policy | Kind::Size | Kind::Budget)
        });
        if takes_text
            && inner.arguments.iter().flatten().next().is_none()
            && Spec::find(word).is_none()
            && !others.contains(&word)
        {
            let name = name.map(|name| format!("{name}=")).unwrap_or_default();
            return Err(Error::Value(format!(
                "{word} is not in quotes: write {name}\"{word}\", and the whole expression in '...' in a shell"
            )));
        }
        check_quotes(inner, others)?;
    }
    Ok(())
}

/// Allocators that replace the program's `malloc`, and serve NumPy's arrays only so.
const PRELOADED: [&str; 2] = ["tcmalloc", "tbbmalloc"];

/// The error for a name that is neither declared nor in `others`.
pub fn no_allocator(name: &str, others: &[&str]) -> Error {
    let mut known: Vec<&str> = ALLOCATORS.iter().map(|spec| spec.name).chain(others.iter().copied()).collect();
    known.sort_unstable_by_key(|name| name.to_lowercase());
    let near = match PRELOADED.iter().find(|&&other| name.starts_with(other)) {
        Some(other) => {
            format!(" is built in ({other} is loaded by LD_PRELOAD, and measured by firsttouch compare --all)")
        }
        None => did_you_mean(name, known.iter().copied()),
    };
    let name = Value::from(name.to_owned());
    Error::NoAllocator { what: format!("no allocator {name}{near}"), known: format!("there are {}", known.join(", ")) }
}

// ---- Arguments ---------------------------------------------------------------------------------------------------

/// An argument, as an object of the front.
pub trait Argument {
    /// The value that it represents.
    ///
    /// # Errors
    /// The front's own, if it cannot be read.
    fn given(&self) -> Result<Given, Error>;

    /// The allocator that it is, describes or implements, as the upstream of what `caller` creates.
    ///
    /// # Errors
    /// If it is not an allocator.
    fn upstream(&self, caller: &str) -> Result<Arc<dyn Allocator>, Error>;
}

impl Argument for Value {
    fn given(&self) -> Result<Given, Error> {
        Ok(Given::Value(self.clone()))
    }

    fn upstream(&self, caller: &str) -> Result<Arc<dyn Allocator>, Error> {
        match self {
            Self::Allocator(description) => allocator_from(description),
            Self::Text(text) => allocator_from_expression(text),
            _ => {
                let given = self.given()?;
                let (kind, shown) = (given.kind(), given.shown());
                Err(Error::Type(format!("{caller} takes an allocator, like pool(), not {kind}: {shown}")))
            }
        }
    }
}

impl Spec {
    /// The argument for each option.
    fn slots<'a>(&'static self, call: &Call<'a>) -> Result<Vec<Option<&'a dyn Argument>>, Error> {
        let mut slots = vec![None; self.options.len()];
        for (at, &(name, argument)) in call.iter().enumerate() {
            let slot = match name {
                None if at < self.positional => at,
                None => return Err(self.refuse("too many positional arguments")),
                Some(name) => self.position(name)?,
            };
            if slots[slot].replace(argument).is_some() {
                let name = self.options[slot].name;
                return Err(self.refuse(&format!("multiple values for argument '{name}'")));
            }
        }
        self.move_budget(&mut slots)?;
        for (option, slot) in self.options.iter().zip(&slots) {
            match option.default {
                Default::Required if slot.is_none() => {
                    return Err(self.refuse(&format!("missing a required argument: '{}'", option.name)));
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
        let Some(budget) = self.options.iter().position(|option| option.kind == Kind::Budget) else {
            return Ok(());
        };
        let given = |slot: Option<&dyn Argument>| slot.map(Argument::given).transpose();
        if given(slots[0])? == Some(Given::Value(AUTO.into())) && given(slots[budget])?.is_none_or(|it| it.is_none()) {
            slots.swap(0, budget);
        }
        Ok(())
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

/// The arguments of a call, checked, with defaults.
pub struct Arguments<'a> {
    spec: &'static Spec,
    /// One for each option, in normalized form.
    values: Vec<Value>,
    upstream: Option<&'a dyn Argument>,
}

impl<'a> Arguments<'a> {
    /// Binds and checks the arguments of a call.
    ///
    /// # Errors
    /// The first invalid argument. The upstream is not checked, because creating it may take memory.
    pub(crate) fn bind(spec: &'static Spec, call: &Call<'a>) -> Result<Self, Error> {
        let slots = spec.slots(call)?;
        let mut upstream = None;
        let mut values = Vec::with_capacity(slots.len());
        for (option, slot) in spec.options.iter().zip(slots) {
            let given = slot.map(Argument::given).transpose()?;
            if matches!(option.kind, Kind::Upstream(_)) {
                upstream = slot.filter(|_| given.as_ref().is_some_and(|given| !given.is_none()));
            }
            values.push(match (&given, &option.default) {
                (Some(given), _) => given.check(option)?,
                (None, Default::Is(value)) => value.clone(),
                (None, _) => Value::None, // rejected by `slots`
            });
        }
        Ok(Self { spec, values, upstream })
    }

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

    /// The policy of the option `numa`, unless it is `None`.
    ///
    /// # Errors
    /// None, as it was checked.
    pub fn policy(&self) -> Result<Option<Policy>, Error> {
        self.text("numa").map(Policy::parse).transpose().map_err(Error::Value)
    }

    /// The allocator's name for messages, like `pool()`.
    pub fn caller(&self) -> String {
        format!("{}()", self.spec.name)
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
        let mut kinds = self.spec.options.iter().map(|option| option.kind);
        let usual = kinds.find_map(|kind| if let Kind::Upstream(usual) = kind { Some(usual) } else { None });
        allocator_from_expression(usual.unwrap_or_default())
    }
}

// ---- Checks of values: messages name the argument, its value and what is accepted ---------------------------------

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// A value that an expression can contain, or an existing allocator.
    Value(Value),
    /// An integer of more than 128 bits, as digits.
    Large(String),
    /// Any other value.
    Other {
        /// How the front displays it.
        shown: String,
        /// Its type, as the front names it.
        kind: String,
    },
}

/// The most characters of an argument that a message quotes.
const SHOWN: usize = 40;
const MOST: i128 = MAX_SIZE as i128;
/// The most page sizes that may be given.
const SIZES: usize = 4;
/// The most threads that may prefault.
const THREADS: i128 = 1024;

impl Given {
    /// Whether it is `None`: the default of an option without a default value.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::Value(Value::None))
    }

    /// The argument for a message.
    pub fn shown(&self) -> Cow<'_, str> {
        let shown: Cow<'_, str> = match self {
            Self::Value(value) => value.to_string().into(),
            Self::Large(digits) => return digits.into(),
            Self::Other { shown, .. } => shown.into(),
        };
        match shown.char_indices().nth(SHOWN) {
            Some((at, _)) => shown[..at].to_owned().into(),
            None => shown,
        }
    }

    /// Its type for a message, with an article.
    pub fn kind(&self) -> String {
        let kind = match self {
            Self::Value(Value::None) => "NoneType",
            Self::Value(Value::Flag(_)) => "bool",
            Self::Value(Value::Integer(_) | Value::Address(_)) | Self::Large(_) => "int",
            Self::Value(Value::Float(_)) => "float",
            Self::Value(Value::Text(_)) => "str",
            Self::Value(Value::Several(_)) => "tuple",
            Self::Value(Value::Allocator(_)) => "Allocator",
            Self::Other { kind, .. } => kind,
        };
        let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
        format!("{article} {kind}")
    }

    /// The normalized value for an option.
    fn check(&self, option: &Opt) -> Result<Value, Error> {
        let (name, optional) = (option.name, matches!(option.default, Default::Is(Value::None)));
        if optional && self.is_none() {
            return Ok(Value::None);
        }
        match option.kind {
            Kind::Upstream(_) => Ok(Value::None), // it is created last
            Kind::Alignment => self.alignment(name),
            Kind::Size => self.size(name, optional).map(Value::from),
            Kind::Budget => self.budget(name),
            Kind::Byte => self.byte(name),
            Kind::Flag => self.flag(name),
            Kind::Seconds => self.seconds(name),
            Kind::Word(words) => self.one_of(name, words),
            Kind::PageSizes => self.page_sizes(name),
            Kind::Threads => self.threads(name),
            Kind::Policy => self.policy(name).map(|policy| policy.to_string().into()),
        }
    }

    fn wrong_type(&self, name: &str, wanted: &str) -> Error {
        Error::Type(format!("{name}={} is {}: give {wanted}", self.shown(), self.kind()))
    }

    /// A size, a number or text. `optional` adds `None` to the message; it is not accepted here.
    ///
    /// # Errors
    /// If it is not a size.
    pub fn size(&self, name: &str, optional: bool) -> Result<usize, Error> {
        match self {
            Self::Value(Value::Text(text)) => size::parse(text).map_err(|why| Error::Value(format!("{name}: {why}"))),
            Self::Value(Value::Integer(number @ 0..=MOST)) => Ok(*number as usize),
            Self::Value(Value::Integer(number)) if *number > MOST => {
                Err(Error::Value(format!("{name}={number} is larger than any address space ({MAX_SIZE} bytes)")))
            }
            Self::Value(Value::Integer(_)) | Self::Large(_) => Err(Error::Value(format!(
                "{name}={} is not a number of bytes: give 0 or more, or text like \"4 GiB\"",
                self.shown()
            ))),
            _ if optional => Err(self.wrong_type(name, "a number of bytes, text like \"4 GiB\", or None")),
            _ => Err(self.wrong_type(name, "a number of bytes, or text like \"4 GiB\"")),
        }
    }

    fn budget(&self, name: &str) -> Result<Value, Error> {
        if *self == Self::Value(AUTO.into()) {
            return Ok(AUTO.into());
        }
        match self.size(name, false)? {
            0 => Err(Error::Value(format!("{name}=0 would serve no array: give at least 1 byte"))),
            bytes => Ok(bytes.into()),
        }
    }

    fn alignment(&self, name: &str) -> Result<Value, Error> {
        match self.size(name, false)? {
            0 => Err(Error::Value(format!("{name}=0: give a power of two from 1 byte to 1 GiB"))),
            bytes => checked_align(bytes).map(Value::from).map_err(|error| Error::Value(error.to_string())),
        }
    }

    fn byte(&self, name: &str) -> Result<Value, Error> {
        let wanted = "or None to leave memory as it is";
        match self {
            Self::Value(Value::None) => Ok(Value::None),
            Self::Value(Value::Integer(number @ 0..=255)) => Ok(Value::Integer(*number)),
            Self::Value(Value::Integer(number)) => {
                Err(Error::Value(format!("{name}={number} is not a byte: give 0 to 255, {wanted}")))
            }
            _ => Err(self.wrong_type(name, &format!("a byte, 0 to 255, {wanted}"))),
        }
    }

    fn flag(&self, name: &str) -> Result<Value, Error> {
        match self {
            Self::Value(Value::Flag(flag)) => Ok(Value::Flag(*flag)),
            _ => Err(self.wrong_type(name, "True or False")),
        }
    }

    fn seconds(&self, name: &str) -> Result<Value, Error> {
        let wanted = "seconds, 0 or more, or None for never";
        let seconds = match self {
            Self::Value(Value::None) => return Ok(Value::None),
            Self::Value(Value::Integer(number)) => *number as f64,
            Self::Value(Value::Float(number)) => *number,
            _ => return Err(self.wrong_type(name, wanted)),
        };
        match Duration::try_from_secs_f64(seconds) {
            Ok(_) => Ok(Value::Float(seconds)),
            Err(_) => Err(Error::Value(format!("{name}={seconds:?} is not a time: give {wanted}"))),
        }
    }

    fn one_of(&self, name: &str, words: &[&'static str]) -> Result<Value, Error> {
        let text = match self {
            Self::Value(Value::Text(text)) => Some(text.as_ref()),
            _ => None,
        };
        words.iter().find(|&&word| Some(word) == text).map(|&word| Value::from(word)).ok_or_else(|| {
            let wanted: Vec<String> = words.iter().map(|&word| Value::from(word).to_string()).collect();
            let near = text.map_or_else(String::new, |text| did_you_mean(text, words.iter().copied()));
            let message = format!("{name}={}{near}: give {}", self.shown(), wanted.join(" or "));
            if text.is_some() { Error::Value(message) } else { Error::Type(message) }
        })
    }

    /// `False`, a page size of this machine, or several of them, of which `False` is the last.
    fn page_sizes(&self, name: &str) -> Result<Value, Error> {
        let wrong = |why: &str| {
            Error::Value(format!(
                "{name}={}: give False or \"thp\" (transparent huge pages), a size of explicit ones, or several of these in \
                 the order of preference, like (\"1G\", \"2M\", \"thp\"){why}",
                self.shown()
            ))
        };
        let page = |value: &Value| match value {
            Value::Text(text) if !text.is_empty() => {
                Page::parse(text).map(|page| page.value()).map_err(|why| wrong(&format!(" ({why})")))
            }
            _ => Err(wrong("")),
        };
        match self {
            Self::Value(Value::Flag(false)) => Ok(Value::Flag(false)),
            Self::Value(Value::Several(wishes)) if !wishes.is_empty() => {
                let base = Value::Flag(false);
                let named = wishes.iter().take_while(|&wish| *wish != base).map(page);
                let mut sizes = named.collect::<Result<Vec<_>, _>>()?;
                sizes.extend(wishes.contains(&base).then_some(base));
                match sizes.len() {
                    1 => Ok(sizes.swap_remove(0)),
                    2..=SIZES => Ok(Value::Several(sizes)),
                    _ => Err(Error::Value(format!("{name}={}: give at most four", self.shown()))),
                }
            }
            Self::Value(value) => page(value),
            _ => Err(wrong("")),
        }
    }

    fn threads(&self, name: &str) -> Result<Value, Error> {
        let wanted = "False, True, or a number of threads from 1 to 1024";
        match self {
            Self::Value(Value::Flag(flag)) => Ok(Value::Flag(*flag)),
            Self::Value(Value::Integer(threads @ 1..=THREADS)) => Ok(Value::Integer(*threads)),
            Self::Value(Value::Integer(_)) => Err(Error::Value(format!("{name}={}: give {wanted}", self.shown()))),
            _ => Err(self.wrong_type(name, wanted)),
        }
    }

    /// A node number, or a policy as text, of this machine.
    ///
    /// # Errors
    /// If it is neither, or the machine has no such node.
    pub fn policy(&self, name: &str) -> Result<Policy, Error> {
        let text = match self {
            Self::Value(Value::Text(text)) => text.to_string(),
            Self::Value(Value::Integer(node)) => node.to_string(),
            _ => return Err(self.wrong_type(name, "a node's number, or text like \"bind:0-1\"")),
        };
        let found = Policy::parse(&text).and_then(|policy| policy.check(&Topology::read()).map(|()| policy));
        found.map_err(|why| Error::Value(format!("{name}={}: {why}", self.shown())))
    }

    /// The address of a C function or of its context.
    ///
    /// # Errors
    /// If it is not an address.
    pub fn address(&self, name: &str) -> Result<usize, Error> {
        let no_address = || Error::Value(format!("{name}={} is not an address: give 0 to 2**64 - 1", self.shown()));
        match self {
            Self::Value(Value::Integer(number)) => usize::try_from(*number).map_err(|_| no_address()),
            Self::Large(_) => Err(no_address()),
            _ => Err(self.wrong_type(name, "an address, as from ctypes.cast(function, ctypes.c_void_p).value")),
        }
    }

    /// The address of a C function, which is not 0.
    ///
    /// # Errors
    /// If it is not one.
    pub fn function(&self, name: &str) -> Result<usize, Error> {
        match self.address(name)? {
            0 => Err(Error::Value(format!("{name}=0 is not the address of a function"))),
            address => Ok(address),
        }
    }
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
    /// There is no memory for the allocator itself.
    Memory(AllocError),
    /// A front's own error, for arguments that are its objects.
    Front(Box<dyn std::error::Error + Send + Sync>),
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

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Self {
        Self::Value(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAllocator { what, known } => write!(f, "{what}: {known}"),
            Self::Call(message) | Self::Type(message) | Self::Value(message) | Self::Unsupported(message) => {
                f.write_str(message)
            }
            Self::Memory(error) => error.fmt(f),
            Self::Front(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
