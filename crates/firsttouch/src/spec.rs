//! Every allocator, declared once: its name, what it is, its options with their kinds, defaults and help, and how it is
//! made.
//!
//! All else follows from [`ALLOCATORS`]: the checks of arguments and their messages, expressions on the command line, in
//! C and in Julia, Python's functions with their signatures and docstrings, the stub, the help of commands and the
//! reference. To add an option is to add it here, and to use it where the allocator is made, at the end of this file.

use crate::adaptors::{
    AUTO, Budget, CallSites, DECAY, Filled, Guarded, GuardedOptions, Limited, Options, Pool, Side, Tracked,
};
use crate::allocator::{Allocator, find};
use crate::description::{Argument, Value};
use crate::factory::{self, Arguments, Error};
use crate::numa::policy::Policy;
use crate::pages::placement::{Page, Placement, Populate};
use crate::sources::{Aligned, Calloc, Malloc, Pages, PlacedPages};
use crate::sync::first::First;
use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// An allocator as it is declared. Texts are those of Python's docstrings, in reStructuredText.
#[derive(Debug)]
pub struct Spec {
    /// Its name in expressions.
    pub name: &'static str,
    /// What a call of it returns: the rest of a sentence that begins with "Return".
    pub summary: &'static str,
    /// Its options, in the order in which messages list them.
    pub options: &'static [Opt],
    /// The number of options that may be given without their names.
    pub positional: usize,
    /// What else there is to know.
    pub notes: &'static str,
    /// An example for Python.
    pub example: &'static str,
}

/// An option of an allocator.
#[derive(Debug)]
pub struct Opt {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: OptionKind,
    /// What it is where it is not given.
    pub default: Default,
    /// What it does.
    pub help: &'static str,
}

/// The default of an option.
#[derive(Debug)]
pub enum Default {
    /// None: it must be given.
    Required,
    /// None: it must be given, as the message explains.
    Needed(&'static str),
    /// This value.
    Is(Value),
}

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionKind {
    /// Another allocator; by default this one. Nothing is created if the default is empty.
    Upstream(&'static str),
    /// An alignment in bytes.
    Alignment,
    /// A size in bytes, as a number or as text.
    Size,
    /// The same, at least one byte, or `auto`.
    Budget,
    /// A byte, or `None`.
    Byte,
    /// Yes or no.
    Flag,
    /// Seconds, or `None`.
    Seconds,
    /// One of a few keywords.
    Word(&'static [&'static str]),
    /// Page sizes, in the order of preference.
    PageSizes,
    /// No, yes, or a number of threads.
    Threads,
    /// A NUMA policy.
    Policy,
}

impl Opt {
    /// Whether this value is the default.
    pub fn is_usual(&self, value: &Value) -> bool {
        match (self.kind, &self.default, value) {
            // By name first: to look at the arguments of all levels below would take twice as long for each.
            (OptionKind::Upstream(""), _, Value::Allocator(inner)) if inner.name == "pages" => {
                matches!(inner.needed()[..], [only] if only.to_string() == "huge='thp'")
            }
            (OptionKind::Upstream(usual), _, Value::Allocator(inner)) => {
                usual.strip_suffix("()") == Some(&inner.name) && inner.needed().is_empty()
            }
            (_, Default::Is(usual), _) => usual == value,
            _ => false,
        }
    }
}

impl Spec {
    /// The allocator that `text` names.
    pub fn find(text: &str) -> Option<&'static Self> {
        ALLOCATORS.iter().find(|spec| spec.name == text)
    }

    /// Whether it stands on another allocator.
    pub fn is_adaptor(&self) -> bool {
        self.options.iter().any(|option| matches!(option.kind, OptionKind::Upstream(_)))
    }
}

const NONE: Default = Default::Is(Value::None);
const NO: Default = Default::Is(Value::Flag(false));

const fn opt(name: &'static str, kind: OptionKind, default: Default, help: &'static str) -> Opt {
    Opt { name, kind, default, help }
}

const HUGE: Opt = opt(
    "huge",
    OptionKind::PageSizes,
    NO,
    "Page size. ``False`` means base pages, ``\"thp\"`` transparent huge pages, and a size such as ``\"2M\"`` or ``\"1G\"`` \
     explicit huge pages. Of a sequence, the first page size that is available is used. Explicit huge pages are used \
     where rounding up wastes at most an eighth of the block, or 2 MiB.",
);
const POPULATE: Opt = opt(
    "populate",
    OptionKind::Threads,
    NO,
    "Whether pages are faulted in before the constructor returns. An integer is the number of threads; ``True`` lets \
     firsttouch choose it. Populating releases the GIL and can be interrupted by Ctrl-C.",
);
const LOCK: Opt = opt("lock", OptionKind::Flag, NO, "Whether pages are locked in memory (``mlock``).");
const STRICT: Opt = opt(
    "strict",
    OptionKind::Flag,
    NO,
    "Whether a request that cannot be granted in full raises :exc:`MemoryError` instead of being recorded in the receipt.",
);
const NODES: &str = "Node or policy to allocate from: ``1``, ``\"bind:0-1\"`` (these nodes and no others), \
    ``\"preferred:1\"`` (others where it has no memory left), ``\"interleave:all\"`` (page by page), ``\"local\"`` (the \
    node of the thread that first touches a page), or ``\"blocked:0\"`` (slabs along axis 0, one for each node). A policy \
    or cpuset imposed from outside is never widened.";

const fn upstream(usual: &'static str, help: &'static str) -> Opt {
    opt("upstream", OptionKind::Upstream(usual), NONE, help)
}
const ON_A_POOL: Opt = upstream("pool()", "Where memory comes from. The default is ``pool()``.");

const NOT_INSTALLED: &str =
    "For constructors and :func:`use`. :func:`install` refuses it, as its blocks cannot be recognized by address.";

/// All allocators, by name.
pub static ALLOCATORS: &[Spec] = &[
    Spec {
        name: "aligned",
        summary: "an allocator of lazily zeroed memory at multiples of `alignment`.",
        options: &[opt(
            "alignment",
            OptionKind::Alignment,
            Default::Required,
            "Alignment in bytes, a power of two up to 1 GiB. Text such as ``\"4 KiB\"`` is accepted.",
        )],
        positional: 1,
        notes: NOT_INSTALLED,
        example: "\
>>> ft.aligned(4096).empty(100).ctypes.data % 4096  # as O_DIRECT needs it
0",
    },
    Spec {
        name: "calloc",
        summary: "an allocator on the C library's ``calloc``: every array reads zero, ``empty`` included.",
        options: &[],
        positional: 0,
        notes: "",
        example: "\
>>> ft.calloc().empty(4)
array([0., 0., 0., 0.])",
    },
    Spec {
        name: "filled",
        summary: "an allocator that fills memory with a byte, which exposes reads of uninitialized or freed memory.",
        options: &[
            ON_A_POOL,
            opt(
                "on_allocate",
                OptionKind::Byte,
                Default::Is(Value::Integer(0xFF)),
                "Byte written over new memory that need not be zero. ``None`` writes nothing. The default turns floats \
                 into NaN.",
            ),
            opt("on_free", OptionKind::Byte, NONE, "Byte written over memory that is freed. ``None`` writes nothing."),
        ],
        positional: 1,
        notes: "",
        example: "\
>>> ft.filled().empty(3)
array([nan, nan, nan])",
    },
    Spec {
        name: "guarded",
        summary: "an allocator that places each array at an inaccessible page, so that an overrun stops the process.",
        options: &[
            upstream("pages()", "Where memory comes from. The default is ``pages()``."),
            opt(
                "side",
                OptionKind::Word(&["after", "before"]),
                Default::Is(Value::Text(Cow::Borrowed("after"))),
                "On which side of the array the inaccessible page lies.",
            ),
            opt(
                "keep",
                OptionKind::Size,
                Default::Is(Value::Integer(0)),
                "Bytes of freed arrays that stay inaccessible, so that a use after free stops the process as well.",
            ),
        ],
        positional: 1,
        notes: "Overruns are caught at once and at no cost per access, but every array takes two pages and two system \
            calls more. Behind an array that does not end at a multiple of its alignment (64 bytes, or that of \
            :func:`aligned` below) lies a gap, in which they are found when the array is freed.",
        example: "\
>>> ft.guarded(keep=\"1 MiB\").zeros(3)
array([0., 0., 0.])",
    },
    Spec {
        name: "jemalloc",
        summary: "the process's jemalloc, the allocator of FreeBSD and Meta, built in.",
        options: &[],
        positional: 0,
        notes: "A build of firsttouch without it raises :exc:`UnsupportedError`.",
        example: "\
>>> ft.jemalloc().zeros(3)
array([0., 0., 0.])",
    },
    Spec {
        name: "limited",
        summary: "an allocator that raises :exc:`MemoryError` beyond a budget.",
        options: &[
            upstream(
                "pool()",
                "Where memory comes from. The default is ``pool()``; ``limited(\"auto\")`` is short for \
                 ``limited(budget=\"auto\")``.",
            ),
            opt(
                "budget",
                OptionKind::Budget,
                Default::Needed(
                    "a budget in bytes behind its upstream, as in limited(pool(), \"4 GiB\"), or \"auto\", which at_most= bounds",
                ),
                "Bytes that arrays may hold at a time, more than 0. Text such as ``\"4 GiB\"`` is accepted. ``\"auto\"`` is \
                 what the machine or the container has left now, less a reserve. It must be given.",
            ),
            opt("at_most", OptionKind::Size, NONE, "Upper bound in bytes on what ``\"auto\"`` finds; ``repr`` shows what it found."),
        ],
        positional: 2,
        notes: "\
Bytes are counted as requested; what a pool keeps idle is not counted. Budgets nest. The :exc:`MemoryError` of \
firsttouch's constructors states what was requested, what is in use, and which lines made the largest living blocks. \
Under :func:`use` and :func:`install`, NumPy raises its own error; once a budget exists, that error has the same as a \
note, which tracebacks show, and :func:`last_failure` has it as well. Lines are recorded from 1 MiB on.

``\"auto\"`` is the least of what is left of the machine's memory (without swap), of the memory cgroup and all its \
ancestors, of ``RLIMIT_AS`` and of ``RLIMIT_DATA``, when the allocator is made. The limits themselves are read again once a \
second, as those of a container may change while it runs. From that it keeps a reserve of a sixteenth of the bound (at \
least 64 MiB, at most 4 GiB, and at most half of what is left) for what the budget does not see: code, Python's objects, \
small arrays, page tables, and what other programs take later. Arrays count in full, also those whose pages are never \
touched, such as sparse ``np.zeros``. Each process has a budget of its own: bound those that grow at the same time by \
`at_most`.",
        example: "\
>>> ft.limited(ft.malloc(), \"4 GiB\")
limited(malloc(), '4 GiB')
>>> ft.limited(ft.malloc(), \"auto\", at_most=\"1 MiB\")
limited(malloc(), 'auto', at_most='1 MiB')",
    },
    Spec {
        name: "malloc",
        summary: "an allocator on the C library's ``malloc``, aligned to 64 bytes.",
        options: &[],
        positional: 0,
        notes: NOT_INSTALLED,
        example: "\
>>> ft.malloc().empty(1000).ctypes.data % 64
0",
    },
    Spec {
        name: "mimalloc",
        summary: "the process's mimalloc, Microsoft's allocator, built in.",
        options: &[],
        positional: 0,
        notes: "A build of firsttouch without it raises :exc:`UnsupportedError`.",
        example: "\
>>> ft.mimalloc().zeros(3)
array([0., 0., 0.])",
    },
    Spec {
        name: "numa",
        summary: "an allocator of fresh pages from a NUMA node, or from where a policy says.",
        options: &[opt("numa", OptionKind::Policy, Default::Required, NODES), HUGE, POPULATE, LOCK, STRICT],
        positional: 1,
        notes: "It is :func:`pages` with its `numa` first. firsttouch's constructors know shape and order, and place the \
            slabs of ``\"blocked:1\"`` along axis 1; under :func:`install` and :func:`use` only the number of bytes is known, \
            and slabs are of bytes, which is axis 0 in C order: the receipt says so for other axes. Where the nodes of \
            ``bind`` have no memory left, the kernel ends a process; ``preferred`` uses others.",
        example: "\
>>> ft.receipt(ft.numa(0).zeros(10**6)).numa
'bind:0'",
    },
    Spec {
        name: "pages",
        summary: "an allocator that maps fresh pages for every array and unmaps them when the array is freed.",
        options: &[HUGE, POPULATE, LOCK, opt("numa", OptionKind::Policy, NONE, NODES), STRICT],
        positional: 1,
        notes: "Mapping and faulting in new pages costs more than the arithmetic on most temporaries; put a :func:`pool` on \
            top for arrays that come and go. Arrays raise :exc:`MemoryError` where more is to be populated than is \
            available, or where ``RLIMIT_MEMLOCK`` does not allow `lock`. :func:`receipt` tells what was granted.",
        example: "\
>>> a = ft.pages(huge=\"thp\", populate=True).zeros(10**6)
>>> ft.receipt(a).populated
True",
    },
    Spec {
        name: "pool",
        summary: "a pool, which keeps freed blocks and reuses the most recently freed.",
        options: &[
            upstream(
                "",
                "Where the pool's memory comes from. The default is ``pages(huge=\"thp\")``. On :func:`pages`, a pool also \
                 splits and coalesces blocks. Pages in slabs (``numa=\"blocked:0\"``) are refused, as blocks are reused for other arrays.",
            ),
            opt(
                "max_idle",
                OptionKind::Size,
                NONE,
                "Bytes that may stay idle. By default the pool decides; where `decay` is set, a quarter of the memory of \
                 the machine or container.",
            ),
            opt(
                "decay",
                OptionKind::Seconds,
                Default::Is(Value::Float(DECAY.as_secs_f64())),
                "Seconds after which idle memory is returned to the operating system. ``None`` means never.",
            ),
        ],
        positional: 1,
        notes: "\
Memory that stays idle saves the page faults of the next array, at the price of a larger process: `max_idle` bounds that \
price, and `decay` limits how long it is paid. Arrays below 16 KiB are not pooled: they stay with \
NumPy's own allocator, those of the pool's constructors included.

With both at their defaults, what a pool holds, idle memory included, stays within an eighth more than the largest number of \
bytes that were ever in use, and idle memory goes after a second. Any other value of either is obeyed literally.",
        example: "\
>>> ft.pool(max_idle=\"1 GiB\", decay=5.0)
pool(max_idle='1 GiB', decay=5.0)",
    },
    Spec {
        name: "tracked",
        summary: "an allocator that counts its blocks and bytes, with their peak and total, for :func:`stats`.",
        options: &[ON_A_POOL],
        positional: 1,
        notes: "",
        example: "\
>>> tracker = ft.tracked(ft.malloc())
>>> a = tracker.zeros(1000)
>>> ft.stats(tracker).in_use
8000",
    },
];

// ---- How each is made from its arguments, which were checked -----------------------------------------------------

type Made = Result<Arc<dyn Allocator>, Error>;

impl Spec {
    /// Makes one. This is no field of the declaration, so that a library that only shows allocators does not link all of them.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub(crate) fn make(&self, arguments: &Arguments) -> Made {
        match self.name {
            "aligned" => aligned(arguments),
            "calloc" => calloc(),
            "filled" => filled(arguments),
            "guarded" => guarded(arguments),
            "jemalloc" => jemalloc(),
            "limited" => limited(arguments),
            "malloc" => malloc(),
            "mimalloc" => mimalloc(),
            "numa" | "pages" => pages(arguments),
            "pool" => pool(arguments),
            "tracked" => tracked(arguments),
            other => Err(Error::Unsupported(format!("{other}() is declared, but nothing makes it"))),
        }
    }
}

/// The C library's `malloc`; it has no state, so there is only one.
fn malloc() -> Made {
    static ONE: First<Arc<dyn Allocator>> = First::new();
    Ok(ONE.get_or_make(|| Arc::new(Malloc)).clone())
}

/// The C library's `calloc`; likewise.
fn calloc() -> Made {
    Ok(Calloc::get())
}

fn aligned(arguments: &Arguments) -> Made {
    let align = arguments.number("alignment").unwrap_or_default();
    Ok(Aligned::new(align).map_err(|error| Error::Value(error.to_string()))?)
}

#[cfg(feature = "mimalloc")]
fn mimalloc() -> Made {
    Ok(crate::sources::Mimalloc::get())
}

#[cfg(all(feature = "jemalloc", unix))]
fn jemalloc() -> Made {
    Ok(crate::sources::Jemalloc::get())
}

#[cfg(not(feature = "mimalloc"))]
fn mimalloc() -> Made {
    Err(Error::Unsupported("this build of firsttouch does not include mimalloc".into()))
}

#[cfg(not(all(feature = "jemalloc", unix)))]
fn jemalloc() -> Made {
    Err(Error::Unsupported("this build of firsttouch does not include jemalloc".into()))
}

fn pages(arguments: &Arguments) -> Made {
    let placement = placement_of(arguments)?;
    let plain = Placement { pages: placement.pages.clone(), ..Placement::default() };
    Ok(match &*placement.pages {
        [] if placement == plain => Pages::new(false),
        [Page::Transparent] if placement == plain => Pages::new(true),
        _ => PlacedPages::new(placement),
    })
}

/// The placement that arguments of `pages` request.
///
/// # Errors
/// As for [`bind`](factory::bind).
pub fn placement(call: &[Argument]) -> Result<Placement, Error> {
    Spec::find("pages").map_or_else(|| Ok(Placement::default()), |pages| placement_of(&factory::bind(pages, call)?))
}

fn placement_of(arguments: &Arguments) -> Result<Placement, Error> {
    let populate = match arguments.value("populate") {
        Value::Flag(true) => Populate::Best,
        Value::Integer(threads) => Populate::Threads(*threads as usize),
        _ => Populate::No,
    };
    let page = |value: &Value| match value {
        Value::Text(text) => Page::parse(text).map_err(Error::Value),
        _ => Ok(Page::Base), // counts only after others
    };
    let pages = match arguments.value("huge") {
        Value::Several(sizes) => sizes.iter().map(page).collect::<Result<_, _>>()?,
        one @ Value::Text(_) => vec![page(one)?],
        _ => Vec::new(),
    };
    let (lock, strict) = (arguments.is_set("lock"), arguments.is_set("strict"));
    Ok(Placement { pages, populate, lock, policy: arguments.policy()?, strict })
}

fn pool(arguments: &Arguments) -> Made {
    let decay = match arguments.value("decay") {
        Value::Float(seconds) => Duration::try_from_secs_f64(*seconds).ok(),
        _ => None,
    };
    let options = Options { max_idle: arguments.number("max_idle"), decay, ..Options::default() };
    if *arguments.value("upstream") == Value::None {
        return Ok(Pool::new(options));
    }
    let upstream = arguments.upstream()?;
    refuse_slabs(&upstream, &arguments.caller())?;
    // A pool over pages is a pool with a heap, which can split blocks, join them, and return parts.
    let any: &dyn Any = upstream.as_ref();
    match any.downcast_ref::<Pages>() {
        Some(pages) => Ok(Pool::new(Options { huge: pages.huge(), ..options })),
        None => Ok(Pool::over(upstream, options)),
    }
}

/// Refuses slabs as the upstream of what `caller` makes, if that reuses blocks, as pools and scratch buffers do.
///
/// # Errors
/// For slabs: a reused block would lie on the nodes of another array's slabs.
pub fn refuse_slabs(upstream: &Arc<dyn Allocator>, caller: &str) -> Result<(), Error> {
    match find::<PlacedPages>(upstream).and_then(|pages| pages.placement().policy) {
        Some(slabs @ Policy::Blocked(_)) => Err(Error::Value(format!(
            "{caller} cannot use numa='{slabs}': its blocks are reused for other arrays, whose slabs would lie \
                 elsewhere; give single arrays pages(numa='{slabs}'), or {caller} pages(numa='interleave:all')"
        ))),
        _ => Ok(()),
    }
}

/// How the front finds the source line that makes a request.
static CALL_SITES: OnceLock<CallSites> = OnceLock::new();

/// Registers how source lines are found, for the messages of `limited`. The first is kept.
pub fn set_call_sites(call_sites: CallSites) {
    let _ = CALL_SITES.set(call_sites);
}

fn tracked(arguments: &Arguments) -> Made {
    Ok(Tracked::new(arguments.upstream()?))
}

fn limited(arguments: &Arguments) -> Made {
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

fn guarded(arguments: &Arguments) -> Made {
    let side = if arguments.text("side") == Some("before") { Side::Before } else { Side::After };
    let options = GuardedOptions { side, keep: arguments.number("keep").unwrap_or_default() };
    Ok(Guarded::new(arguments.upstream()?, options))
}

fn filled(arguments: &Arguments) -> Made {
    let byte = |name| arguments.number(name).map(|byte| byte as u8);
    Ok(Filled::new(arguments.upstream()?, byte("on_allocate"), byte("on_free")))
}
