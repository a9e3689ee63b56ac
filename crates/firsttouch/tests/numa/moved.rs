//! Migration of pages to another node, and what is told of the nodes of pages.

use super::common::held::Held;
use super::view::{SIZE, all_on, nodes, numbers, page_nodes, policy, source, touched, untouched};
use firsttouch::numa::Binding;
use firsttouch::os;
use firsttouch::pages::migration::{Migration, migrate, nodes_of};
use firsttouch::pages::placement::{Page, Placement};
use firsttouch::residency::{query, summarize, visit_nodes};
use firsttouch::sources::{Malloc, Pages};
use std::collections::BTreeMap;

const HUGE: usize = 2 << 20;

fn binding(text: &str) -> Binding {
    policy(text).unwrap().binding().unwrap()
}

fn to(held: &Held<'_>, text: &str) -> Migration {
    let done = migrate((held.address(), held.usable()), &binding(text)).unwrap();
    assert_eq!((done.failed, done.why_not), (0, None));
    done
}

pub fn to_every_node() {
    let pages = Pages::new(false);
    let held = touched(&*pages, SIZE);
    for node in numbers().into_iter().chain(numbers()) {
        to(&held, &node.to_string());
        all_on(&held, node);
        assert_eq!(to(&held, &format!("preferred:{node}")).stayed, held.usable());
    }
}

pub fn interleave() {
    let pages = Pages::new(false);
    let held = touched(&*pages, SIZE);
    to(&held, "interleave:all");
    for node in numbers() {
        let share = page_nodes(&held).iter().filter(|&&page| page == node as i32).count();
        assert!(share.abs_diff(SIZE / os::page_size() / nodes().len()) <= 1);
    }
}

/// A huge page goes to one node as a whole.
pub fn huge() {
    let (all, rows) = (numbers(), 16);
    let placement = Placement { page: Page::Transparent, populate: Some(0), ..Placement::default() };
    let pages = Pages::placed(placement);
    let held = untouched(&*pages, rows * HUGE);
    to(&held, "interleave:all");
    let found = page_nodes(&held);
    assert!(found.chunks(512).all(|huge| huge.iter().all(|&node| node == huge[0])), "{found:?}");
    for node in &all {
        let share = (0..rows).filter(|&row| found[row * 512] as usize == *node).count();
        assert!(share.abs_diff(rows / all.len()) <= 1, "node {node}: {share} of {rows}");
    }
}

pub fn others_memory() {
    let source = Malloc::new();
    let held = touched(&*source, SIZE);
    for node in numbers() {
        let done = to(&held, &node.to_string());
        assert!(done.absent <= os::page_size(), "{done:?}"); // the last one is not ours alone
        let found = nodes_of(held.address() & !4095, SIZE).unwrap();
        assert!(found.iter().all(|&page| page == node as i32));
    }
}

/// Every node's bytes, and every page's node, are those that move_pages names.
pub fn on_every_node() {
    let mut policies: Vec<String> = numbers().iter().map(usize::to_string).collect();
    policies.push("interleave:all".into());
    for text in policies {
        let pages = source(&text);
        let held = touched(&*pages, SIZE);
        let truth = nodes_of(held.address(), SIZE).unwrap();
        let mut bytes = BTreeMap::new();
        truth.iter().for_each(|&node| *bytes.entry(node).or_insert(0) += os::page_size());
        let look = query(&(held.address()..held.address() + SIZE));
        assert_eq!(summarize(&look).nodes, Some(bytes), "{text}");
        let mut each = Vec::new();
        visit_nodes(&look, |range, node| each.extend(vec![node; range.len() / os::page_size()])).unwrap();
        assert_eq!(each, truth, "{text}");
    }
}
