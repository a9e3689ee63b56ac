use super::{Orders, Outer, Policy};
use crate::numa::axis::Axis;
use crate::os::{Mode, Nodes};
use crate::reason::Reason;

fn nodes(text: &str) -> Nodes {
    Nodes::parse(text).unwrap()
}

fn outer(allowed: &str, bounds: Option<&str>) -> Outer {
    Outer { with_memory: nodes("0-3"), allowed: nodes(allowed), bounds: bounds.map(nodes) }
}

fn orders(text: &str, outer: &Outer) -> Result<Orders, Reason> {
    Policy::parse(text).unwrap().within(outer)
}

#[test]
fn policies_round_trip() {
    for text in
        ["bind:0-1", "bind:all", "preferred:1", "interleave:all", "interleave:0,2", "local", "blocked:0", "blocked:-1"]
    {
        assert_eq!(Policy::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Policy::parse(" 1 ").unwrap().to_string(), "bind:1");
    assert_eq!(Policy::parse("Interleave: 0-1").unwrap().to_string(), "interleave:0-1");
}

#[test]
fn invalid_policies_are_rejected() {
    for text in [
        "",
        "bnid:0",
        "bind",
        "bind:",
        "bind:x",
        "bind:1-0",
        "bind:-1",
        "-1",
        "preferred",
        "preferred:0-1",
        "local:1",
        "blocked",
        "blocked:x",
        "blocked:--1",
        "blocked:+1",
        "interleave",
        "1024",
        "99999999999999999999",
        "1.5",
        "+1",
        "default",
    ] {
        let message = Policy::parse(text).expect_err(text);
        assert!(message.contains(&format!("{text:?}")) && message.contains("\"bind:0-1\""), "{message}");
    }
}

#[test]
fn outer_restrictions_are_never_widened() {
    let free = outer("0-3", None);
    assert_eq!(orders("bind:1-2", &free).unwrap().nodes, nodes("1-2"));
    assert_eq!(orders("interleave:all", &free).unwrap().nodes, nodes("0-3"));
    assert_eq!(orders("local", &free).unwrap().mode, Mode::Local);

    let cpuset = outer("0-1", None);
    assert_eq!(orders("bind:2", &cpuset), Err(Reason::Cpuset));
    let clipped = orders("bind:1-2", &cpuset).unwrap();
    assert_eq!((clipped.nodes, clipped.clipped), (nodes("1"), true));
    assert_eq!(orders("interleave:all", &cpuset).unwrap().nodes, nodes("0-1"));

    let numactl = outer("0-3", Some("0,3"));
    assert_eq!(orders("bind:1", &numactl), Err(Reason::OuterPolicy));
    assert_eq!(orders("preferred:0", &numactl), Err(Reason::OuterPolicy));
    let local = orders("local", &numactl).unwrap();
    assert_eq!((local.mode, local.nodes), (Mode::Bind, nodes("0,3")));
    assert_eq!(orders("blocked:0", &numactl).unwrap().nodes, nodes("0,3"));
}

#[test]
fn where_no_node_is_left_nothing_is_granted() {
    for policy in ["bind:all", "bind:0", "interleave:all", "local", "preferred:0", "blocked:0"] {
        assert_eq!(orders(policy, &outer("0-1", Some("2"))), Err(Reason::OuterPolicy), "{policy}");
        assert_eq!(orders(policy, &outer("7", None)), Err(Reason::Cpuset), "{policy}");
    }
}

#[test]
fn slabs_cover_everything_and_end_at_pages() {
    let four = orders("blocked:0", &outer("0-3", None)).unwrap();
    for (size, page) in [(4096, 4096), (8192, 4096), (1 << 20, 4096), ((1 << 20) + 4096, 4096), (5 << 21, 2 << 20)] {
        let mut at = 0;
        for (from, len, node) in four.ranges(size, page) {
            assert_eq!((from, from % page, node.len()), (at, 0, 1));
            at += len;
        }
        assert_eq!(at, size);
    }
    assert_eq!(four.ranges(1 << 20, 4096).count(), 4);
    let one = orders("bind:1", &outer("0-3", None)).unwrap();
    assert_eq!(one.ranges(8192, 4096).collect::<Vec<_>>(), [(0, 8192, nodes("1"))]);
}

#[test]
fn slabs_along_an_inner_axis_return_in_every_row() {
    let two = orders("blocked:1", &outer("0-1", None)).unwrap();
    let rows = Orders { axis: Some(Axis { stride: 4096, items: 6 }), ..two };
    let lengths: Vec<_> = rows.ranges(4 * 6 * 4096, 4096).map(|(_, len, node)| (len / 4096, node)).collect();
    assert_eq!(lengths, [(3, nodes("0")), (3, nodes("1"))].repeat(4));
    for page in 0..24 {
        assert_eq!(rows.target(page * 4096 + 100, 24 * 4096), Some(page % 6 / 3));
    }
    // Items smaller than a page: a page lies where its first byte belongs.
    let small = Orders { axis: Some(Axis { stride: 8, items: 1024 }), ..two };
    let ranges: Vec<_> = small.ranges(4 * 8192, 4096).collect();
    assert_eq!(ranges.len(), 8);
    assert!(
        ranges
            .iter()
            .all(|&(from, len, node)| len == 4096 && small.target(from, 32768) == Some(node.iter().next().unwrap()))
    );
    let tiny = Orders { axis: Some(Axis { stride: 1, items: 2 }), ..two };
    assert_eq!(tiny.ranges(8192, 4096).collect::<Vec<_>>(), [(0, 8192, nodes("0"))]);
    // A look at the first few takes no time and no memory, however many there are.
    assert_eq!(rows.ranges(1 << 46, 4096).nth(4096), Some((4096 * 3 * 4096, 3 * 4096, nodes("0"))));
}
