//! Text: expressions of allocators, what is wrong with others, the nearest word; and numbers of bytes.

use firsttouch::description::Value::{Allocator, Flag, Float, Integer, None, Text};
use firsttouch::description::{Argument, Description, Value};
use firsttouch::expression::{did_you_mean, parse};
use firsttouch::size::{self, Bytes};

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
    let text = "f(1, -2, 1000, 1.5, 1e9, .5, -1.5e-3, None, True, False, '', \"it's\", 'ü b', \
                4GiB, 1j, --1, pool, ft.pages('thp'), x=1, y=pool(),)";
    let numbers = [1, -2, 1000].map(Integer);
    let mut expected: Vec<Value> = numbers.into();
    expected.extend([1.5, 1e9, 0.5, -1.5e-3].map(Float));
    expected.extend([None, Flag(true), Flag(false)]);
    expected.extend(["", "it's", "ü b", "4GiB", "1j", "--1"].map(|text| Text(text.into())));
    expected.push(Allocator(call("pool", vec![], vec![])));
    expected.push(Allocator(call("pages", vec![Text("thp".into())], vec![])));
    let named = vec![("x", Integer(1)), ("y", Allocator(call("pool", vec![], vec![])))];
    assert_eq!(parse(text).unwrap(), call("f", expected, named));
}

#[test]
fn what_is_wrong_and_where() {
    let value = "expected a number, a string, None, True, False or an allocator";
    for (text, expected) in [
        ("", "the allocator expression is empty"),
        ("pool(", "a '(' is not closed, at character 6, the end"),
        ("pool())", "unmatched ')', at character 7, before ')'"),
        ("pool() pages()", "expected the end, at character 8, before 'pages()'"),
        ("ü.pool()", "expected an allocator's name, at character 1"),
        ("f(ft.None)", "expected an allocator's name, at character 3"),
        ("pool()()", "expected the end, at character 7"),
        ("(lambda: pool)()", "expected an allocator's name, at character 1"),
        ("f(x='ü', y=[])", &format!("{value}, at character 12")),
        (
            "aligned(4 * 1024)",
            "expressions are not evaluated: write the number, or a size like \"4 GiB\", at character 11",
        ),
        ("aligned(64 65)", "expected ',' or ')', at character 12"),
        ("aligned(~1)", value),
        ("aligned(b'64')", "expected ',' or ')', at character 10"),
        ("pool(\0)", value),
        ("f('a", "the string is not closed, or has a backslash or a control character, at character 5, the end"),
        (r"f('\q')", "a control character, at character 4"),
        ("f('\n')", "a control character, at character 4"),
    ] {
        says(text, expected);
    }
    says(&("(".repeat(5000) + &")".repeat(5000)), "expected an allocator's name");
    says(&("f(".repeat(3000) + &")".repeat(3000)), "nested too deeply");
    says(&("f(".repeat(64) + "rendered_as_a_call" + &")".repeat(64)), "nested too deeply");
}

#[test]
fn any_text_is_an_expression_or_an_error() {
    use proptest::prelude::*;
    proptest!(ProptestConfig::with_cases(2000), |(text in "[polft(),'\"=*{}.\\-0123 \n#\\\\xü]{0,40}")| {
        match parse(&text) {
            Ok(found) => prop_assert_eq!(parse(&found.to_string()), Ok(found)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    });
}

#[test]
fn the_nearest_word_where_one_is_near() {
    let known = ["pool", "pages", "mimalloc", "malloc", "decay", "max_idle"];
    for (word, meant) in [("pol", "pool"), ("mimaloc", "mimalloc"), ("POOL", "pool"), ("maxidle", "max_idle")] {
        assert_eq!(did_you_mean(word, known), format!(" (did you mean {meant}?)"));
    }
    for word in ["__import__", "x", "", "firsttouch"] {
        assert_eq!(did_you_mean(word, known), "");
    }
}

#[test]
fn amounts_are_in_the_largest_unit() {
    for (bytes, text) in [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1000, "1000 bytes"),
        (1024, "1 KiB"),
        (3 << 19, "1.5 MiB"),
        (80_000_000, "76.29 MiB"),
        ((64 << 20) + 8, "64.00 MiB"),
        ((12 << 20) + 4096, "12.00 MiB"),
        ((1 << 20) - 1, "1024.00 KiB"),
        (8 << 30, "8 GiB"),
        (1 << 62, "4 EiB"),
    ] {
        assert_eq!(Bytes(bytes).to_string(), text);
    }
}

#[test]
fn accepts_numbers_with_units() {
    for (text, bytes) in [
        ("65536", 65536),
        ("64 KiB", 65536),
        ("4 GB ", 4_000_000_000),
        ("4gib", 4 << 30),
        ("1.5 MiB", 3 << 19),
        ("512m", 512 << 20),
        ("1_000", 1000),
        ("0", 0),
        ("10 b", 10),
        ("2T", 2 << 40),
    ] {
        assert_eq!(size::parse(text), Ok(bytes), "{text}");
    }
}

#[test]
fn rejects_everything_else() {
    for text in ["lots", "", "-1", "4 GiBB", "1..5 G", ".", "GiB", "1e9", "NaN", "four", "99999999999 TiB"] {
        let message = size::parse(text).unwrap_err();
        assert!(message.contains(&format!("{text:?}")), "{message}");
    }
    assert!(size::parse("lots").unwrap_err().contains("64 KiB"));
}
