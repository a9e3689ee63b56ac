//! The tokens of an expression: names, literals and punctuation.

use super::error::ParseError;
use super::literal;
use crate::description::Value;

/// The kind of a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
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
pub(super) struct Lexer<'a> {
    pub text: &'a str,
    /// The offset of the next token in bytes.
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token and its offset, after blanks and comments.
    pub(super) fn next(&mut self) -> Result<(Token<'a>, usize), ParseError> {
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
                let (text, len) =
                    literal::text(rest).map_err(|(at, why)| ParseError::at(self.text, start + at, why))?;
                (Token::Literal(Value::Text(text.into())), len)
            }
            _ if first.is_ascii_digit() || is_fraction(rest) => {
                let len = literal::number_len(rest);
                let value = literal::number(&rest[..len]).map_err(|why| ParseError::at(self.text, start, why))?;
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
