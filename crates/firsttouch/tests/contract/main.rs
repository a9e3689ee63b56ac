//! The contract of all allocators: each law once, run over every source and every composition.
//!
//! What is declared is here by itself, as it is by default. Whoever adds an allocator adds to the list below what else there
//! is to check: options, and what stands on it.

#[path = "../common/mod.rs"]
mod common;

mod accounts;
mod c_functions;
mod programs;
mod refused;
mod released;
mod requests;
mod shared;
mod sizes;
mod zero;

use common::alone::alone;
use common::reentrant::Reentrant;
use firsttouch::adaptors::{Filled, Limited, Machine, Options, Pool};
use firsttouch::factory::Error;
use firsttouch::numa::Policy;
use firsttouch::os::Mode;
use firsttouch::pages::placement::{Page, Placement};
use firsttouch::scratch::Buffer;
use firsttouch::sources::{Calloc, Guarded, GuardedOptions, Malloc, Pages, Side};
use firsttouch::spec::{self, OptionKind, Spec};
use firsttouch::{Allocator, allocator_from_expression};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Makes a fresh allocator, or returns that of the process.
type Make<'a> = &'a dyn Fn() -> Arc<dyn Allocator>;

/// A budget beyond what any law takes, and within what the system would have refused anyway.
const BUDGET: usize = 1 << 42;

fn pool() -> Arc<dyn Allocator> {
    Pool::new(Options::default())
}

fn limited(upstream: Arc<dyn Allocator>) -> Arc<dyn Allocator> {
    Limited::new(upstream, BUDGET)
}

fn filled(upstream: Arc<dyn Allocator>) -> Arc<dyn Allocator> {
    Filled::new(upstream, Some(0xFF), None)
}

/// Filled at both ends.
fn wiped(upstream: Arc<dyn Allocator>) -> Arc<dyn Allocator> {
    Filled::new(upstream, Some(0xA5), Some(0xDF))
}

fn guarded() -> Arc<dyn Allocator> {
    Guarded::new(GuardedOptions::default())
}

fn before() -> Arc<dyn Allocator> {
    Guarded::new(GuardedOptions { side: Side::Before, keep: 0 })
}

/// Guarded, and freed blocks stay inaccessible for a while.
fn keeping() -> Arc<dyn Allocator> {
    Guarded::new(GuardedOptions { side: Side::After, keep: 8 << 20 })
}

/// Bound to whatever nodes there are, so that every call of placement is made.
fn placed(page: Page, populate: Option<usize>) -> Arc<dyn Allocator> {
    let policy = Some(Policy { mode: Mode::Bind, nodes: None });
    Pages::placed(Placement { page, populate, policy, ..Placement::default() })
}

/// On a machine with two nodes: a thread moves from one to the other whenever it asks.
fn pool_on_two_nodes(options: Options) -> Arc<dyn Allocator> {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    Pool::on(options, Machine { node_of: [0, 1].into(), current: || TURN.fetch_add(1, Relaxed) % 2 })
}

fn over(upstream: Arc<dyn Allocator>) -> Arc<dyn Allocator> {
    Pool::over(upstream, Options::default())
}

/// A buffer that grows by chunks from `upstream`.
fn buffer(upstream: Arc<dyn Allocator>, chunk_size: usize) -> Arc<dyn Allocator> {
    Buffer::growing(upstream, chunk_size)
}

/// A call of a declared allocator, with values only for what must be given, and a budget that no law comes to.
fn call(spec: &Spec) -> String {
    let needed = spec.options.iter().filter_map(|option| match (option.kind, &option.default) {
        (OptionKind::Budget, _) => Some(format!("{}={BUDGET}", option.name)),
        (OptionKind::Alignment, None) => Some(format!("{}=64", option.name)),
        (OptionKind::Policy, None) => Some(format!("{}=local", option.name)),
        (_, None) => panic!("the contract has no value for {} of {}", option.name, spec.name),
        _ => None,
    });
    format!("{}({})", spec.name, needed.collect::<Vec<_>>().join(", "))
}

/// Runs a law over all that is declared and built, in a process of its own: what a process has once begins anew there. It
/// is never dropped, so it is left out of the laws that are `of_new`.
fn over_declared(name: &str, law: fn(Make), of_new: bool) {
    alone(name, || {
        for call in spec::all().map(call) {
            println!("{call}");
            if let Err(Error::Unsupported(_)) = allocator_from_expression(&call) {
                continue;
            }
            let make = || allocator_from_expression(&call).unwrap();
            if !(of_new && Arc::ptr_eq(&make(), &make())) {
                law(&make);
            }
        }
    });
}

/// The laws, each with the name of the test that it is.
macro_rules! contract {
    ($($name:ident: $make:expr;)*) => {
        mod declared {
            contract!(@all over_declared ());
        }
        $(mod $name {
            use super::*;

            contract!(@all over_listed ($make));
        })*
    };
    (@all $over:ident $make:tt) => {
        contract!(@$over $make false
            programs::random, programs::growing_in_turn, zero::after_everything_was_dirty, zero::recycled_one_by_one,
            shared::a_storm, shared::a_thread_that_ends_leaves_nothing_behind,
            refused::nothing_is_lost, requests::every_request, accounts::add_up,
        );
        contract!(@$over $make true
            released::dropped_with_nothing_alive, released::dropped_with_living_blocks, accounts::knows_its_blocks,
        );
    };
    (@over_declared () $of_new:literal $($file:ident::$law:ident,)*) => {$(
        #[test]
        fn $law() {
            super::over_declared(concat!("declared::", stringify!($law)), super::$file::$law, $of_new);
        }
    )*};
    (@over_listed $make:tt $of_new:literal $($file:ident::$law:ident,)*) => {$(
        #[test]
        fn $law() {
            super::$file::$law(&|| $make);
        }
    )*};
}

contract! {
    malloc: Malloc::new();
    calloc: Calloc::new();
    aligned_4096: Calloc::aligned(4096).unwrap();
    aligned_2m: Calloc::aligned(2 << 20).unwrap();
    functions: c_functions::all();
    functions_two: c_functions::two();
    pages_thp: Pages::new(true);
    pages_placed: placed(Page::Base, None);
    pages_populated: placed(Page::Base, Some(0));
    pages_fallen_back: placed(Page::Explicit(1 << 30), Some(3));
    pool_pages_placed: over(placed(Page::Transparent, None));
    pool_small_pages: Pool::new(Options { huge: false, ..Options::default() });
    pool_forever: Pool::new(Options { decay: None, ..Options::default() });
    pool_at_once: Pool::new(Options { decay: Some(Duration::ZERO), ..Options::default() });
    pool_bounded: Pool::new(Options { max_idle: Some(8 << 20), ..Options::default() });
    pool_keeps_nothing: Pool::new(Options { max_idle: Some(0), decay: Some(Duration::ZERO), ..Options::default() });
    pool_two_nodes: pool_on_two_nodes(Options::default());
    pool_two_nodes_at_once: pool_on_two_nodes(Options { decay: Some(Duration::ZERO), ..Options::default() });
    limited_pool: limited(pool());
    limited_limited_pool: limited(limited(pool()));
    limited_malloc: limited(Malloc::new());
    filled_pool: filled(pool());
    filled_calloc: filled(Calloc::new());
    filled_nothing_pages: Filled::new(Pages::new(false), None, None);
    wiped_pool: wiped(pool());
    wiped_limited_malloc: wiped(limited(Malloc::new()));
    limited_wiped_aligned_4096: limited(wiped(Calloc::aligned(4096).unwrap()));
    guarded_before: before();
    guarded_keeping: keeping();
    filled_guarded: filled(guarded());
    limited_guarded_before: limited(before());
    pool_malloc: over(Malloc::new());
    pool_calloc: over(Calloc::new());
    pool_limited_pages_thp: over(limited(Pages::new(true)));
    pool_filled_aligned_2m: over(filled(Calloc::aligned(2 << 20).unwrap()));
    pool_limited_pool: over(limited(pool()));
    pool_guarded: over(guarded());
    filled_pool_limited_malloc: filled(over(limited(Malloc::new())));
    scratch_pool: buffer(pool(), Buffer::CHUNK);
    scratch_malloc: buffer(Malloc::new(), Buffer::CHUNK);
    scratch_large_chunks: buffer(pool(), 64 << 20);
    scratch_small_chunks_calloc: buffer(Calloc::new(), 4096);
    scratch_limited_guarded: buffer(limited(guarded()), Buffer::CHUNK);
    reentrant: Reentrant::shared();
    limited_reentrant: limited(Reentrant::shared());
    wiped_reentrant: wiped(Reentrant::shared());
    pool_reentrant: over(Reentrant::shared());
    pool_reentrant_at_once: Pool::over(Reentrant::shared(), Options { decay: Some(Duration::ZERO), ..Options::default() });
    limited_pool_filled_reentrant: limited(over(filled(Reentrant::shared())));
    scratch_reentrant: buffer(Reentrant::shared(), Buffer::CHUNK);
    scratch_pool_reentrant: buffer(over(Reentrant::shared()), Buffer::CHUNK);
}
