//! Literals: numbers and strings.

use crate::description::Value;
use crate::size;

/// The most digits of a number that a message quotes.
const SHOWN: usize = 40;

/// The length of the number at the beginning of `rest`, up to the first character that cannot belong to one.
pub(super) fn number_len(rest: &str) -> usize {
    let mut last = ' ';
    let ends = |(_, c): &(usize, char)| {
        let signs = matches!(c, '+' | '-') && matches!(last, 'e' | 'E') && !rest.starts_with("0x");
        last = *c;
        !(c.is_alphanumeric() || matches!(c, '_' | '.') || signs)
    };
    rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at)
}

/// Parses a number: decimal, `0x`, `0o` or `0b`, with single underscores between digits.
pub(super) fn number(text: &str) -> Result<Value, String> {
    let cut = text.char_indices().nth(SHOWN);
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
pub(super) fn text(rest: &str) -> Result<(String, usize), (usize, String)> {
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
