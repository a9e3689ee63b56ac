//! Migrates and collapses pages that may lie in a segment, whose locality bits are cleared first.

use crate::heap::locality;
use crate::numa::policy::Orders;
use crate::os::Errno;
use crate::pages::mapping;
use crate::pages::migration::{self, Migration};
use crate::pages::receipt::Reason;
use crate::pages::touch::GoOn;

/// Moves the pages of a range to the nodes that `orders` name.
///
/// # Errors
/// If the kernel or the container permits no migration, or `go_on` returns `false`.
pub fn migrate(range: (usize, usize), orders: &Orders, go_on: GoOn<'_>) -> Result<Migration, Errno> {
    locality::forget(range.0, range.1);
    migration::migrate(range, orders, go_on)
}

/// Replaces the base pages of a range by huge pages where a whole huge page fits. Returns the bytes that are on huge
/// pages now, and why others are not.
pub fn collapse(range: (usize, usize), go_on: GoOn<'_>) -> (usize, Option<Reason>) {
    locality::forget(range.0, range.1); // a huge page is made where most of its small ones were
    mapping::collapse(range, go_on)
}
