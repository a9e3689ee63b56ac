//! Files of /proc and /sys: a kernel, a container or an emulator may write anything there.

#![no_main]

use firsttouch::numa::Topology;
use firsttouch::os::kernel_texts;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let topology = Topology::read_by(&|path| text.split('\0').nth(path.len() % 8).map(str::to_owned));
    assert!(topology.nodes.len() <= topology.online().len().max(1));
    let _ = kernel_texts::kib(text, "MemAvailable");
    for line in text.lines() {
        let _ = (kernel_texts::group(line), kernel_texts::mapping(line));
    }
});
