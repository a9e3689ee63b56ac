//! What a pool may be told: how much it keeps, how long, and on which pages.

use crate::allocator::Description;
use crate::description::Value;
use std::time::Duration;

/// The options of a pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The most bytes that may be idle; by default a quarter of the memory of the machine or container.
    pub max_idle: Option<usize>,
    /// How long memory may stay idle before it is returned; `None` for ever.
    pub decay: Option<Duration>,
    /// Whether large blocks are advised huge.
    pub huge: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_idle: None, decay: Some(Duration::from_secs(1)), huge: true }
    }
}

impl Options {
    pub(super) fn describe(&self, upstream: Description) -> Description {
        let decay = self.decay.map_or(Value::None, |decay| Value::Float(decay.as_secs_f64()));
        let max_idle = self.max_idle.map(Value::size);
        Description::of("pool").with(upstream).named("max_idle", max_idle).named("decay", decay)
    }

    /// Whether both options have their defaults: the pool then decides what it keeps, in proportion to the peak.
    pub(super) fn is_automatic(&self) -> bool {
        let Self { max_idle, decay, .. } = Self::default();
        (self.max_idle, self.decay) == (max_idle, decay)
    }
}
