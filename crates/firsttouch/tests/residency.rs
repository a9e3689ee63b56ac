//! The residency of pages, compared with what was done to them.

#![allow(unsafe_code)] // Safety: advice and locks change where pages lie, never what they hold.

mod common;

use common::alone::alone;
use common::pages::{advise, mixed, only_states, range, small_pages};
use firsttouch::os::{Call, fail_after, page_size};
use firsttouch::residency::{PageState, footprint, query, summarize};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::slice::from_raw_parts_mut;

#[test]
fn every_page_is_what_was_done_to_it() {
    alone("every_page_is_what_was_done_to_it", || {
        let (memory, expected) = mixed();
        assert_eq!(only_states(memory), expected);
        assert_eq!(only_states(memory), expected, "looking changes nothing");
    });
}

#[test]
fn locked_memory() {
    alone("locked_memory", || {
        let memory = small_pages(30);
        memory.fill(1);
        let locked = |memory: &[u8]| summarize(&query(&[range(memory)])).figures[7].1;
        assert_eq!(locked(memory).bytes, Some(0));
        let (start, size) = (5 * page_size(), 10 * page_size());
        // SAFETY: it is there; locking changes no byte.
        if unsafe { libc::mlock(memory[start..].as_ptr().cast(), size) } != 0 {
            return; // RLIMIT_MEMLOCK
        }
        assert_eq!(locked(memory).bytes, Some(size));
        assert_eq!(locked(&memory[start + page_size()..]).bytes, Some(size - page_size()));
        assert_eq!(locked(&memory[..start]).bytes, Some(0));
        assert!(locked(memory).source.contains("smaps"));
    });
}

/// A file's page is in the page cache before anybody maps it; a hole that was never read is nowhere.
#[test]
fn a_file() {
    alone("a_file", || {
        let path = std::env::temp_dir().join(format!("firsttouch-residency-{}", std::process::id()));
        let mut file = File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        file.write_all(&vec![1; 4 * page_size()]).unwrap();
        file.set_len(8 * page_size() as u64).unwrap();
        let at = |access, flags| {
            // SAFETY: a new mapping replaces nothing; the file keeps its size.
            unsafe {
                let at = libc::mmap(null_mut(), 8 * page_size(), access, flags, file.as_raw_fd(), 0);
                assert_ne!(at, libc::MAP_FAILED);
                from_raw_parts_mut(at.cast::<u8>(), 8 * page_size())
            }
        };
        let shared = at(libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let private = at(libc::PROT_READ, libc::MAP_PRIVATE);
        let unmapped = |found: &[PageState]| found.iter().filter(|&&state| state == PageState::Cached).count();
        assert!(unmapped(&only_states(private)) >= 4, "it is ours, so the kernel tells");
        std::fs::remove_file(&path).unwrap();
        advise(shared, libc::MADV_RANDOM);
        shared[page_size()] = 2;
        let found = only_states(shared);
        assert_eq!(found[1], PageState::Small);
        assert!(found[2..4].iter().all(|&state| matches!(state, PageState::Cached | PageState::Small)), "{found:?}");
        assert!(found[5..].iter().all(|&state| state == PageState::Absent), "{found:?}");
        // Its name is gone and it can't be written: whether the kernel would lie can't be known.
        assert!(only_states(private).iter().all(|&state| state == PageState::Absent));
    });
}

/// One node or many, whoever is asked: all that is real lies somewhere.
#[test]
fn nodes_add_up() {
    alone("nodes_add_up", || {
        let (memory, expected) = mixed();
        let real = expected.iter().filter(|&&state| state == PageState::Small).count() * page_size();
        for refused in [&[][..], &[Call::OnlyNode]] {
            fail_after(refused, 0, i64::MAX / 2);
            let sums = summarize(&query(&[range(memory)]));
            fail_after(&[], 0, 0);
            assert_eq!(sums.nodes.unwrap().values().sum::<usize>(), real);
        }
        fail_after(&[Call::OnlyNode, Call::NodesOfPages], 0, i64::MAX / 2);
        let sums = summarize(&query(&[range(memory)]));
        fail_after(&[], 0, 0);
        assert!(sums.nodes.is_none() && sums.nodes_source.contains("move_pages"));
    });
}

/// Only the pages that elements lie on count.
#[test]
fn a_view_with_gaps() {
    alone("a_view_with_gaps", || {
        let memory = small_pages(100);
        for page in (0..100).step_by(3) {
            memory[page * page_size() + 8] = 1;
        }
        let start = range(memory).start + 99 * page_size() + 8;
        let pages = footprint(start, 8, &[34], &[-3 * page_size() as isize]).unwrap();
        for refused in [&[][..], &[Call::ScanPages], &[Call::OpenPages]] {
            fail_after(refused, 0, i64::MAX / 2);
            let sums = summarize(&query(&pages));
            fail_after(&[], 0, 0);
            assert_eq!((sums.figures[0].1.bytes, sums.figures[4].1.bytes), (Some(0), Some(34 * page_size())));
        }
    });
}

#[test]
fn nothing_has_no_pages() {
    let sums = summarize(&query(&[]));
    assert!(sums.figures.iter().all(|(_, figure)| figure.bytes == Some(0)));
    assert!(sums.nodes.unwrap().is_empty());
}
