//! Creates allocators that wrap another.

use super::arguments::Arguments;
use super::{Error, upstream_of};
use crate::adaptors::{
    AUTO, Budget, CallSites, Filled, Guarded, GuardedOptions, Limited, Options, Pool, Side, Tracked,
};
use crate::allocator::Allocator;
use crate::description::Value;
use crate::numa::policy::Policy;
use crate::sources::Pages;
use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

type Made = Result<Arc<dyn Allocator>, Error>;

/// How the front finds the source line that makes a request.
static CALL_SITES: OnceLock<CallSites> = OnceLock::new();

/// Registers how source lines are found, for `tracked(lines=True)` and the messages of `limited`. The first is kept.
pub fn set_call_sites(call_sites: CallSites) {
    let _ = CALL_SITES.set(call_sites);
}

pub(super) fn pool(arguments: &Arguments<'_>) -> Made {
    let policy = arguments.text("numa").map(Policy::parse).transpose().map_err(Error::Value)?;
    let decay = match arguments.value("decay") {
        Value::Float(seconds) => Duration::try_from_secs_f64(*seconds).ok(),
        _ => None,
    };
    let options = Options { max_idle: arguments.number("max_idle"), decay, ..Options::default() };
    let upstream = upstream_of(&arguments.caller(), arguments.given_upstream(), policy)?;
    let Some(upstream) = upstream else { return Ok(Pool::new(options)) };
    // A pool over pages is a pool with a heap, which can split blocks, join them, and return parts.
    let any: &dyn Any = upstream.as_ref();
    match any.downcast_ref::<Pages>() {
        Some(pages) => Ok(Pool::new(Options { huge: pages.huge(), ..options })),
        None => Ok(Pool::over(upstream, options)),
    }
}

pub(super) fn tracked(arguments: &Arguments<'_>) -> Made {
    let site = CALL_SITES.get().filter(|_| arguments.is_set("lines")).map(|sites| sites.site);
    if site.is_none() && arguments.is_set("lines") {
        return Err(Error::Value("lines=True: source lines are not available here; give False".into()));
    }
    Ok(Tracked::new(arguments.upstream()?, site))
}

pub(super) fn limited(arguments: &Arguments<'_>) -> Made {
    let at_most = arguments.number("at_most");
    let is_auto = arguments.text("budget") == Some(AUTO);
    if at_most.is_some() && !is_auto {
        return Err(Error::Value("at_most= bounds the budget \"auto\": give it with \"auto\", or leave it out".into()));
    }
    if at_most == Some(0) {
        return Err(Error::Value("at_most=0 would serve no array: give at least 1 byte".into()));
    }
    let upstream = arguments.upstream()?; // before the budget is read, as it may take memory
    let budget = match arguments.number("budget") {
        Some(bytes) => Budget::from(bytes),
        None => Budget::found(at_most),
    };
    Ok(Limited::with_call_sites(upstream, budget, CALL_SITES.get().copied()))
}

pub(super) fn guarded(arguments: &Arguments<'_>) -> Made {
    let side = if arguments.text("side") == Some("before") { Side::Before } else { Side::After };
    let options = GuardedOptions { side, keep: arguments.number("keep").unwrap_or_default() };
    Ok(Guarded::new(arguments.upstream()?, options))
}

pub(super) fn filled(arguments: &Arguments<'_>) -> Made {
    let byte = |name| arguments.number(name).map(|byte| byte as u8); // was checked
    Ok(Filled::new(arguments.upstream()?, byte("on_allocate"), byte("on_free")))
}
