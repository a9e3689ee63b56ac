//! Handles of shared arrays: a damaged one is refused, or opens no more than there is.

#![no_main]

use firsttouch::shared::{Handle, Shared};
use std::sync::OnceLock;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static GOOD: OnceLock<Option<(Shared, Handle)>> = OnceLock::new();
    let good = GOOD.get_or_init(|| {
        let shared = Shared::new(3 << 20).ok()?;
        let handle = shared.handle().ok()?;
        Some((shared, handle))
    });
    let Some((_, good)) = good else { return };
    let mut words = bytes.chunks(8).map(|part| part.iter().fold(0u64, |word, &byte| word << 8 | u64::from(byte)));
    let Some(which) = words.next() else { return };
    let mut or = |bit: u32, word: usize| match which >> bit & 1 {
        0 => word,
        _ => words.next().unwrap_or(0) as usize,
    };
    let handle = Handle {
        token: if which & 1 == 0 { good.token.clone() } else { String::from_utf8_lossy(bytes).into() },
        process: or(1, good.process as usize) as u32,
        file: or(2, good.file as usize) as i32,
        size: or(3, good.size),
    };
    if let Ok(opened) = Shared::open(&handle, which & 256 == 0) {
        assert!(opened.size() <= 4 << 20, "{} bytes of a file of 3 MiB were mapped", opened.size());
        // SAFETY: the mapping has that many bytes, of a file that is as large.
        let last = unsafe { *((opened.address() + opened.size().max(1) - 1) as *const u8) };
        assert_eq!(last, 0);
    }
});
