//! The description of an allocator, as values: its name, its options, and its upstream.
//!
//! Decisions are taken on types and on these values. The text of an expression is rendered from them here and nowhere
//! else: it is for display, and for creating the same allocator again.

use crate::allocator::Allocator;
use crate::size::{self, Bytes};
use crate::spec::Spec;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None`: nothing is given.
    None,
    /// A boolean.
    Flag(bool),
    /// A count or a size in bytes.
    Integer(i128),
    /// A number with a fraction, such as seconds.
    Float(f64),
    /// A keyword, such as the name of a page size.
    Text(Cow<'static, str>),
    /// Another allocator, such as the upstream.
    Allocator(Description),
    /// Another allocator that exists.
    Existing(Arc<dyn Allocator>),
    /// What no expression can contain: an object of a front, with its type, as the front shows both.
    Other {
        /// The object.
        shown: String,
        /// Its type.
        kind: String,
    },
}

impl PartialEq for dyn Allocator {
    /// Whether both are the same.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl fmt::Debug for dyn Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expression())
    }
}

/// An argument, positional if it has no name.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// The name of a keyword argument.
    pub name: Option<Cow<'static, str>>,
    /// The value.
    pub value: Value,
}

/// The description of an allocator.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The name of the function or class that creates it.
    pub name: Cow<'static, str>,
    /// Its arguments, including defaults, which are not displayed; `None` if no expression creates it, so that the name is all there is.
    pub arguments: Option<Vec<Argument>>,
}

impl Description {
    /// The description of what `name` creates; arguments are added below.
    pub fn of(name: &'static str) -> Self {
        Self { name: name.into(), arguments: Some(Vec::new()) }
    }

    /// The description of an allocator that no expression creates: a text for display.
    pub fn opaque(text: impl Into<String>) -> Self {
        Self { name: text.into().into(), arguments: None }
    }

    fn push(mut self, name: Option<Cow<'static, str>>, value: Value) -> Self {
        self.arguments.get_or_insert_default().push(Argument { name, value });
        self
    }

    /// Adds a positional argument.
    #[must_use]
    pub fn with(self, value: impl Into<Value>) -> Self {
        self.push(None, value.into())
    }

    /// Adds a keyword argument.
    #[must_use]
    pub fn named(self, name: &'static str, value: impl Into<Value>) -> Self {
        self.push(Some(name.into()), value.into())
    }

    /// Its arguments, if it has any.
    pub fn arguments(&self) -> &[Argument] {
        self.arguments.as_deref().unwrap_or_default()
    }

    /// The arguments that a call needs to make an equal one: those that are not the default, and positional ones before them.
    pub(crate) fn needed(&self) -> Vec<&Argument> {
        let spec = Spec::find(&self.name);
        let is_default = |(at, argument): (usize, &Argument)| {
            let option = spec.and_then(|spec| match &argument.name {
                Some(name) => spec.options.iter().find(|option| option.name == name),
                None => spec.options.get(at),
            });
            option.is_some_and(|option| option.is_default(&argument.value))
        };
        let given = || self.arguments().iter().enumerate();
        let last = given().rposition(|(at, argument)| argument.name.is_none() && !is_default((at, argument)));
        given().filter(|&each| Some(each.0) <= last || !is_default(each)).map(|(_, argument)| argument).collect()
    }
}

impl Value {
    /// Its type for a message, with an article.
    pub(crate) fn kind(&self) -> String {
        let kind = match self {
            Self::None => "NoneType",
            Self::Flag(_) => "bool",
            Self::Integer(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "str",
            Self::Allocator(_) | Self::Existing(_) => "Allocator",
            Self::Other { kind, .. } => kind,
        };
        let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
        format!("{article} {kind}")
    }

    /// The value for a message, cut.
    pub fn shown(&self) -> String {
        const MOST: usize = 40;
        self.to_string().chars().take(MOST).collect()
    }

    /// A number of bytes as people write it, where that is exact: `'4 GiB'` or `'100 MB'`, but `1234567`.
    pub fn size(bytes: usize) -> Self {
        let decimal =
            [("GB", 1_000_000_000), ("MB", 1_000_000)].into_iter().find(|(_, unit)| bytes.is_multiple_of(*unit));
        let text = Bytes(bytes).to_string();
        match decimal {
            _ if bytes >= 1024 && size::parse(&text) == Ok(bytes) => Self::from(text),
            Some((name, unit)) if bytes > 0 => Self::from(format!("{} {name}", bytes / unit)),
            _ => Self::from(bytes),
        }
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
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(value) => f.write_str(&quoted(value, usize::MAX)),
            Self::Allocator(value) => write!(f, "{value}"),
            Self::Existing(value) => write!(f, "{value:?}"),
            Self::Other { shown, .. } => f.write_str(shown),
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
        if self.arguments.is_none() {
            return Ok(());
        }
        f.write_str("(")?;
        separated(f, &self.needed())?;
        f.write_str(")")
    }
}

/// Formats items separated by commas.
pub(crate) fn separated<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        write!(f, "{}{item}", if at > 0 { ", " } else { "" })?;
    }
    Ok(())
}

/// Quotes `text` as Python's `repr` does, truncated to `most` characters, with unprintable characters escaped.
pub fn quoted(text: &str, most: usize) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars().take(most) {
        match c == quote || c == '\\' || c.is_control() {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    if text.chars().nth(most).is_some() {
        out.push_str("...");
    }
    out.push(quote);
    out
}
