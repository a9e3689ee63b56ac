//! Allocator expressions: `limited(pool(pages(huge="2M")), "4 GiB")`.
//!
//! The grammar is the same on the command line and in every language. An expression is parsed, never evaluated: a
//! name, and in parentheses arguments that are numbers, strings, `None`, `True`, `False` or other expressions. A bare name is a call without arguments; it may be preceded by `ft.` or `firsttouch.`.
//!
//! [`parse`] converts text to the [`Description`] that an allocator would return for
//! itself, which is rendered as such an expression. The meaning of names is up to the code that creates allocators.

use crate::description::{Argument, Description, Value, quoted};
use crate::size;
use std::fmt::{self, Display};

// ---- The parser -----------------------------------------------------------------------------------------------------

/// What may precede a name.
const PACKAGES: [&str; 2] = ["ft", "firsttouch"];
/// How deep calls may nest: far more than needed, and far from the end of a thread's stack.
pub(crate) const DEEPEST: usize = 64;

const NAME: &str = "expected an allocator's name";
const VALUE: &str = "expected a number, a string, None, True, False or an allocator";
const NOT_EVALUATED: &str = "expressions are not evaluated: write the number, or a size like \"4 GiB\"";

/// Parses an allocator expression.
///
/// # Errors
/// What is wrong with `text`, and at which character.
pub fn parse(text: &str) -> Result<Description, ParseError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ParseError { message: "the allocator expression is empty".into() });
    }
    let mut parser = Parser { text, at: 0, depth: 0 };
    let found = parser.allocator()?;
    match parser.next() {
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
    fn wrong(&self, why: impl Display) -> ParseError {
        ParseError::at(self.text, self.at, why)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips blanks; the next character.
    fn next(&mut self) -> Option<char> {
        self.at = self.text.len() - self.rest().trim_start().len();
        self.rest().chars().next()
    }

    /// Skips `mark` if it is next; returns whether it was.
    fn passes(&mut self, mark: char) -> bool {
        let found = self.next() == Some(mark);
        self.at += if found { mark.len_utf8() } else { 0 };
        found
    }

    /// The word that is next; empty if none is.
    fn word(&mut self) -> &'a str {
        match self.next() {
            Some(first) if first == '_' || first.is_alphabetic() => self.take(|c| c == '_' || c.is_alphanumeric()),
            _ => "",
        }
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|c| !belongs(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn deeper(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST { Err(self.wrong("nested too deeply")) } else { Ok(()) }
    }

    /// `name`, `ft.name`, `name(arguments)`
    fn allocator(&mut self) -> Result<Description, ParseError> {
        let mut name = self.word();
        let start = self.at - name.len();
        if PACKAGES.contains(&name) && self.passes('.') {
            name = Some(self.word()).filter(|name| constant(name).is_none()).unwrap_or_default(); // it would be rendered as one
        }
        if name.is_empty() || self.next() == Some('.') {
            return Err(ParseError::at(self.text, start, NAME));
        }
        self.deeper()?; // a bare name, too: it is rendered as a call
        let mut arguments = Vec::new();
        let opened = self.at;
        if self.passes('(') {
            while !self.passes(')') {
                self.argument(&mut arguments, opened)?;
                self.separator(opened)?;
            }
        }
        self.depth -= 1;
        Ok(Description { name: name.to_owned().into(), arguments: Some(arguments) })
    }

    /// `value` or `name=value`
    fn argument(&mut self, call: &mut Vec<Argument>, opened: usize) -> Result<(), ParseError> {
        let word = self.word();
        let start = self.at - word.len();
        let name = (!word.is_empty() && constant(word).is_none() && self.passes('=')).then_some(word);
        let refuse = |why: String| Err(ParseError::at(self.text, start, why));
        match name {
            Some(name) if call.iter().any(|argument| argument.name.as_deref() == Some(name)) => {
                return refuse(format!("{name}= is given twice"));
            }
            None if call.last().is_some_and(|argument| argument.name.is_some()) => {
                return refuse("an argument without a name follows one with a name".into());
            }
            Some(_) => {}
            None => self.at = start,
        }
        let value = self.value(opened)?;
        call.push(Argument { name: name.map(|name| name.to_owned().into()), value });
        Ok(())
    }

    /// After an argument: skips a comma, or stops before the closing parenthesis.
    fn separator(&mut self, opened: usize) -> Result<(), ParseError> {
        match self.next() {
            Some(',') => self.at += 1,
            Some(')') => {}
            None => return Err(self.unclosed(opened)),
            Some('+' | '-' | '*') => return Err(self.wrong(NOT_EVALUATED)),
            Some(_) => return Err(self.wrong("expected ',' or ')'")),
        }
        Ok(())
    }

    fn unclosed(&self, opened: usize) -> ParseError {
        ParseError::at(self.text, opened, "'(' is never closed")
    }

    fn value(&mut self, opened: usize) -> Result<Value, ParseError> {
        match self.next() {
            None => Err(self.unclosed(opened)),
            Some('\'' | '"') => self.string(),
            Some('-' | '.' | '0'..='9') => self.number(),
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

    /// A decimal number.
    fn number(&mut self) -> Result<Value, ParseError> {
        let start = self.at;
        let negative = self.passes('-');
        let mut text = self.take(|c| c.is_alphanumeric() || c == '.').to_owned();
        if text.ends_with(['e', 'E']) && self.rest().starts_with(['+', '-']) {
            text.push_str(&self.rest()[..1]);
            self.at += 1;
            text.push_str(self.take(|c| c.is_ascii_digit()));
        }
        let shown = quoted(&text, REST);
        let refused = |why: String| Err(ParseError::at(self.text, start, why));
        if !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit()) {
            return match text.parse::<i128>() {
                Ok(number) => Ok(Value::Integer(if negative { -number } else { number })),
                Err(_) => refused(format!("{shown} is too large")),
            };
        }
        let is_plain = text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
        match text.parse::<f64>() {
            Ok(number) if is_plain && number.is_finite() => Ok(Value::Float(if negative { -number } else { number })),
            _ if text.is_empty() => refused(VALUE.into()),
            _ if size::parse(&text).is_ok() => {
                refused(format!("{shown} is not a number: a size with a unit is quoted, \"{text}\""))
            }
            _ => refused(format!("{shown} is not a number")),
        }
    }

    /// A string in quotes, with the escapes that [`quoted`] writes.
    fn string(&mut self) -> Result<Value, ParseError> {
        let mut found = String::new();
        let mut chars = self.rest().char_indices();
        let quote = chars.next().map_or('"', |(_, quote)| quote);
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.at += at + 1;
                return Ok(found.into());
            }
            if c != '\\' {
                found.push(c);
                continue;
            }
            let escaped = match chars.next().map(|(_, escape)| escape) {
                Some('n') => Some('\n'),
                Some('t') => Some('\t'),
                Some('r') => Some('\r'),
                Some('x') => {
                    let mut digit = || chars.next().and_then(|(_, digit)| digit.to_digit(16));
                    digit().zip(digit()).and_then(|(high, low)| char::from_u32(16 * high + low))
                }
                Some(c @ ('\\' | '\'' | '"')) => Some(c),
                _ => None,
            };
            let unknown = || ParseError::at(self.text, self.at + at, "unknown escape");
            found.push(escaped.ok_or_else(unknown)?);
        }
        Err(self.wrong("the string is not closed"))
    }
}

/// The value of a word that names no allocator.
fn constant(word: &str) -> Option<Value> {
    match word {
        "None" => Some(Value::None),
        "True" => Some(Value::Flag(true)),
        "False" => Some(Value::Flag(false)),
        "auto" => Some("auto".into()),
        _ => None,
    }
}

// ---- Errors, with their positions ---------------------------------------------------------------------------------

/// The most characters of an expression that a message quotes.
pub(crate) const SHOWN: usize = 200;
/// The most characters after an error that a message quotes.
const REST: usize = 40;

/// Text that is not an allocator expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    message: String,
}

impl ParseError {
    /// The error that `text` is not an expression because of `why`, at byte `at`.
    fn at(text: &str, at: usize, why: impl Display) -> Self {
        let (before, rest) = text.split_at(at);
        let (text, column) = (quoted(text, SHOWN), before.chars().count() + 1);
        let place = if rest.is_empty() { "the end".into() } else { format!("before {}", quoted(rest, REST)) };
        Self { message: format!("{text} is not an allocator expression: {why}, at character {column}, {place}") }
    }
}

impl Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ParseError {}

// ---- Suggestions: the known word that is nearest to an unknown one ------------------------------------------------

/// Returns `" (did you mean pool?)"`, or an empty string if no known word is near.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let lower = word.to_lowercase();
    let near = known.into_iter().map(|known| (distance(&lower, &known.to_lowercase()), known)).min();
    near.filter(|&(distance, known)| 3 * distance <= word.chars().count().max(known.len()))
        .map_or_else(String::new, |(_, known)| format!(" (did you mean {known}?)"))
}

/// The number of insertions, deletions, replacements and swaps of neighbors that lead from one word to the other
/// (optimal string alignment distance).
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = [vec![0; to.len() + 1], (0..=to.len()).collect(), vec![0; to.len() + 1]];
    for (i, &a) in from.iter().enumerate() {
        let [before, last, row] = &mut rows;
        row[0] = i + 1;
        for (j, &b) in to.iter().enumerate() {
            row[j + 1] = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a == to[j - 1] && from[i - 1] == b {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        rows.rotate_left(1);
    }
    rows[1][to.len()]
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, parse};
    use crate::description::Value::{Allocator, Flag, Float, Integer, None, Text};
    use crate::description::{Argument, Description, Value};

    fn call(name: &str, arguments: Vec<Value>, named: Vec<(&'static str, Value)>) -> Description {
        let by_place = arguments.into_iter().map(|value| Argument { name: Option::None, value });
        let by_name = named.into_iter().map(|(name, value)| Argument { name: Some(name.into()), value });
        Description { name: name.to_owned().into(), arguments: Some(by_place.chain(by_name).collect()) }
    }

    fn says(text: &str, expected: &str) {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(error.len() < 700, "{text}: {} characters", error.len());
    }

    #[test]
    fn calls_and_bare_names() {
        for text in ["pool", "pool()", " pool ( ) ", "ft.pool", "firsttouch.pool()", "pool(\n)"] {
            assert_eq!(parse(text).unwrap(), call("pool", vec![], vec![]), "{text}");
        }
    }

    #[test]
    fn every_kind_of_argument() {
        let text = "f(1, -2, 1000, 1.5, 1e9, .5, -1.5e-3, None, True, False, 'a', \"b\", \
                    pool, ft.pages('thp'), x=1, y=pool(),)";
        let numbers = [1, -2, 1000].map(Integer);
        let mut expected: Vec<Value> = numbers.into();
        expected.extend([1.5, 1e9, 0.5, -1.5e-3].map(Float));
        expected.extend([None, Flag(true), Flag(false), Text("a".into()), Text("b".into())]);
        expected.push(Allocator(call("pool", vec![], vec![])));
        expected.push(Allocator(call("pages", vec![Text("thp".into())], vec![])));
        let named = vec![("x", Integer(1)), ("y", Allocator(call("pool", vec![], vec![])))];
        assert_eq!(parse(text).unwrap(), call("f", expected, named));
    }

    #[test]
    fn control_characters_are_shown_as_they_are_parsed() {
        let text = "\0\x01\t\n\r\x1b\x7f\u{9f} '\\";
        let made = call("f", vec![Text(text.into())], vec![]);
        assert_eq!(parse(&made.to_string()).unwrap(), made, "{made}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "minutes, without unsafe code")]
    fn long_words_of_any_letters_are_no_numbers() {
        for count in 0..80 {
            let word = format!("1{}{}", "2".repeat(count), "\u{e9}".repeat(80));
            assert!(parse(&format!("f({word})")).is_err());
        }
    }

    #[test]
    fn text_and_its_escapes() {
        for (text, expected) in
            [(r"'4 GiB'", "4 GiB"), (r#""it's""#, "it's"), (r"'it\'s'", "it's"), (r"'\\ \n \t \x41 ü'", "\\ \n \t A ü")]
        {
            assert_eq!(parse(&format!("f({text})")).unwrap(), call("f", vec![Text(expected.into())], vec![]), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_and_where() {
        let value = "expected a number, a string, None, True, False or an allocator";
        for (text, expected) in [
            ("", "the allocator expression is empty"),
            (" \n", "the allocator expression is empty"),
            ("pool(", "'(' is never closed, at character 5, before '('"),
            ("pool())", "unmatched ')', at character 7, before ')'"),
            ("pool() pages()", "expected the end, at character 8, before 'pages()'"),
            ("ü.pool()", "expected an allocator's name, at character 1"),
            ("ft.cli.pool()", "expected an allocator's name, at character 1"),
            ("f(ft.None)", "expected an allocator's name, at character 3"),
            ("pool()()", "expected the end, at character 7"),
            ("pool().zeros(3)", "expected the end, at character 7"),
            ("(lambda: pool)()", "expected an allocator's name, at character 1"),
            ("[]", "expected an allocator's name"),
            ("3", "expected an allocator's name"),
            ("x = pool()", "expected the end, at character 3"),
            ("f(x='ü', y=[])", &format!("{value}, at character 12")),
            ("f(x=1, 2)", "an argument without a name follows one with a name, at character 8"),
            ("f(x=1, x=2)", "x= is given twice, at character 8"),
            (
                "aligned(4 * 1024)",
                "expressions are not evaluated: write the number, or a size like \"4 GiB\", at character 11",
            ),
            ("aligned(2**60)", "expressions are not evaluated"),
            ("aligned(64 65)", "expected ',' or ')', at character 12"),
            ("aligned(not 1)", "expected ',' or ')', at character 13"),
            ("aligned(~1)", value),
            ("aligned(--1)", value),
            ("aligned(1j)", "'1j' is not a number"),
            (
                "limited(pool(), 4GiB)",
                "'4GiB' is not a number: a size with a unit is quoted, \"4GiB\", at character 17",
            ),
            ("aligned(b'64')", "expected ',' or ')', at character 10"),
            ("pool(*pages)", value),
            ("pages((1, 2))", value),
            ("pool(\0)", value),
            ("f('a", "the string is not closed, at character 3"),
            (r"f('\q')", "unknown escape, at character 4"),
            (r"f('\xZZ')", "unknown escape, at character 4"),
        ] {
            says(text, expected);
        }
        says(&("(".repeat(5000) + &")".repeat(5000)), "expected an allocator's name");
        says(&("f(".repeat(3000) + &")".repeat(3000)), "nested too deeply");
        says(&("f(".repeat(64) + "rendered_as_a_call" + &")".repeat(64)), "nested too deeply");
        says(&format!("aligned({})", "9".repeat(5000)), "is too large");
    }

    #[test]
    fn any_text_is_an_expression_or_an_error() {
        use proptest::prelude::*;
        proptest!(ProptestConfig::with_cases(if cfg!(miri) { 5 } else { 2000 }), |(text in "[polft(),'\"=*{}.\\-0123 \n#\\\\xü]{0,40}")| {
            match parse(&text) {
                Ok(found) => prop_assert_eq!(parse(&found.to_string()), Ok(found)),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        });
    }

    #[test]
    fn the_nearest_word_where_one_is_near() {
        let known = ["pool", "pages", "mimalloc", "malloc", "decay", "max_idle"];
        for (word, meant) in [
            ("pol", "pool"),
            ("mimaloc", "mimalloc"),
            ("pags", "pages"),
            ("decai", "decay"),
            ("POOL", "pool"),
            ("maxidle", "max_idle"),
        ] {
            assert_eq!(did_you_mean(word, known), format!(" (did you mean {meant}?)"));
        }
        for word in ["__import__", "x", "", "firsttouch"] {
            assert_eq!(did_you_mean(word, known), "");
        }
    }
}
