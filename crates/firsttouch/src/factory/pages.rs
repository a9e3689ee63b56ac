//! Creates allocators of fresh pages.

use super::arguments::Arguments;
use super::{Call, Error, find};
use crate::allocator::Allocator;
use crate::description::Value;
use crate::numa::policy::Policy;
use crate::pages::placement::{Page, Placement, Populate};
use crate::sources::{Pages, PlacedPages};
use std::sync::Arc;

pub(super) fn pages(arguments: &Arguments<'_>) -> Result<Arc<dyn Allocator>, Error> {
    let placement = of(arguments)?;
    let plain = Placement { pages: placement.pages.clone(), ..Placement::default() };
    if placement == plain && matches!(*placement.pages, [] | [Page::Transparent]) {
        return Ok(Pages::new(!placement.pages.is_empty()));
    }
    Ok(PlacedPages::new(placement))
}

/// The placement that arguments of `pages` request.
///
/// # Errors
/// As for [`build`](super::build).
pub fn placement(call: &Call<'_>) -> Result<Placement, Error> {
    find("pages").map_or_else(|| Ok(Placement::default()), |factory| of(&factory.arguments(call)?))
}

fn of(arguments: &Arguments<'_>) -> Result<Placement, Error> {
    let populate = match arguments.value("populate") {
        Value::Flag(true) => Populate::Best,
        Value::Integer(threads) => Populate::Threads(*threads as usize),
        _ => Populate::No,
    };
    let progress = arguments.is_set("progress");
    if progress && populate == Populate::No {
        return Err(Error::Value("progress=True shows the progress of a prefault: give populate=True, too".into()));
    }
    Ok(Placement {
        pages: sizes(arguments.value("huge"))?,
        populate,
        lock: arguments.is_set("lock"),
        policy: arguments.text("numa").map(Policy::parse).transpose().map_err(Error::Value)?,
        strict: arguments.is_set("strict"),
        progress,
    })
}

/// Normalized page sizes; base pages count only after others.
fn sizes(huge: &Value) -> Result<Vec<Page>, Error> {
    let page = |value: &Value| match value {
        Value::Text(text) => Page::parse(text).map_err(Error::Value),
        _ => Ok(Page::Base),
    };
    match huge {
        Value::Several(sizes) => sizes.iter().map(page).collect(),
        Value::Text(_) => page(huge).map(|page| vec![page]),
        _ => Ok(Vec::new()),
    }
}
