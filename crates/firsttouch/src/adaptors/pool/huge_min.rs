//! From which size on requests come from memory that is advised huge.

use crate::heap::shape::huge_page;
use crate::os;

/// Where huge pages have 2 MiB, which several blocks share.
const HUGE_MIN: usize = 512 << 10;
/// The same for zeroed requests, which may be sparse. NumPy's threshold is the same.
const HUGE_MIN_ZEROED: usize = 4 << 20;

/// The largest huge page that several blocks share.
const SHARED_MAX: usize = 2 << 20;

/// Whether several blocks share a huge page.
pub(super) fn shares() -> bool {
    os::huge_page_size().is_some_and(|page| page <= SHARED_MAX)
}

/// The least size of requests that come from memory that is advised huge; where huge pages are larger, half of one. (With
/// base pages of 16 KiB a huge page has 32 MiB, with 64 KiB it has 512: one small array would take all of it.) Zeroed
/// requests never do where it is larger than their threshold: two sparse arrays of 200 MiB took 443 MB, and NumPy's 7.
#[inline]
pub fn huge_min(zeroed: bool) -> usize {
    match (huge_page(), zeroed) {
        (..=SHARED_MAX, false) => HUGE_MIN,
        (page, false) => page / 2,
        (page, true) if page > HUGE_MIN_ZEROED => usize::MAX,
        (_, true) => HUGE_MIN_ZEROED,
    }
}
