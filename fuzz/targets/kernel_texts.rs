//! Files of /proc and /sys: a kernel, a container or an emulator may write anything there.

#![no_main]

use firsttouch::numa::Topology;
use firsttouch::os::kernel_texts;
use std::ops::Range;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let topology = Topology::read_by(&|path| text.split('\0').nth(path.len() % 8).map(str::to_owned));
    assert!(topology.nodes.len() <= topology.online().len().max(1));
    for range in [0..usize::MAX, 0x1000..0x2000] {
        let mut found = Vec::new();
        let _ = text.lines().any(|line| kernel_texts::take_mapping(&mut found, &range, line).unwrap().is_break());
        let overlaps = |found: &Range<usize>| found.start < range.end && found.end > range.start;
        assert!(found.iter().all(|mapping| overlaps(&mapping.range)));
    }
    let _ = kernel_texts::kib(text, "MemAvailable");
    for line in text.lines() {
        let _ = kernel_texts::group(line);
    }
});
