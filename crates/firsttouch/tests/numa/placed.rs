//! Where pages come from.

use super::view::{
    SIZE, all_on, free_huge_pages, homes, numbers, on_node, page_nodes, policy, source, touched, untouched,
};
use firsttouch::adaptors::{Options, Pool};
use firsttouch::allocator::{Allocator, Limit, Request};
use firsttouch::pages::placement::{Page, Placement, Reason};
use firsttouch::sources::Pages;

const HUGE: usize = 2 << 20;

pub fn on_each_node() {
    for node in numbers() {
        for (mode, page) in [("", Page::Base), ("preferred:", Page::Base), ("", Page::Transparent)] {
            let policy = policy(&format!("{mode}{node}"));
            let pages = Pages::placed(Placement { page, policy, ..Placement::default() });
            let held = touched(&*pages, SIZE);
            assert!(page == Page::Base || held.address().is_multiple_of(HUGE));
            all_on(&held, node);
        }
    }
}

pub fn interleave() {
    let all = numbers();
    let pages = source("interleave:all");
    let found = page_nodes(&touched(&*pages, SIZE));
    let first = all.iter().position(|&node| node as i32 == found[0]).unwrap();
    for (at, &page) in found.iter().enumerate() {
        assert_eq!(page, all[(first + at) % all.len()] as i32, "page {at}");
    }
}

pub fn local() {
    let pages = source("local");
    for node in homes() {
        on_node(node, || all_on(&touched(&*pages, SIZE), node));
    }
}

/// Lets a node have so many explicit huge pages.
fn reserve(node: usize, count: usize) {
    let file = format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
    std::fs::write(file, count.to_string()).unwrap();
}

fn huge_on(node: usize, strict: bool) -> std::sync::Arc<Pages> {
    let policy = policy(&node.to_string());
    Pages::placed(Placement { page: Page::Explicit(HUGE), policy, strict, ..Placement::default() })
}

pub fn explicit() {
    let node = numbers()[1];
    reserve(node, 4);
    let pages = huge_on(node, true);
    let held = untouched(&*pages, 4 * HUGE - 5);
    assert_eq!(free_huge_pages(HUGE, Some(node)), Some(0), "the pages are real from the start");
    let (_, receipt) = pages.receipt(held.address()).unwrap();
    assert_eq!((receipt.page, receipt.policy_refused), (Page::Explicit(HUGE), None));
    assert_eq!(page_nodes(&held)[0], node as i32);
    drop(held);
    assert_eq!(free_huge_pages(HUGE, Some(node)), Some(4));
    reserve(node, 0);
}

/// The machine has enough, the node has not: there would be a SIGBUS at the first touch.
pub fn explicit_lacking() {
    let (has, lacks) = (numbers()[1], numbers()[0]);
    reserve(has, 4);
    let pages = huge_on(lacks, false);
    let held = touched(&*pages, 2 * HUGE);
    let (_, receipt) = pages.receipt(held.address()).unwrap();
    assert_eq!((receipt.page, receipt.refused), (Page::Transparent, Some((Page::Explicit(HUGE), Reason::Node))));
    all_on(&held, lacks);
    let error = huge_on(lacks, true).allocate(Request::bytes(2 * HUGE)).unwrap_err();
    assert_eq!(error.limit, Limit::Placement);
    reserve(has, 0);
}

pub fn populated() {
    for (node, populate) in numbers().into_iter().zip([Some(0), Some(3)].into_iter().cycle()) {
        let pages = Pages::placed(Placement { populate, policy: policy(&node.to_string()), ..Placement::default() });
        let held = untouched(&*pages, SIZE);
        all_on(&held, node); // nobody has touched it
        assert!(pages.receipt(held.address()).unwrap().1.threads > 0);
    }
}

pub fn more_than_a_node_has() {
    let node = numbers()[1];
    let placement = Placement { populate: Some(0), policy: policy(&node.to_string()), ..Placement::default() };
    let error = Pages::placed(placement).allocate(Request::bytes(400 << 20)).unwrap_err();
    assert!(matches!(error.limit, Limit::Available(_)), "{error:?}");
    let reason = firsttouch::failure::last_reason().unwrap();
    assert!(reason.contains(&format!("on nodes {node}")), "{reason}");
}

/// What is recycled stays on its node, whoever asks and gives back.
pub fn pool_on_a_node() {
    let node = numbers()[1];
    let pool = Pool::over(source(&node.to_string()), Options::default());
    for at in numbers().into_iter().cycle().take(6) {
        on_node(at, || {
            let held: Vec<_> = (0..4).map(|_| touched(&*pool, SIZE)).collect();
            held.iter().for_each(|held| all_on(held, node));
        });
    }
}
