//! Allocators created from expressions: every factory, every option, every error.

use firsttouch::allocator_from_expression as make;
use firsttouch::factory::Error;
use firsttouch::size;
use firsttouch::spec::{self, OptionKind};
use firsttouch::{Allocator, Request};
use std::sync::Arc;

const POOL: &str = "pool()";

fn made(text: &str) -> Arc<dyn Allocator> {
    make(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> Error {
    make(text).err().unwrap_or_else(|| panic!("{text} is no error"))
}

#[test]
fn what_a_text_makes() {
    let pages = |options: &str| format!("pages({options})");
    for (text, shown) in [
        ("pool()", POOL.to_owned()),
        ("pool(pages('thp'))", POOL.into()),
        ("pool('pages()')", "pool(pages())".into()),
        ("pool(upstream=pages, decay=None)", "pool(pages(), decay=None)".into()),
        ("pool(decay=2, max_idle='4 GiB')", "pool(max_idle='4 GiB', decay=2.0)".into()),
        ("pool(malloc, max_idle=0)", "pool(malloc(), max_idle=0)".into()),
        ("pool(None)", POOL.into()),
        ("pages", pages("")),
        ("pages(False)", pages("")),
        ("pages('thp', populate=3, lock=True)", pages("huge='thp', populate=3, lock=True")),
        ("pages(populate=True, strict=True)", pages("populate=True, strict=True")),
        ("pages(numa='Local')", pages("numa='local'")),
        ("calloc()", "calloc()".into()),
        ("aligned('2 MiB')", "aligned(2097152)".into()),
        ("aligned(alignment=1)", "aligned(1)".into()),
        ("limited(pool(), '4 GiB')", format!("limited({POOL}, '4 GiB')")),
        ("limited('pool()', 10)", format!("limited({POOL}, 10)")),
        ("limited(pool, 4GiB)", "limited(pool(), '4 GiB')".into()),
        ("limited(pool, 100000000)", "limited(pool(), '100 MB')".into()),
        ("guarded(side=before)", "guarded(side='before')".into()),
        ("pool(pages(thp))", POOL.into()),
        ("pages(numa=local)", pages("numa='local'")),
        ("guarded(side='before', keep='1 MiB')", "guarded(side='before', keep='1 MiB')".into()),
        ("filled(calloc, on_allocate=None, on_free=0)", "filled(calloc(), on_allocate=None, on_free=0)".into()),
    ] {
        let allocator = made(text);
        assert_eq!(allocator.expression(), shown, "{text}");
        assert_eq!(made(&shown).expression(), shown);
    }
}

/// Sizes and times of every magnitude.
#[test]
fn what_is_shown_makes_the_same() {
    let powers = (1..40).flat_map(|power| [(1 << power) - 1, 1 << power, 3 << power]);
    for size in powers.chain((0..14).flat_map(|power| [10_usize.pow(power), 25 * 10_usize.pow(power)])) {
        let shown = made(&format!("limited(malloc, {size})")).expression();
        assert_eq!(
            size::parse(shown["limited(malloc(), ".len()..shown.len() - 1].trim_matches('\'')),
            Ok(size),
            "{shown}"
        );
        for text in [shown, format!("pool(malloc, max_idle={size})"), format!("guarded(keep={size})")] {
            let shown = made(&text).expression();
            assert_eq!(made(&shown).expression(), shown);
        }
    }
    for decay in ["0.0", "1e-9", "0.1", "12345.678", "1000000000.0"] {
        assert_eq!(
            made(&format!("pool(malloc, decay={decay})")).expression(),
            format!("pool(malloc(), decay={decay})")
        );
    }
}

#[test]
fn a_budget_that_is_found() {
    for text in ["limited", "limited(budget='auto')", "limited(budget=auto)", "ft.limited(pool, auto)"] {
        assert!(made(text).expression().starts_with("limited(at_most="), "{text}");
    }
    let small = made("limited(malloc, auto, at_most=10)");
    assert_eq!(small.expression(), "limited(malloc(), at_most=10)");
    assert_eq!(made("limited(malloc, 5, at_most=3)").expression(), "limited(malloc(), 3)");
    assert!(small.allocate(Request::bytes(11)).is_err());
    assert!(made("limited()").allocate(Request::bytes(1 << 46)).is_err());
    for (text, said) in [
        ("pool(auto)", "no allocator 'auto'"),
        ("pool(max_idle=auto)", "is not a size"),
        ("limited('auto')", "no allocator 'auto'"),
    ] {
        let message = error(text).to_string();
        assert!(message.contains(said), "{text}: {message}");
    }
}

#[test]
fn nodes_by_number_and_by_policy() {
    let bound = "pages(numa='bind:0')";
    for text in ["numa(0)", "pages(numa='bind:0')", "numa('0')", "numa(numa=0)"] {
        assert_eq!(made(text).expression(), bound, "{text}");
    }
    for (text, said) in [
        ("numa(4095)", "numa=4095: "),
        ("numa('bind:0-4095')", "numa='bind:0-4095': "),
        ("numa('east')", "numa='east': \"east\" is not a NUMA policy: give a node number"),
    ] {
        let error = error(text);
        assert!(matches!(error, Error::Value(_)) && error.to_string().starts_with(said), "{text}: {error}");
    }
}

#[test]
fn values_that_are_wrong() {
    for (text, said) in [
        (
            "mimaloc",
            "no allocator 'mimaloc' (did you mean mimalloc?): there are aligned, calloc, filled, guarded, jemalloc, \
             limited, malloc, mimalloc, numa, pages, pool",
        ),
        ("aligned(calloc)", "alignment='calloc': \"calloc\" is not a size"),
        ("aligned(0)", "alignment=0: give a power of two from 1 byte to 1 GiB"),
        ("aligned('2 GiB')", "alignment='2 GiB': give a power of two"),
        ("aligned(99999999999999999999)", "alignment=99999999999999999999: give a power of two"),
        ("limited(budget=0)", "budget=0: give a number of bytes, 1 to 8 EiB, text like \"4 GiB\", or \"auto\""),
        ("pool(max_idle=-1)", "max_idle=-1: give a number of bytes, 0 to 8 EiB, text like \"4 GiB\", or None"),
        ("pool(decay=-1)", "decay=-1: give seconds, 0 or more, or None for never"),
        ("pool(decay=1e300)", "decay=1e300: give seconds"),
        ("filled(on_allocate=256)", "on_allocate=256: give a byte, 0 to 255, or None to leave memory as it is"),
        ("guarded(side='both')", "side='both': give 'after' or 'before'"),
        ("guarded(keep='a lot')", "keep='a lot': \"a lot\" is not a size"),
        (
            "pages(True)",
            "huge=True: give False, \"thp\" (transparent huge pages) or a size of explicit ones, like \"2M\"",
        ),
        ("pages('3M')", "huge='3M': \"3M\" is not a size of huge pages"),
        ("pages(populate=0)", "populate=0: give False, True, or a number of threads from 1 to 1024"),
        ("pages(populate=1025)", "populate=1025: give"),
    ] {
        let error = error(text);
        assert!(matches!(error, Error::Value(_)), "{text}: {error:?}");
        assert!(error.to_string().starts_with(said), "{text}: {error}");
    }
}

#[test]
fn types_and_calls_that_are_wrong() {
    for (text, said) in [
        ("pool(decai=3)", "pool() takes no decai (did you mean decay?): it takes upstream, max_idle, "),
        ("pool(None, 3)", "pool() got too many positional arguments: it takes upstream, max_idle, "),
        ("aligned", "aligned() is missing the argument 'alignment': it takes alignment"),
        ("numa()", "numa() is missing the argument 'numa': it takes numa, huge, "),
        ("pool(pool(), upstream=pool())", "pool() got multiple values for argument 'upstream': it takes"),
        ("limited(4096)", "limited() takes an allocator, like pool(), not an int: 4096"),
        ("limited(pool, None)", "budget=None is a NoneType: give a number of bytes"),
        ("aligned(pool(decay=3))", "alignment=pool(decay=3) is an Allocator: give a power of two from 1 byte to 1 GiB"),
        ("aligned(True)", "alignment=True is a bool: give"),
        ("guarded(keep=2.5)", "keep=2.5 is a float: give"),
        ("pool(decay='x')", "decay='x' is a str: give seconds, 0 or more, or None for never"),
        ("filled(on_free='x')", "on_free='x' is a str: give a byte, 0 to 255, or None"),
        ("guarded(side=1)", "side=1 is an int: give 'after' or 'before'"),
        ("pages(strict=1)", "strict=1 is an int: give True or False"),
        ("pages(populate='all')", "populate='all' is a str: give False, True, or a number of threads"),
        ("numa(None)", "numa=None is a NoneType: give a node's number, or text like \"bind:0-1\""),
    ] {
        let error = error(text);
        assert!(matches!(error, Error::Type(_)), "{text}: {error:?}");
        assert!(error.to_string().starts_with(said), "{text}: {error}");
    }
}

#[test]
fn bundled_allocators_are_there_or_are_named() {
    for (text, there) in
        [("mimalloc", cfg!(feature = "mimalloc")), ("jemalloc()", cfg!(all(feature = "jemalloc", unix)))]
    {
        match make(text) {
            Ok(allocator) => assert!(there && allocator.expression().starts_with(&text[..8])),
            Err(error) => assert!(!there && matches!(error, Error::Unsupported(_)), "{error:?}"),
        }
    }
}

#[test]
fn defaults_are_what_is_shown() {
    for spec in spec::all().filter(|spec| !spec.name.ends_with("malloc")) {
        assert!(spec.positional <= spec.options.len());
        let (mut least, mut all) = (Vec::new(), Vec::new());
        for option in spec.options {
            let named = match (&option.default, option.kind) {
                (Some(value), _) => format!("{}={value}", option.name),
                (_, OptionKind::Policy) => format!("{}='local'", option.name),
                _ => format!("{}=64", option.name),
            };
            if option.default.is_none() {
                least.push(named.clone());
            }
            all.push(named);
        }
        let of = |arguments: &[String]| made(&format!("{}({})", spec.name, arguments.join(", "))).expression();
        assert_eq!(of(&least), of(&all));
    }
}

#[test]
fn page_sizes_as_people_write_them() {
    for (text, page) in [("2MB", "2M"), ("2 MiB", "2M"), ("2048 k", "2M"), ("1G", "1G"), ("64K", "64K")] {
        assert_eq!(made(&format!("pages('{text}')")).expression(), format!("pages(huge='{page}')"));
    }
    assert!(error("pages(huge='tph')").to_string().contains("(did you mean thp?)"));
}

/// Each level once, however many there are: 40 levels took minutes where each looked at all below twice.
#[test]
fn the_text_of_nested_allocators() {
    let text = format!("{}malloc(){}", "filled(pool(".repeat(20), "))".repeat(20));
    assert_eq!(made(&text).expression(), text);
    let usual = made("limited(filled(pool(pages(huge='thp'))), 64)");
    assert_eq!(usual.expression(), "limited(filled(), 64)");
}
