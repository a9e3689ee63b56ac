//! Files of /proc and /sys: a kernel, a container or an emulator may write anything there.

#![no_main]

use firsttouch::numa::topology::Topology;
use firsttouch::os::kernel_texts;
use std::ops::{ControlFlow, Range};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let topology = Topology::read_by(&|path| text.split('\0').nth(path.len() % 8).map(str::to_owned));
    assert!(topology.nodes.len() <= topology.online().len().max(1));
    for range in [0..usize::MAX, 0x1000..0x2000] {
        let mut mappings = kernel_texts::Mappings::of(&range);
        let _ = text.lines().map(|line| mappings.take(line)).find(ControlFlow::is_break);
        let overlaps = |found: &Range<usize>| found.start < range.end && found.end > range.start;
        assert!(mappings.found().unwrap().iter().all(|mapping| overlaps(&mapping.range)));
    }
    let _ = kernel_texts::kib(text, "MemAvailable");
    for line in text.lines() {
        let _ = kernel_texts::group(line);
    }
});
