//! Allocator expressions: `limited(pool(pages(huge="2M")), "4 GiB")`.
//!
//! The grammar is the same on the command line and in every language. An expression is parsed, never evaluated: a
//! name, and in parentheses arguments that are numbers, strings, `None`, `True`, `False`, other expressions, or tuples
//! of these. A bare name is a call without arguments; it may be preceded by `ft.` or `firsttouch.`.
//!
//! [`parse`] converts text to the [`Description`](crate::description::Description) that an allocator would return for
//! itself, which is rendered as such an expression. The meaning of names is up to the code that creates allocators.

mod error;
mod lexer;
mod literal;
mod parser;
mod suggestion;

pub use error::ParseError;
pub(crate) use parser::DEEPEST;
pub use parser::parse;
pub use suggestion::did_you_mean;

#[cfg(test)]
mod tests {
    use super::parse;
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
}
