//! The upstream of allocators that reuse blocks, such as pools and scratch buffers.

use super::{Argument, Error};
use crate::allocator::{Allocator, find};
use crate::numa::policy::Policy;
use crate::pages::placement::{Page, Placement};
use crate::sources::PlacedPages;
use std::sync::Arc;

/// The upstream of what `caller` creates: the given one, huge pages with a policy, or `None` for the default.
///
/// # Errors
/// If both are given, and for slabs: a reused block would lie on the nodes of another array's slabs.
pub fn upstream_of(
    caller: &str,
    given: Option<&dyn Argument>,
    numa: Option<Policy>,
) -> Result<Option<Arc<dyn Allocator>>, Error> {
    let found = match (given, numa) {
        (None, None) => return Ok(None),
        (Some(given), None) => given.upstream(caller)?,
        (Some(given), Some(numa)) => {
            let given = given.given()?;
            let shown = given.shown();
            return Err(Error::Value(format!(
                "{caller} got upstream={shown} and numa='{numa}': give one of them, or an upstream that says where, like \
                 pages(huge='2M', numa='{numa}')"
            )));
        }
        (None, Some(_)) => {
            let pages = vec![Page::Transparent];
            PlacedPages::new(Placement { pages, policy: numa, ..Placement::default() })
        }
    };
    match find::<PlacedPages>(&found).and_then(|pages| pages.placement().policy) {
        Some(slabs @ Policy::Blocked(_)) => Err(Error::Value(format!(
            "{caller} cannot use numa='{slabs}': its blocks are reused for other arrays, whose slabs would lie \
                 elsewhere; give single arrays pages(numa='{slabs}'), or {caller} numa='interleave:all'"
        ))),
        _ => Ok(Some(found)),
    }
}
