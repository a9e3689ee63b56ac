//! Trace files: summaries of any bytes end, with an error or a result, and hold no more than the input deserves.

#![no_main]

use firsttouch_trace::Summary;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for allow_truncated in [false, true] {
        let _ = Summary::new(bytes, allow_truncated);
    }
});
