//! Restrictions from outside, and nodes that are not available.

use super::common::limits::refuse;
use super::view::{SIZE, all_on, in_a_thread, nodes, numbers, on_node, page_nodes, policy, source, touched};
use firsttouch::allocator::{Allocator, Limit, Request};
use firsttouch::numa::Topology;
use firsttouch::pages::placement::{Placement, Reason};
use firsttouch::sources::Pages;
use std::fs::{create_dir_all, write};

/// What changes nothing of a machine that is not ours.
pub fn may_run_here(name: &str) -> bool {
    !["explicit", "cpuset", "full"].iter().any(|word| name.contains(word))
}

pub fn without_memory() {
    let machine = Topology::read();
    for node in machine.online().iter().filter(|&node| !machine.with_memory().contains(node)) {
        let refused = policy(&node.to_string()).unwrap().check(&machine).unwrap_err();
        assert!(refused.contains("has no memory"), "{refused}");
        on_node(node, || {
            let pages = source("local"); // the nearest that has some
            assert!(page_nodes(&touched(&*pages, SIZE)).iter().all(|&page| nodes().contains(page as usize)));
        });
    }
}

/// Whether a policy is granted, why not or only in part, and the node of each page.
fn outcome(text: &str) -> ((bool, Option<Reason>), Vec<i32>) {
    let pages = source(text);
    let held = touched(&*pages, SIZE);
    let (_, receipt) = pages.receipt(held.address()).unwrap();
    ((receipt.policy.is_some(), receipt.policy_refused), page_nodes(&held))
}

fn policy_from(bound: usize, other: usize, reason: Reason) {
    let only_there = |pages: Vec<i32>| assert!(pages.iter().all(|&page| page == bound as i32), "{pages:?}");
    let (got, pages) = outcome(&other.to_string());
    assert_eq!(got, (false, Some(reason)));
    only_there(pages);
    let (got, pages) = outcome(&format!("bind:{bound},{other}"));
    assert!(matches!(got, (true, Some(_))), "{got:?}");
    only_there(pages);
    for text in ["interleave:all", "bind:all", "local"] {
        only_there(outcome(text).1);
    }
}

/// As `numactl --membind` sets it.
pub fn numactl() {
    let (bound, other) = (numbers()[1], numbers()[0]);
    in_a_thread(|| {
        let mask = [1u64 << bound; 1];
        // SAFETY: the kernel reads 64 bits.
        let done = unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_BIND, mask.as_ptr(), 65) };
        assert_eq!(done, 0);
        policy_from(bound, other, Reason::OuterPolicy);
        assert_eq!(outcome(&format!("preferred:{bound}")).0, (false, Some(Reason::OuterPolicy)));
    });
}

/// Where only the memory of one node may be used.
pub fn cpuset() {
    let (bound, other) = (numbers()[1], numbers()[0]);
    write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset").unwrap();
    create_dir_all("/sys/fs/cgroup/some").unwrap();
    write("/sys/fs/cgroup/some/cpuset.mems", bound.to_string()).unwrap();
    write("/sys/fs/cgroup/some/cgroup.procs", "1").unwrap();
    policy_from(bound, other, Reason::Cpuset);
    write("/sys/fs/cgroup/cgroup.procs", "1").unwrap();
    assert_eq!(outcome(&other.to_string()).0, (true, None));
}

pub fn refused() {
    in_a_thread(|| {
        refuse(&[libc::SYS_mbind, libc::SYS_set_mempolicy]);
        assert_eq!(outcome(&numbers()[0].to_string()).0, (false, Some(Reason::NotPermitted)));
        let placement = Placement { policy: policy("interleave:all"), strict: true, ..Placement::default() };
        let error = Pages::placed(placement).allocate(Request::bytes(SIZE)).unwrap_err();
        assert_eq!(error.limit, Limit::Placement);
        assert!(firsttouch::failure::last_reason().unwrap().contains("numa: the system does not permit it"));
    });
    all_on(&touched(&*source(&numbers()[0].to_string()), SIZE), numbers()[0]); // other threads may
}
