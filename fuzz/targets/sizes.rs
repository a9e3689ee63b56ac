//! Sizes, NUMA policies and lists of numbers.

#![no_main]

use firsttouch::layout::MAX_SIZE;
use firsttouch::numa::Policy;
use firsttouch::os::Nodes;
use firsttouch::size;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(bytes) = size::parse(text) {
        assert!(bytes <= MAX_SIZE);
        assert_eq!(size::parse(&bytes.to_string()), Ok(bytes));
    }
    let _ = Policy::parse(text);
    if let Some(nodes) = Nodes::parse(text) {
        assert_eq!(nodes.iter().count(), nodes.len());
    }
});
