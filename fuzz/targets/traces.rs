//! Trace files: summaries and surveys of any bytes end, with an error or a result, and hold no more than the input deserves.

#![no_main]

use firsttouch_trace::Survey;
use firsttouch_trace::summary::Summary;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for allow_truncated in [false, true] {
        let survey = Survey::new(bytes, allow_truncated);
        let _ = survey.map(|survey| Summary::new(bytes, &survey, 1 << 20));
    }
});
