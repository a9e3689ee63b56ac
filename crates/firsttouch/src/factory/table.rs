//! The table of factories and their parameters.

use super::arguments::Arguments;
use super::parameter::{Default, Default::Is, Default::Needed, Default::Required, Kind, Parameter};
use super::{Error, adaptors, pages, sources};
use crate::allocator::Allocator;
use crate::description::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// A function that creates allocators of one kind.
pub struct Factory {
    /// Its name in expressions.
    pub name: &'static str,
    /// Its parameters, in the order in which messages list them.
    pub parameters: &'static [Parameter],
    /// The number of parameters that may be given without their names.
    pub positional: usize,
    /// Creates an allocator from checked arguments.
    pub(super) make: fn(&Arguments<'_>) -> Result<Arc<dyn Allocator>, Error>,
}

const NONE: Default = Is(Value::None);
const NO: Default = Is(Value::Flag(false));
const BUDGET: &str = "a budget in bytes behind its upstream, as in limited(pool(), \"4 GiB\"), or \"auto\"";

const fn takes(name: &'static str, kind: Kind, default: Default) -> Parameter {
    Parameter { name, kind, default }
}

const fn upstream(usual: &'static str) -> Parameter {
    takes("upstream", Kind::Upstream(usual), NONE)
}

/// All factories.
pub static TABLE: &[Factory] = &[
    Factory {
        name: "aligned",
        parameters: &[takes("alignment", Kind::Alignment, Required)],
        positional: 1,
        make: sources::aligned,
    },
    Factory { name: "calloc", parameters: &[], positional: 0, make: sources::calloc },
    Factory {
        name: "filled",
        parameters: &[
            upstream("pool()"),
            takes("on_allocate", Kind::Byte, Is(Value::Integer(0xFF))),
            takes("on_free", Kind::Byte, NONE),
        ],
        positional: 1,
        make: adaptors::filled,
    },
    Factory {
        name: "guarded",
        parameters: &[
            upstream("pages()"),
            takes("side", Kind::Word(&["after", "before"]), Is(Value::Text(Cow::Borrowed("after")))),
            takes("keep", Kind::Size, Is(Value::Integer(0))),
        ],
        positional: 1,
        make: adaptors::guarded,
    },
    Factory { name: "jemalloc", parameters: &[], positional: 0, make: sources::jemalloc },
    Factory {
        name: "limited",
        parameters: &[
            upstream("pool()"),
            takes("budget", Kind::Budget, Needed(BUDGET)),
            takes("at_most", Kind::Size, NONE),
        ],
        positional: 2,
        make: adaptors::limited,
    },
    Factory { name: "malloc", parameters: &[], positional: 0, make: sources::malloc },
    Factory { name: "mimalloc", parameters: &[], positional: 0, make: sources::mimalloc },
    Factory {
        name: "numa",
        parameters: &[
            takes("numa", Kind::Policy, Required),
            takes("huge", Kind::PageSizes, NO),
            takes("populate", Kind::Threads, NO),
            takes("lock", Kind::Flag, NO),
            takes("strict", Kind::Flag, NO),
            takes("progress", Kind::Flag, NO),
        ],
        positional: 1,
        make: pages::pages,
    },
    Factory {
        name: "pages",
        parameters: &[
            takes("huge", Kind::PageSizes, NO),
            takes("populate", Kind::Threads, NO),
            takes("lock", Kind::Flag, NO),
            takes("numa", Kind::Policy, NONE),
            takes("strict", Kind::Flag, NO),
            takes("progress", Kind::Flag, NO),
        ],
        positional: 1,
        make: pages::pages,
    },
    Factory {
        name: "pool",
        parameters: &[
            upstream(""),
            takes("numa", Kind::Policy, NONE),
            takes("max_idle", Kind::Size, NONE),
            takes("decay", Kind::Seconds, Is(Value::Float(1.0))),
        ],
        positional: 1,
        make: adaptors::pool,
    },
    Factory {
        name: "tracked",
        parameters: &[upstream("pool()"), takes("lines", Kind::Flag, NO)],
        positional: 1,
        make: adaptors::tracked,
    },
];

/// The factory of this name.
pub fn find(name: &str) -> Option<&'static Factory> {
    TABLE.iter().find(|factory| factory.name == name)
}
