//! Parse errors, with their positions.

use crate::description::quoted;
use std::fmt::{self, Display, Write};

/// The most characters of an expression that a message quotes.
const SHOWN: usize = 200;
/// The most characters after an error that a message quotes.
const REST: usize = 40;

/// Text that is not an allocator expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    message: String,
}

impl ParseError {
    pub(super) fn empty() -> Self {
        Self { message: "the allocator expression is empty".into() }
    }

    /// The error that `text` is not an expression because of `why`, at byte `at`.
    pub(super) fn at(text: &str, at: usize, why: impl Display) -> Self {
        let (before, rest) = text.split_at(at);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        let mut message =
            format!("{} is not an allocator expression: {why}, at character {column}", quoted(text, SHOWN));
        if text.contains('\n') {
            let _ = write!(message, " of line {line}");
        }
        let rest = rest.lines().next().unwrap_or_default();
        match rest.is_empty() {
            true => message.push_str(", the end"),
            false => _ = write!(message, ", before {}", quoted(rest, REST)),
        }
        Self { message }
    }
}

impl Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ParseError {}
