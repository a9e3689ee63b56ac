//! From which size on requests come from memory that is advised huge.

use crate::heap::shape::huge_page;

/// Where huge pages have 2 MiB.
const HUGE_MIN: usize = 1 << 20;
/// The same for zeroed requests, which may be sparse. NumPy's threshold is the same.
const HUGE_MIN_ZEROED: usize = 4 << 20;

/// The least size of requests that come from memory that is advised huge: half a huge page, for zeroed requests all of it.
/// (With base pages of 16 KiB a huge page has 32 MiB, with 64 KiB it has 512: one small array would take all of it.)
#[inline]
pub fn huge_min(zeroed: bool) -> usize {
    if zeroed { HUGE_MIN_ZEROED.max(huge_page()) } else { HUGE_MIN.max(huge_page() / 2) }
}
