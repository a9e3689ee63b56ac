//! Allocator expressions: `limited(pool(pages(huge="2M")), "4 GiB")`.
//!
//! The grammar is the same on the command line and in every language. An expression is parsed, never evaluated: a name, and in
//! parentheses arguments that are numbers, strings, `None`, `True`, `False` or other expressions. A bare name is a call without
//! arguments; it may be preceded by `ft.` or `firsttouch.`. Where an option takes a text, a bare name is that text.
//!
//! [`parse`] converts text to the [`Description`] that an allocator would return for itself, which is rendered as such an
//! expression. Which names there are, and what they mean, is up to `factory.rs`.

use crate::description::{Argument, Description, Value, quoted};
use std::fmt::Display;
use strsim::osa_distance;

// ---- The parser -----------------------------------------------------------------------------------------------------

/// What may precede a name.
const PACKAGES: [&str; 2] = ["ft", "firsttouch"];
/// How deep calls may nest: far more than needed, and far from the end of a thread's stack.
pub(crate) const DEEPEST: usize = 64;

/// The most characters of an expression that a message quotes.
const SHOWN: usize = 200;
/// The most characters after an error that a message quotes.
const REST: usize = 40;

const VALUE: &str = "expected a number, a string, None, True, False or an allocator";
const UNCLOSED: &str = "a '(' is not closed";
const NOT_EVALUATED: &str = "expressions are not evaluated: write the number, or a size like \"4 GiB\"";

/// Parses an allocator expression.
///
/// # Errors
/// What is wrong with `text`, and at which character.
pub fn parse(text: &str) -> Result<Description, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("the allocator expression is empty".into());
    }
    let mut parser = Parser { text, at: 0, depth: 0 };
    let found = parser.allocator()?;
    match parser.peek() {
        None => Ok(found),
        Some(')') => Err(parser.wrong("unmatched ')'")),
        Some(_) => Err(parser.wrong("expected the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// The byte at which the rest begins.
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn wrong(&self, why: impl Display) -> String {
        self.wrong_at(self.at, why)
    }

    /// The message that the text is not an expression because of `why`, at byte `at`.
    fn wrong_at(&self, at: usize, why: impl Display) -> String {
        let (before, rest) = self.text.split_at(at);
        let (text, column) = (quoted(self.text, SHOWN), before.chars().count() + 1);
        let place = if rest.is_empty() { "the end".into() } else { format!("before {}", quoted(rest, REST)) };
        format!("{text} is not an allocator expression: {why}, at character {column}, {place}")
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips blanks; the character behind them.
    fn peek(&mut self) -> Option<char> {
        self.at = self.text.len() - self.rest().trim_start().len();
        self.rest().chars().next()
    }

    /// Takes `mark` if it is next; returns whether it was.
    fn eat(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(mark);
        self.at += if found { mark.len_utf8() } else { 0 };
        found
    }

    /// Takes the word that is next; empty if none is.
    fn word(&mut self) -> &'a str {
        match self.peek() {
            Some(first) if first == '_' || first.is_alphabetic() => self.take(|c| c == '_' || c.is_alphanumeric()),
            _ => "",
        }
    }

    /// Takes the characters that belong to what is next.
    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|c| !belongs(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// `name`, `ft.name`, `name(arguments)`
    fn allocator(&mut self) -> Result<Description, String> {
        let mut name = self.word();
        let start = self.at - name.len();
        if PACKAGES.contains(&name) && self.eat('.') {
            // A constant behind the dot is no name, as the description would be rendered as that.
            name = Some(self.word()).filter(|name| constant(name).is_none()).unwrap_or_default();
        }
        if name.is_empty() || self.peek() == Some('.') {
            return Err(self.wrong_at(start, "expected an allocator's name"));
        }
        self.depth += 1; // for a bare name, too: it is rendered as a call
        if self.depth > DEEPEST {
            return Err(self.wrong("nested too deeply"));
        }
        let mut arguments = Vec::new();
        if self.eat('(') {
            while !self.eat(')') {
                arguments.push(self.argument()?);
                match self.peek() {
                    Some(',') => self.at += 1,
                    Some(')') => {}
                    None => return Err(self.wrong(UNCLOSED)),
                    Some('+' | '-' | '*') => return Err(self.wrong(NOT_EVALUATED)),
                    Some(_) => return Err(self.wrong("expected ',' or ')'")),
                }
            }
        }
        self.depth -= 1;
        Ok(Description { name: name.to_owned().into(), arguments: Some(arguments) })
    }

    /// `value` or `name=value`
    fn argument(&mut self) -> Result<Argument, String> {
        let word = self.word();
        let start = self.at - word.len();
        let name = (!word.is_empty() && constant(word).is_none() && self.eat('=')).then(|| word.to_owned().into());
        if name.is_none() {
            self.at = start;
        }
        Ok(Argument { name, value: self.value()? })
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.peek() {
            None => Err(self.wrong(UNCLOSED)),
            Some('\'' | '"') => self.string(),
            Some('-' | '.' | '0'..='9') => Ok(self.number()),
            Some(_) => {
                let word = self.word();
                if let Some(value) = constant(word) {
                    return Ok(value);
                }
                self.at -= word.len();
                if word.is_empty() { Err(self.wrong(VALUE)) } else { self.allocator().map(Value::Allocator) }
            }
        }
    }

    /// A number; or a text that begins like one and needs no quotes, such as `4GiB`.
    fn number(&mut self) -> Value {
        let text = self.take(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '+' | '-'));
        match (text.parse(), text.parse::<f64>()) {
            (Ok(number), _) => Value::Integer(number),
            (_, Ok(number)) if number.is_finite() => Value::Float(number),
            _ => text.to_owned().into(),
        }
    }

    /// A string in quotes, without escapes: no option takes a text that needs them.
    fn string(&mut self) -> Result<Value, String> {
        let quote = self.peek().unwrap_or('"');
        self.at += 1;
        let found = self.take(|c| c != quote && c != '\\' && !c.is_control());
        if !self.rest().starts_with(quote) {
            return Err(self.wrong("the string is not closed, or has a backslash or a control character"));
        }
        self.at += 1;
        Ok(found.to_owned().into())
    }
}

/// The value of a word that names no allocator.
fn constant(word: &str) -> Option<Value> {
    match word {
        "None" => Some(Value::None),
        "True" => Some(Value::Flag(true)),
        "False" => Some(Value::Flag(false)),
        _ => None,
    }
}

// ---- Suggestions: the known word that is nearest to an unknown one ------------------------------------------------

/// Returns `" (did you mean pool?)"`, or an empty string if no known word is near.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let lower = word.to_lowercase();
    let near = known.into_iter().map(|known| (osa_distance(&lower, &known.to_lowercase()), known)).min();
    near.filter(|&(distance, known)| 3 * distance <= word.chars().count().max(known.len()))
        .map_or_else(String::new, |(_, known)| format!(" (did you mean {known}?)"))
}
