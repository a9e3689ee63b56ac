//! Creates allocators that wrap another.

use super::arguments::Arguments;
use super::{Error, upstream_of};
use crate::adaptors::{Filled, Guarded, GuardedOptions, Limited, Options, Pool, Side, Tracked};
use crate::allocator::Allocator;
use crate::description::Value;
use crate::numa::policy::Policy;
use crate::sources::Pages;
use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

type Made = Result<Arc<dyn Allocator>, Error>;

/// Returns the source line that makes a request.
static CALL_SITE: OnceLock<fn() -> u64> = OnceLock::new();

/// Registers the function that returns the source line of a request, for `tracked(lines=True)`. The first one is kept.
pub fn set_call_site(site: fn() -> u64) {
    let _ = CALL_SITE.set(site);
}

pub(super) fn pool(arguments: &Arguments<'_>) -> Made {
    let policy = arguments.text("numa").map(Policy::parse).transpose().map_err(Error::Value)?;
    let decay = match arguments.value("decay") {
        Value::Float(seconds) => Duration::try_from_secs_f64(*seconds).ok(),
        _ => None,
    };
    let options = Options {
        max_idle: arguments.number("max_idle"),
        decay,
        fault_ahead: arguments.is_set("fault_ahead"),
        ..Options::default()
    };
    let upstream = upstream_of(&arguments.caller(), arguments.given_upstream(), policy)?;
    let Some(upstream) = upstream else { return Ok(Pool::new(options)) };
    // A pool over pages is a pool with a heap, which can split blocks, join them, and return parts.
    let any: &dyn Any = upstream.as_ref();
    match any.downcast_ref::<Pages>() {
        Some(pages) => Ok(Pool::new(Options { huge: pages.huge(), ..options })),
        None if options.fault_ahead => Err(Error::Value(format!(
            "fault_ahead=True needs a pool that takes its pages itself, not from {}: give no upstream, or pages()",
            upstream.describe()
        ))),
        None => Ok(Pool::over(upstream, options)),
    }
}

pub(super) fn tracked(arguments: &Arguments<'_>) -> Made {
    let site = CALL_SITE.get().copied().filter(|_| arguments.is_set("lines"));
    if site.is_none() && arguments.is_set("lines") {
        return Err(Error::Value("lines=True: source lines are not available here; give False".into()));
    }
    Ok(Tracked::new(arguments.upstream()?, site))
}

pub(super) fn limited(arguments: &Arguments<'_>) -> Made {
    let budget = arguments.number("budget").unwrap_or_default(); // was checked
    Ok(Limited::new(arguments.upstream()?, budget))
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
