//! Allocator expressions: `limited(pool(pages(huge="2M")), "4 GiB")`.
//!
//! The grammar is the same on the command line and in every language. An expression is parsed, never evaluated: a
//! name, and in parentheses arguments that are numbers, strings, `None`, `True`, `False`, other expressions, or tuples
//! of these. A bare name is a call without arguments; it may be preceded by `ft.` or `firsttouch.`.
//!
//! [`parse`] converts text to the [`Description`] that an allocator would return for
//! itself, which is rendered as such an expression. The meaning of names is up to the code that creates allocators.

use crate::description::{Argument, Description, Value, quoted};
use crate::size;
use std::fmt::{self, Display, Write};

// ---- The parser, from tokens to a tree ----------------------------------------------------------------------------

/// What may precede a name.
const PACKAGES: [&str; 2] = ["ft", "firsttouch"];
/// How deep calls and tuples may nest: far more than needed, and far from the end of a thread's stack.
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
        return Err(ParseError::empty());
    }
    let mut lexer = Lexer::new(text);
    let (token, at) = lexer.next()?;
    let mut parser = Parser { lexer, token, at, depth: 0 };
    let found = parser.allocator()?;
    match parser.token {
        Token::End => Ok(found),
        Token::Mark(")") => Err(parser.wrong("unmatched ')'")),
        _ => Err(parser.wrong("expected the end")),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next token, and its offset.
    token: Token<'a>,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn wrong(&self, why: impl Display) -> ParseError {
        ParseError::at(self.lexer.text, self.at, why)
    }

    fn advance(&mut self) -> Result<(), ParseError> {
        (self.token, self.at) = self.lexer.next()?;
        Ok(())
    }

    /// Skips `mark` if it is the next token; returns whether it was.
    fn passes(&mut self, mark: &str) -> Result<bool, ParseError> {
        let found = matches!(self.token, Token::Mark(next) if next == mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn deeper(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST { Err(self.wrong("nested too deeply")) } else { Ok(()) }
    }

    /// `name`, `ft.name`, `name(arguments)`
    fn allocator(&mut self) -> Result<Description, ParseError> {
        let Token::Name(first) = self.token else { return Err(self.wrong(NAME)) };
        let start = self.at;
        self.advance()?;
        self.call_of(first, start)
    }

    /// The same after its first name, which began at `start`.
    fn call_of(&mut self, first: &'a str, start: usize) -> Result<Description, ParseError> {
        let wrong = |parser: &Self| ParseError::at(parser.lexer.text, start, NAME);
        let mut name = first;
        if self.passes(".")? {
            let Token::Name(second) = self.token else { return Err(self.wrong(NAME)) };
            self.advance()?;
            let named = PACKAGES.contains(&first) && !is_constant(second); // a constant would be rendered as one
            if !named || matches!(self.token, Token::Mark(".")) {
                return Err(wrong(self));
            }
            name = second;
        }
        let mut arguments = Vec::new();
        self.deeper()?; // a bare name, too: it is rendered as a call
        if matches!(self.token, Token::Mark("(")) {
            self.arguments(&mut arguments)?;
        }
        self.depth -= 1;
        Ok(Description { name: name.to_owned().into(), arguments: Some(arguments) })
    }

    fn arguments(&mut self, call: &mut Vec<Argument>) -> Result<(), ParseError> {
        let opened = self.at;
        self.advance()?;
        while !self.passes(")")? {
            self.argument(call, opened)?;
            self.separator(opened)?;
        }
        Ok(())
    }

    /// `value` or `name=value`
    fn argument(&mut self, call: &mut Vec<Argument>, opened: usize) -> Result<(), ParseError> {
        let start = self.at;
        match self.token {
            Token::Mark(stars @ ("*" | "**")) => {
                Err(self.wrong(format_args!("unpacking with {stars} is not supported")))
            }
            Token::Name(word) if !is_constant(word) => {
                self.advance()?;
                if self.passes("=")? {
                    if call.iter().any(|argument| argument.name.as_deref() == Some(word)) {
                        return Err(ParseError::at(self.lexer.text, start, format_args!("{word}= is given twice")));
                    }
                    let value = self.value(opened)?;
                    call.push(Argument { name: Some(word.to_owned().into()), value });
                    return Ok(());
                }
                let value = Value::Allocator(self.call_of(word, start)?);
                self.positional(call, value, start)
            }
            _ => {
                let value = self.value(opened)?;
                self.positional(call, value, start)
            }
        }
    }

    fn positional(&self, call: &mut Vec<Argument>, value: Value, start: usize) -> Result<(), ParseError> {
        if call.last().is_some_and(|argument| argument.name.is_some()) {
            let why = "an argument without a name follows one with a name";
            return Err(ParseError::at(self.lexer.text, start, why));
        }
        call.push(Argument { name: None, value });
        Ok(())
    }

    /// After an argument: skips a comma, or stops before the closing parenthesis.
    fn separator(&mut self, opened: usize) -> Result<(), ParseError> {
        if self.passes(",")? || matches!(self.token, Token::Mark(")")) {
            return Ok(());
        }
        Err(match self.token {
            Token::End => ParseError::at(self.lexer.text, opened, "'(' is never closed"),
            Token::Mark("+" | "-" | "*" | "**") => self.wrong(NOT_EVALUATED),
            _ => self.wrong("expected ',' or ')'"),
        })
    }

    fn value(&mut self, opened: usize) -> Result<Value, ParseError> {
        let value = match &self.token {
            Token::End => return Err(ParseError::at(self.lexer.text, opened, "'(' is never closed")),
            Token::Literal(value) => value.clone(),
            Token::Name("None") => Value::None,
            Token::Name("True") => Value::Flag(true),
            Token::Name("False") => Value::Flag(false),
            Token::Name("auto") => "auto".into(),
            Token::Name(_) => return Ok(Value::Allocator(self.allocator()?)),
            Token::Mark("(") => return self.parenthesized(),
            Token::Mark(sign @ ("+" | "-")) => return self.signed(*sign == "-"),
            _ => return Err(self.wrong(VALUE)),
        };
        self.advance()?;
        Ok(value)
    }

    /// A number after its sign.
    fn signed(&mut self, negative: bool) -> Result<Value, ParseError> {
        let start = self.at;
        self.advance()?;
        let value = match self.token {
            Token::Literal(Value::Integer(number)) => Value::Integer(if negative { -number } else { number }),
            Token::Literal(Value::Float(number)) => Value::Float(if negative { -number } else { number }),
            _ => return Err(ParseError::at(self.lexer.text, start, VALUE)),
        };
        self.advance()?;
        Ok(value)
    }

    /// A tuple, or a single value in parentheses.
    fn parenthesized(&mut self) -> Result<Value, ParseError> {
        self.deeper()?;
        let opened = self.at;
        self.advance()?;
        let mut values = Vec::new();
        let mut comma = false;
        while !self.passes(")")? {
            values.push(self.value(opened)?);
            comma = matches!(self.token, Token::Mark(","));
            self.separator(opened)?;
        }
        self.depth -= 1;
        Ok(match values.pop() {
            Some(one) if values.is_empty() && !comma => one,
            last => {
                values.extend(last);
                Value::Several(values)
            }
        })
    }
}

fn is_constant(word: &str) -> bool {
    matches!(word, "None" | "True" | "False" | "auto")
}

// ---- Tokens: names, literals and punctuation ----------------------------------------------------------------------

/// The kind of a token.
#[derive(Clone, Debug, PartialEq)]
enum Token<'a> {
    /// Letters, digits and underscores, not beginning with a digit.
    Name(&'a str),
    /// A number or text.
    Literal(Value),
    /// `(`, `)`, `,`, `=`, `.`, `+`, `-`, `*` and `**`
    Mark(&'a str),
    /// Any other character.
    Other,
    End,
}

/// Reads one token at a time.
struct Lexer<'a> {
    text: &'a str,
    /// The offset of the next token in bytes.
    at: usize,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token and its offset, after blanks and comments.
    fn next(&mut self) -> Result<(Token<'a>, usize), ParseError> {
        self.skip();
        let (start, rest) = (self.at, &self.text[self.at..]);
        let Some(first) = rest.chars().next() else { return Ok((Token::End, start)) };
        let (token, len) = match first {
            '(' | ')' | ',' | '=' | '+' | '-' => (Token::Mark(&rest[..1]), 1),
            '*' => {
                let len = rest.len() - rest.trim_start_matches('*').len();
                (Token::Mark(&rest[..len]), len)
            }
            '\'' | '"' => {
                let (text, len) = string(rest).map_err(|(at, why)| ParseError::at(self.text, start + at, why))?;
                (Token::Literal(Value::Text(text.into())), len)
            }
            _ if first.is_ascii_digit() || is_fraction(rest) => {
                let len = number_len(rest);
                let value = number(&rest[..len]).map_err(|why| ParseError::at(self.text, start, why))?;
                (Token::Literal(value), len)
            }
            '.' => (Token::Mark(&rest[..1]), 1),
            _ if first == '_' || first.is_alphabetic() => {
                let len = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
                if rest[len..].starts_with(['\'', '"']) {
                    let why = format!("only plain strings, without the prefix {}", &rest[..len]);
                    return Err(ParseError::at(self.text, start, why));
                }
                (Token::Name(&rest[..len]), len)
            }
            _ => (Token::Other, first.len_utf8()),
        };
        self.at = start + len;
        Ok((token, start))
    }

    fn skip(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start().len();
            self.at += blank;
            if !rest[blank..].starts_with('#') {
                return;
            }
            self.at += rest[blank..].find('\n').unwrap_or(rest.len() - blank);
        }
    }
}

/// Whether a number begins with its decimal point.
fn is_fraction(rest: &str) -> bool {
    rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

// ---- Literals: numbers and strings --------------------------------------------------------------------------------

/// The most digits of a number that a message quotes.
const DIGITS: usize = 40;

/// The length of the number at the beginning of `rest`, up to the first character that cannot belong to one.
fn number_len(rest: &str) -> usize {
    let mut last = ' ';
    let ends = |(_, c): &(usize, char)| {
        let signs = matches!(c, '+' | '-') && matches!(last, 'e' | 'E') && !rest.starts_with("0x");
        last = *c;
        !(c.is_alphanumeric() || matches!(c, '_' | '.') || signs)
    };
    rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at)
}

/// Parses a number: decimal, `0x`, `0o` or `0b`, with single underscores between digits.
fn number(text: &str) -> Result<Value, String> {
    let cut = text.char_indices().nth(DIGITS);
    let shown = cut.map_or_else(|| text.to_owned(), |(end, _)| format!("{}...", &text[..end]));
    let is_size = text.ends_with(char::is_alphabetic) && size::parse(text).is_ok();
    let quoted = if is_size { format!(": a size with a unit is quoted, \"{shown}\"") } else { String::new() };
    let not_one = || format!("{shown} is not a number{quoted}");
    if !text.is_ascii() || text.starts_with('_') || text.ends_with('_') || text.contains("__") {
        return Err(not_one());
    }
    let digits = text.replace('_', "");
    let (radix, body) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0o" | "0O") => (8, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        _ => (10, &digits[..]),
    };
    if !body.is_empty() && body.chars().all(|c| c.is_digit(radix)) {
        let leads = radix == 10 && body.len() > 1 && body.starts_with('0') && body.bytes().any(|digit| digit != b'0');
        if leads {
            return Err(not_one());
        }
        return i128::from_str_radix(body, radix).map(Value::Integer).map_err(|_| format!("{shown} is too large"));
    }
    let plain = radix == 10 && body.bytes().all(|c| matches!(c, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    body.parse().ok().filter(|number: &f64| plain && number.is_finite()).map(Value::Float).ok_or_else(not_one)
}

/// Parses the quoted string at the beginning of `rest`. Returns it and its length in bytes, or the byte of an error.
fn string(rest: &str) -> Result<(String, usize), (usize, String)> {
    let quote = rest.chars().next().unwrap_or('\'');
    let mut found = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\n' => break,
            '\\' => {
                let Some((_, escape)) = chars.next() else { break };
                let simple = match escape {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    '0' => '\0',
                    '\\' | '\'' | '"' => escape,
                    'x' => code(&mut chars, 2).ok_or_else(|| (at, wrong_digits(escape, 2)))?,
                    'u' => code(&mut chars, 4).ok_or_else(|| (at, wrong_digits(escape, 4)))?,
                    'U' => code(&mut chars, 8).ok_or_else(|| (at, wrong_digits(escape, 8)))?,
                    _ => return Err((at, format!("unknown escape \\{}", escape.escape_default()))),
                };
                found.push(simple);
            }
            _ if c == quote => return Ok((found, at + 1)),
            _ => found.push(c),
        }
    }
    Err((0, "the string is not closed".into()))
}

/// The character whose code is given by the next `count` hexadecimal digits.
fn code(chars: &mut impl Iterator<Item = (usize, char)>, count: usize) -> Option<char> {
    let mut number = 0;
    for _ in 0..count {
        number = number * 16 + chars.next()?.1.to_digit(16)?;
    }
    char::from_u32(number)
}

fn wrong_digits(escape: char, count: usize) -> String {
    format!("\\{escape} is followed by {count} hexadecimal digits")
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
    fn empty() -> Self {
        Self { message: "the allocator expression is empty".into() }
    }

    /// The error that `text` is not an expression because of `why`, at byte `at`.
    fn at(text: &str, at: usize, why: impl Display) -> Self {
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
    use super::{did_you_mean, distance, parse};
    use crate::description::Value::{Allocator, Flag, Float, Integer, None, Several, Text};
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
        for text in ["pool", "pool()", " pool ( ) ", "ft.pool", "firsttouch.pool()", "pool(\n  # nothing\n)"] {
            assert_eq!(parse(text).unwrap(), call("pool", vec![], vec![]), "{text}");
        }
    }

    #[test]
    fn every_kind_of_argument() {
        let text = "f(1, -2, +3, 0x10_000, 1_000, 0b101, 0o17, 1.5, 1e9, .5, -1.5e-3, None, True, False, 'a', \"b\", (), \
                    (1,), ('2M', 'thp'), (7), pool, ft.pages('thp'), x=1, y=pool(),)";
        let numbers = [1, -2, 3, 0x10_000, 1000, 5, 15].map(Integer);
        let mut expected: Vec<Value> = numbers.into();
        expected.extend([1.5, 1e9, 0.5, -1.5e-3].map(Float));
        expected.extend([None, Flag(true), Flag(false), Text("a".into()), Text("b".into()), Several(vec![])]);
        expected.extend([Several(vec![Integer(1)]), Several(vec![Text("2M".into()), Text("thp".into())]), Integer(7)]);
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
        for (text, expected) in [
            (r"'4 GiB'", "4 GiB"),
            (r#""it's""#, "it's"),
            (r"'it\'s'", "it's"),
            (r"'\\ \n \t \x41 \u00fc \U0001F600'", "\\ \n \t A ü 😀"),
            ("'ü'", "ü"),
        ] {
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
            ("aligned(-True)", value),
            ("aligned(1j)", "1j is not a number"),
            ("aligned(007)", "007 is not a number, at"),
            ("limited(pool(), 4GiB)", "4GiB is not a number: a size with a unit is quoted, \"4GiB\", at character 17"),
            ("aligned(1__0)", "1__0 is not a number"),
            ("aligned(b'64')", "only plain strings, without the prefix b, at character 9"),
            ("aligned(...)", value),
            ("pool(*pages)", "unpacking with * is not supported, at character 6"),
            ("pool(**pages)", "unpacking with ** is not supported, at character 6"),
            ("pool(\0)", value),
            ("f('a", "the string is not closed, at character 3"),
            ("f('a\nb')", "the string is not closed, at character 3"),
            (r"f('\q')", r"unknown escape \q, at character 4"),
            (r"f('\xZZ')", r"\x is followed by 2 hexadecimal digits, at character 4"),
            ("pool(\n3 +)", "of line 2"),
        ] {
            says(text, expected);
        }
        says(&("(".repeat(5000) + &")".repeat(5000)), "expected an allocator's name");
        says(&("f(".to_owned() + &"(".repeat(5000) + &")".repeat(5000) + ")"), "nested too deeply");
        says(&("f(".repeat(3000) + &")".repeat(3000)), "nested too deeply");
        says(&("f(".repeat(64) + "rendered_as_a_call" + &")".repeat(64)), "nested too deeply");
        says(&format!("aligned({})", "9".repeat(5000)), "is too large");
    }

    #[test]
    fn what_is_rendered_parses_back() {
        for text in
            ["pool(pages(huge='thp'), max_idle=None, decay=1.0)", "f((1,), (1, 2), \"it's\", -3, x=True, y=(), z=0.5)"]
        {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
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

    #[test]
    fn distances() {
        for (from, to, expected) in
            [("", "", 0), ("a", "", 1), ("", "ab", 2), ("ab", "ba", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!((distance(from, to), distance(to, from)), (expected, expected), "{from} {to}");
        }
    }
}
