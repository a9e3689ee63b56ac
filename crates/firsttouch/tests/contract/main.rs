//! The contract of all allocators: each law once, run over every source and every composition.
//!
//! Whoever adds an allocator adds a line below.

#[path = "../common/mod.rs"]
mod common;

mod accounts;
mod apart;
mod functions;
mod given;
mod refused;
mod released;
mod resized;
mod shared;
mod sizes;
mod zero;

use firsttouch::Allocator;
use firsttouch::adaptors::{Options, Pool};
use firsttouch::sources::{Aligned, Calloc, Malloc, Pages};
use std::sync::Arc;
use std::time::Duration;

/// Makes a fresh allocator.
type Make = fn() -> Arc<dyn Allocator>;

macro_rules! contract {
    ($($name:ident: $make:expr;)*) => {$(
        mod $name {
            use super::*;

            const MAKE: Make = || $make;

            contract!(@laws
                given::size_and_alignment, given::every_alignment, given::tiny_and_empty,
                zero::after_everything_was_dirty, zero::recycled_one_by_one, zero::among_clean_and_dirty, zero::unasked,
                apart::no_two_blocks_overlap, apart::nobody_else_writes,
                resized::contents_come_along, resized::in_place_or_not_at_all, resized::neighbours_stay, resized::a_long_walk,
                shared::any_thread_may_free, shared::a_thread_that_ends_leaves_nothing_behind,
                refused::impossible_sizes, refused::a_resize_that_fails_changes_nothing, refused::nothing_is_lost,
                released::trim_keeps_what_lives, released::idle_memory_is_gone_after_trim,
                released::dropped_with_nothing_alive, released::dropped_with_living_blocks,
                accounts::add_up, accounts::the_expression_names_it,
            );
        }
    )*};
    (@laws $($file:ident::$law:ident,)*) => {$(
        #[test]
        fn $law() {
            super::$file::$law(MAKE);
        }
    )*};
}

contract! {
    malloc: Arc::new(Malloc);
    calloc: Arc::new(Calloc);
    aligned_64: Arc::new(Aligned::new(64).unwrap());
    aligned_4096: Arc::new(Aligned::new(4096).unwrap());
    aligned_2m: Arc::new(Aligned::new(2 << 20).unwrap());
    functions: super::functions::all();
    functions_two: super::functions::two();
    pages: Pages::new(false);
    pages_thp: Pages::new(true);
    pool: Pool::new(Options::default());
    pool_small_pages: Pool::new(Options { huge: false, ..Options::default() });
    pool_forever: Pool::new(Options { decay: None, ..Options::default() });
    pool_at_once: Pool::new(Options { decay: Some(Duration::ZERO), ..Options::default() });
    pool_bounded: Pool::new(Options { max_idle: Some(8 << 20), ..Options::default() });
    pool_keeps_nothing: Pool::new(Options { max_idle: Some(0), decay: Some(Duration::ZERO), huge: true });
}
