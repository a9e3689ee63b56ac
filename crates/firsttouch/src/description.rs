//! What an allocator is, as values: a name, options, and the allocator it stands on.
//!
//! Decisions are taken on types and on these values. The text of an expression is rendered from them here and nowhere
//! else: it is for people, and for making the same allocator again.

use std::borrow::Cow;
use std::fmt;

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The default that has no value of its own.
    None,
    /// Yes or no.
    Flag(bool),
    /// A count or bytes.
    Integer(i128),
    /// The address of a function or of what it is handed.
    Address(usize),
    /// A number with a fraction, such as seconds.
    Float(f64),
    /// A word, such as the name of a page size.
    Text(Cow<'static, str>),
    /// Several values in their order.
    Several(Vec<Value>),
    /// Another allocator, such as the upstream.
    Allocator(Description),
}

/// An argument: by its place where it has no name.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// The name of a keyword.
    pub name: Option<Cow<'static, str>>,
    /// What is given.
    pub value: Value,
}

/// What an allocator is.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The name of the function or class that makes it.
    pub name: Cow<'static, str>,
    /// What it is made with, defaults included; `None` where no expression makes it, and the name is all there is.
    pub arguments: Option<Vec<Argument>>,
}

impl Description {
    /// What `name` makes; arguments are added below.
    pub fn of(name: &'static str) -> Self {
        Self { name: name.into(), arguments: Some(Vec::new()) }
    }

    /// What no expression makes: a text that people know it by.
    pub fn opaque(text: impl Into<String>) -> Self {
        Self { name: text.into().into(), arguments: None }
    }

    fn push(mut self, name: Option<Cow<'static, str>>, value: Value) -> Self {
        self.arguments.get_or_insert_default().push(Argument { name, value });
        self
    }

    /// With one more argument, by its place.
    #[must_use]
    pub fn with(self, value: impl Into<Value>) -> Self {
        self.push(None, value.into())
    }

    /// With one more argument, by its name.
    #[must_use]
    pub fn named(self, name: &'static str, value: impl Into<Value>) -> Self {
        self.push(Some(name.into()), value.into())
    }

    /// Whether an expression makes it and all that it stands on.
    pub fn is_expression(&self) -> bool {
        let made = |argument: &Argument| match &argument.value {
            Value::Allocator(inner) => inner.is_expression(),
            _ => true,
        };
        self.arguments.as_ref().is_some_and(|arguments| arguments.iter().all(made))
    }

    /// The allocator's own part: all arguments that are not allocators themselves.
    #[must_use]
    pub fn level(mut self) -> Self {
        if let Some(arguments) = &mut self.arguments {
            arguments.retain(|argument| !matches!(argument.value, Value::Allocator(_)));
        }
        self
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Integer(value as i128)
    }
}

impl From<&'static str> for Value {
    fn from(value: &'static str) -> Self {
        Self::Text(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value.into())
    }
}

impl From<Description> for Value {
    fn from(value: Description) -> Self {
        Self::Allocator(value)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Flag(value) => f.write_str(if *value { "True" } else { "False" }),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Address(value) => write!(f, "{value:#x}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(value) => f.write_str(&quoted(value, usize::MAX)),
            Self::Several(values) => {
                f.write_str("(")?;
                separated(f, values)?;
                f.write_str(if values.len() == 1 { ",)" } else { ")" })
            }
            Self::Allocator(value) => write!(f, "{value}"),
        }
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}={}", self.value),
            None => write!(f, "{}", self.value),
        }
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let Some(arguments) = &self.arguments else { return Ok(()) };
        f.write_str("(")?;
        separated(f, arguments)?;
        f.write_str(")")
    }
}

/// Items with commas between them.
pub(crate) fn separated<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        write!(f, "{}{item}", if at > 0 { ", " } else { "" })?;
    }
    Ok(())
}

/// `text` between quotes as Python's `repr` chooses them, cut after `most` characters, with what can't be printed escaped.
pub fn quoted(text: &str, most: usize) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for (index, c) in text.chars().enumerate() {
        match c {
            _ if index == most => {
                out.push_str("...");
                break;
            }
            _ if c == quote || c == '\\' => out.extend(['\\', c]),
            _ if c.is_control() => out.extend(c.escape_default()),
            _ => out.push(c),
        }
    }
    out.push(quote);
    out
}
