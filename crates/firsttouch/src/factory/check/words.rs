//! Flags and keywords.

use super::wrong_type;
use crate::description::Value;
use crate::factory::{Error, Given};

/// Checks `True` or `False`; no other value is accepted in their place.
///
/// # Errors
/// If it is neither.
pub fn flag(name: &str, given: &Given) -> Result<bool, Error> {
    match given {
        Given::Value(Value::Flag(flag)) => Ok(*flag),
        _ => Err(wrong_type(name, given, "True or False")),
    }
}

/// Checks one of a few keywords.
///
/// # Errors
/// If it is none of them.
pub fn one_of(name: &str, given: &Given, words: &[&'static str]) -> Result<&'static str, Error> {
    let text = match given {
        Given::Value(Value::Text(text)) => Some(text.as_ref()),
        _ => None,
    };
    words.iter().find(|&&word| Some(word) == text).copied().ok_or_else(|| {
        let wanted: Vec<String> = words.iter().map(|&word| Value::from(word).to_string()).collect();
        let message = format!("{name}={}: give {}", given.shown(), wanted.join(" or "));
        if text.is_some() { Error::Value(message) } else { Error::Type(message) }
    })
}
