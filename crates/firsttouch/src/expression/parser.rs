//! The parser, from tokens to a tree.

use super::error::ParseError;
use super::lexer::{Lexer, Token};
use crate::description::{Argument, Description, Value};
use std::fmt::Display;

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
