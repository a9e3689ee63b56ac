//! How an allocator is declared: once, in its own file, with its name, a description, and its options with their kinds, defaults
//! and help. `make` beside the declaration creates it from its arguments, and each folder lists its files (`declared!`).
//!
//! All else follows: the checks of arguments and their messages, expressions on the command line, in C and in Julia, Python's
//! functions with their signatures and docstrings, the stub, the help of commands and the reference.

use crate::allocator::Allocator;
use crate::description::Value;
use crate::factory::{Arguments, Error};
use crate::{adaptors, sources};
use std::sync::Arc;

/// An allocator as it is declared. Texts are those of Python's docstrings, in reStructuredText.
#[derive(Debug)]
pub struct Spec {
    /// Its name in expressions.
    pub name: &'static str,
    /// What a call of it returns: the rest of a sentence that begins with "Return".
    pub summary: &'static str,
    /// Its options, in the order in which messages list them.
    pub options: &'static [Opt],
    /// The number of options that may be given without their names.
    pub positional: usize,
    /// Further notes.
    pub notes: &'static str,
    /// An example for Python.
    pub example: &'static str,
}

/// An option of an allocator.
#[derive(Debug)]
pub struct Opt {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: OptionKind,
    /// Its default; `None` if it must be given.
    pub default: Option<Value>,
    /// What it does.
    pub help: &'static str,
}

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionKind {
    /// Another allocator; by default this one. Nothing is created if the default is empty.
    Upstream(&'static str),
    /// An alignment in bytes.
    Alignment,
    /// A size in bytes, as a number or as text.
    Size,
    /// A size of at least one byte, as a number or as text, or `auto`.
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
    PageSize,
    /// No, yes, or a number of threads.
    Threads,
    /// A NUMA policy.
    Policy,
}

impl Opt {
    /// Whether this value is the default.
    pub fn is_default(&self, value: &Value) -> bool {
        match (self.kind, &self.default, value) {
            // By name first: to look at the arguments of all levels below would take twice as long for each.
            (OptionKind::Upstream(""), _, Value::Allocator(inner)) if inner.name == "pages" => {
                matches!(inner.needed()[..], [only] if only.to_string() == "huge='thp'")
            }
            (OptionKind::Upstream(default), _, Value::Allocator(inner)) => {
                default.strip_suffix("()") == Some(&inner.name) && inner.needed().is_empty()
            }
            (_, default, _) => default.as_ref() == Some(value),
        }
    }
}

impl Spec {
    /// The allocator that `text` names.
    pub fn find(text: &str) -> Option<&'static Self> {
        all().find(|spec| spec.name == text)
    }

    /// Makes one. This is no field of the declaration, so that a library that only shows allocators does not link all of them.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub(crate) fn make(&self, arguments: &Arguments) -> MakeResult {
        let made = sources::make(arguments).or_else(|| adaptors::make(arguments));
        made.unwrap_or_else(|| Err(Error::Unsupported(format!("{}() is declared, but nothing makes it", self.name))))
    }

    /// Whether it stands on another allocator.
    pub fn is_adaptor(&self) -> bool {
        self.options.iter().any(|option| matches!(option.kind, OptionKind::Upstream(_)))
    }
}

/// The result of making an allocator.
pub(crate) type MakeResult = Result<Arc<dyn Allocator>, Error>;

/// All allocators, folder by folder.
pub fn all() -> impl Iterator<Item = &'static Spec> {
    sources::SPECS.iter().chain(adaptors::SPECS).copied().flatten()
}

/// Lists the files of a folder that declare allocators: each has `SPECS`, and `make` for what these are.
macro_rules! declared {
    ($($file:ident)+) => {
        /// What they declare.
        pub(crate) const SPECS: &[&[crate::spec::Spec]] = &[$($file::SPECS),+];

        /// Makes an allocator of this folder.
        pub(crate) fn make(arguments: &crate::factory::Arguments) -> Option<crate::spec::MakeResult> {
            let is_of = |specs: &[crate::spec::Spec]| specs.iter().any(|spec| spec.name == arguments.name());
            $(if is_of($file::SPECS) {
                return Some($file::make(arguments));
            })+
            None
        }
    };
}
pub(crate) use declared;

// ---- Parts of declarations ------------------------------------------------------------------------------------------

pub(crate) const REQUIRED: Option<Value> = None;
pub(crate) const NONE: Option<Value> = Some(Value::None);
pub(crate) const NO: Option<Value> = Some(Value::Flag(false));

pub(crate) const fn opt(name: &'static str, kind: OptionKind, default: Option<Value>, help: &'static str) -> Opt {
    Opt { name, kind, default, help }
}

pub(crate) const fn upstream(default: &'static str, help: &'static str) -> Opt {
    opt("upstream", OptionKind::Upstream(default), NONE, help)
}
pub(crate) const ON_A_POOL: Opt = upstream("pool()", "Where memory comes from. The default is ``pool()``.");
