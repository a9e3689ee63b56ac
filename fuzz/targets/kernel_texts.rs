//! Files of /proc and /sys: a kernel, a container or an emulator may write anything there.

#![no_main]

use firsttouch::numa::topology::Topology;
use firsttouch::os::kernel_texts;
use firsttouch::residency::mappings_in;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let topology = Topology::read_by(&|path| text.split('\0').nth(path.len() % 8).map(str::to_owned));
    assert!(topology.nodes.len() <= topology.online().len().max(1));
    for range in [0..usize::MAX, 0x1000..0x2000] {
        let _ = mappings_in(text.lines(), &range);
        for line in text.lines() {
            if let Some(part) = kernel_texts::shared_part(line, &range) {
                assert!(part.bytes.start <= part.bytes.end);
            }
        }
    }
    let _ = kernel_texts::kib(text, "MemAvailable");
    for line in text.lines() {
        let _ = kernel_texts::group(line);
    }
});
