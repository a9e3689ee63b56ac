//! Allocator expressions: what parses is shown as an expression that parses to the same.

#![no_main]

use firsttouch::expression::parse;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match parse(text) {
        Ok(description) => {
            let shown = description.to_string();
            assert_eq!(parse(&shown).as_ref().map(ToString::to_string), Ok(shown.clone()), "{text:?}, shown as {shown:?}");
        }
        Err(error) => {
            let length = error.to_string().len();
            assert!(length < 1000 + 4 * text.len(), "a message of {length} bytes for {} of input", text.len());
        }
    }
});
