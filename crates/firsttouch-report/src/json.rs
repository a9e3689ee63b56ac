//! JSON text.

use std::fmt::{Display, Write};

/// A string in quotes.
#[must_use]
pub fn text(text: impl AsRef<str>) -> String {
    let mut quoted = String::from('"');
    for character in text.as_ref().chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", control as u32); // a String takes everything
            }
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

/// A value, or null.
pub fn optional(value: Option<impl Display>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

/// A list of values.
pub fn list(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(", "))
}

fn entries<'a>(named: impl IntoIterator<Item = (&'a str, String)>, between: &str) -> String {
    named.into_iter().map(|(name, value)| format!("{}: {value}", text(name))).collect::<Vec<_>>().join(between)
}

/// An object of named values.
pub fn object<'a>(named: impl IntoIterator<Item = (&'a str, String)>) -> String {
    format!("{{{}}}", entries(named, ", "))
}

/// An object whose values stand on lines of their own.
pub fn lines<'a>(named: impl IntoIterator<Item = (&'a str, String)>) -> String {
    format!("{{\n  {}\n}}\n", entries(named, ",\n  "))
}
