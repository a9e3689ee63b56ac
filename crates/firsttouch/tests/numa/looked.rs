//! Residency on several nodes, and on a kernel that may lack its best source.

use super::view::{Held, SIZE, numbers, source, write};
use firsttouch::os::{huge_page_size, page_size};
use firsttouch::pages::migration::nodes_of;
use firsttouch::residency::{PageRuns, PageState, query, summarize, visit_nodes};
use firsttouch::sources::Pages;
use std::collections::BTreeMap;

fn looked(held: &Held<'_>) -> PageRuns {
    let pages = held.address()..held.address() + held.block.size.next_multiple_of(page_size());
    query(&pages)
}

/// Every node's bytes, and every page's node, are those that move_pages names.
pub fn on_every_node() {
    let mut policies: Vec<String> = numbers().iter().map(usize::to_string).collect();
    policies.push("interleave:all".into());
    for text in policies {
        let pages = source(&text);
        let held = Held::new(&*pages, SIZE).touched();
        let truth = nodes_of(held.address(), SIZE).unwrap();
        let mut bytes = BTreeMap::new();
        truth.iter().for_each(|&node| *bytes.entry(node).or_insert(0) += page_size());
        let look = looked(&held);
        assert_eq!(summarize(&look).nodes, Some(bytes), "{text}");
        let mut each = Vec::new();
        visit_nodes(&look, |range, node| each.extend(vec![node; range.len() / page_size()])).unwrap();
        assert_eq!(each, truth, "{text}");
    }
}

/// Pages that aren't there, the zero page, small pages: whichever source this kernel has.
pub fn every_state() {
    let pages = Pages::new(false);
    let held = Held::new(&*pages, SIZE);
    let (read, written) =
        (held.address() + SIZE / 4 / page_size() * page_size(), held.address() + SIZE / 2 / page_size() * page_size());
    for at in (read..written).step_by(page_size()) {
        // SAFETY: the block is ours.
        unsafe { std::ptr::with_exposed_provenance::<u8>(at).read_volatile() };
    }
    write(written, 1 << 20, 1);
    let bytes = looked(&held).bytes();
    let of = |state: PageState| bytes[state as usize];
    assert_eq!((of(PageState::Zero), of(PageState::Small)), (written - read, 1 << 20));
    assert_eq!(of(PageState::Absent), SIZE.next_multiple_of(page_size()) - (written - read) - (1 << 20));
}

/// Huge pages, and one that was only read.
pub fn huge_pages() {
    let (huge, pages) = (huge_page_size().unwrap(), Pages::new(true));
    let held = Held::new(&*pages, 8 * huge);
    let first = held.address().next_multiple_of(huge);
    // SAFETY: the block is ours.
    unsafe { std::ptr::with_exposed_provenance::<u8>(first).read_volatile() };
    write(first + 2 * huge, 3 * huge, 1);
    let bytes = looked(&held).bytes();
    let of = |state: PageState| bytes[state as usize];
    // Before Linux 6.7 no source tells which pages are huge where some may be.
    let real = of(PageState::Huge) + of(PageState::Real);
    assert_eq!((of(PageState::Zero), real), (huge, 3 * huge), "{bytes:?}");
}
