//! The residency of pages, compared with what was done to them: with every source that the system offers, and without some
//! of them, where less is reported but nothing wrong.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)] // Safety: advice and locks change where pages lie, never what they hold.

mod common;

use common::alone::each_alone;
use common::mapped::foreign;
use firsttouch::os::{Call, fail_after, huge_page_size, page_size};
use firsttouch::residency::{PageState, query, summarize};
use std::ffi::OsStr;
use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::ptr::null_mut;
use std::slice::from_raw_parts_mut;

each_alone! {
    a_file nodes_add_up without_some_sources what_is_known_by_which_source huge_pages_by_every_source
}

fn range(memory: &[u8]) -> Range<usize> {
    let start = memory.as_ptr() as usize;
    start..start + memory.len()
}

/// The state of every page.
fn states(memory: &[u8]) -> Vec<PageState> {
    let looked = query(&range(memory));
    let mut at = range(memory).start;
    let mut found = Vec::new();
    for run in looked.iter() {
        assert_eq!(run.range.start, at, "no page is left out, none comes twice");
        at = run.range.end;
        found.extend(vec![run.state; run.range.len() / page_size()]);
    }
    assert_eq!(at, range(memory).end);
    found
}

fn advise(memory: &[u8], advice: i32) -> bool {
    // SAFETY: huge or not: the content stays.
    unsafe { libc::madvise(memory.as_ptr() as *mut _, memory.len(), advice) == 0 }
}

fn small_pages(count: usize) -> &'static mut [u8] {
    let memory = foreign(0, count * page_size()).unwrap();
    advise(memory, libc::MADV_NOHUGEPAGE);
    memory
}

/// Whole aligned huge pages, where there are any.
fn huge_pages(count: usize) -> Option<&'static mut [u8]> {
    let size = huge_page_size()?;
    let memory = foreign(0, (count + 1) * size)?;
    let start = memory.as_ptr().align_offset(size);
    let memory = &mut memory[start..start + count * size];
    advise(memory, libc::MADV_HUGEPAGE).then_some(memory)
}

fn read(memory: &[u8], page: usize) {
    // SAFETY: it is there; volatile, so that it happens.
    black_box(unsafe { memory.as_ptr().add(page * page_size()).read_volatile() });
}

/// Some pages of each kind, and what they are. None are swapped: that needs swap space.
fn mixed() -> (&'static mut [u8], Vec<PageState>) {
    let memory = small_pages(3000);
    let mut expected = vec![PageState::Absent; 3000];
    let mut random = 7u32;
    for page in 0..3000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match if page < 1000 { random >> 30 } else { page as u32 / 400 % 4 } {
            0 => {
                read(memory, page);
                expected[page] = PageState::Zero;
            }
            1 => {
                memory[page * page_size()] = 1;
                expected[page] = PageState::Small;
            }
            _ => {}
        }
    }
    (memory, expected)
}

/// A file's pages are absent until this process has touched them.
fn a_file() {
    let path = std::env::temp_dir().join(format!("firsttouch-residency-{}", std::process::id()));
    let path = path.with_extension(OsStr::from_bytes(b"\xff"));
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
    assert!(states(private).iter().all(|&state| state == PageState::Absent));
    std::fs::remove_file(&path).unwrap();
    advise(shared, libc::MADV_RANDOM);
    shared[page_size()] = 2;
    let found = states(shared);
    assert_eq!(found[1], PageState::Small);
    assert!(found[5..].iter().all(|&state| state == PageState::Absent), "{found:?}");
    assert!(firsttouch::os::is_shared(shared.as_ptr() as usize), "names that are no text hide no mapping");
}

/// One node or many, whoever is asked: all that is real lies somewhere.
fn nodes_add_up() {
    let (memory, expected) = mixed();
    let real = expected.iter().filter(|&&state| state == PageState::Small).count() * page_size();
    for refused in [&[][..], &[Call::OnlyNode]] {
        fail_after(refused, 0, i64::MAX / 2);
        let sums = summarize(&query(&range(memory)));
        fail_after(&[], 0, 0);
        assert_eq!(sums.nodes.unwrap().values().sum::<usize>(), real);
    }
    fail_after(&[Call::OnlyNode, Call::NodesOfPages], 0, i64::MAX / 2);
    let sums = summarize(&query(&range(memory)));
    fail_after(&[], 0, 0);
    assert!(sums.nodes.is_none());
}

const SOURCES: [Call; 4] = [Call::OpenPages, Call::ScanPages, Call::ReadPages, Call::NodesOfPages];

/// Whether what a poorer source said is true, if vaguer.
fn agrees(said: PageState, truth: PageState) -> bool {
    said == truth
        || match said {
            PageState::Real => truth.is_real(),
            PageState::Present => truth.is_real() || truth == PageState::Zero,
            PageState::Unknown => true,
            _ => false,
        }
}

/// Every set of sources that may be refused: nothing wrong is ever said, and figures are known or missing.
fn without_some_sources() {
    let (memory, expected) = mixed();
    for set in 0..1u32 << SOURCES.len() {
        let refused: Vec<_> = (0..SOURCES.len()).filter(|n| set & 1 << n != 0).map(|n| SOURCES[n]).collect();
        fail_after(&refused, 0, i64::MAX / 2);
        let said = states(memory);
        let sums = summarize(&query(&range(memory)));
        fail_after(&[], 0, 0);
        for (page, (&said, &truth)) in said.iter().zip(&expected).enumerate() {
            assert!(agrees(said, truth), "{refused:?}: page {page} is {truth:?}, not {said:?}");
        }
        let count = |state| expected.iter().filter(|&&each| each == state).count() * page_size();
        for (name, truth) in [
            ("absent", count(PageState::Absent)),
            ("zero_page", count(PageState::Zero)),
            ("small", count(PageState::Small)),
            ("real", count(PageState::Small)),
            ("huge", 0),
            ("swapped", 0),
        ] {
            let figure = sums.figures.iter().find(|(each, _)| *each == name).unwrap().1;
            assert!(figure.is_none_or(|bytes| bytes == truth), "{refused:?}: {name} is {figure:?}");
        }
    }
}

/// What is known of small pages without some sources.
fn what_is_known_by_which_source() {
    let memory = small_pages(3);
    read(memory, 1);
    memory[2 * page_size()] = 1;
    use Call::{NodesOfPages, OpenPages, ScanPages};
    use PageState::{Absent, Present, Small, Unknown, Zero};
    for (refused, found, known) in [
        (&[][..], [Absent, Zero, Small], [true; 3]),
        (&[ScanPages], [Absent, Zero, Small], [true; 3]),
        (&[ScanPages, NodesOfPages], [Absent, Present, Small], [true, false, false]),
        (&[OpenPages], [Unknown; 3], [false; 3]),
    ] {
        fail_after(refused, 0, i64::MAX / 2);
        let (said, sums) = (states(memory), summarize(&query(&range(memory))).figures);
        fail_after(&[], 0, 0);
        assert_eq!(said, found, "{refused:?}");
        assert_eq!([0, 1, 2].map(|figure| sums[figure].1.is_some()), known, "{refused:?}");
    }
}

/// The huge zero page, huge pages, and one that was split: by every source that can tell.
fn huge_pages_by_every_source() {
    let Some(memory) = huge_pages(4) else { return };
    let huge = huge_page_size().unwrap();
    read(memory, 0); // the first: the huge zero page, unless the machine gives a real one
    memory[huge] = 1;
    memory[2 * huge] = 1;
    advise(&memory[3 * huge..], libc::MADV_NOHUGEPAGE);
    memory[3 * huge..].fill(1);
    let truth = states(memory);
    let per = huge / page_size();
    if truth[per] != PageState::Huge {
        return; // no huge page could be had
    }
    assert!(matches!(truth[0], PageState::Zero | PageState::Huge | PageState::Small), "{:?}", truth[0]);
    assert!(truth[per..3 * per].iter().all(|&state| state == PageState::Huge));
    assert!(truth[3 * per..].iter().all(|&state| state == PageState::Small));
    fail_after(&[Call::ScanPages], 0, i64::MAX / 2);
    let said = states(memory);
    assert!(said.iter().zip(&truth).all(|(&said, &truth)| agrees(said, truth)));
    // Where a mapping has huge pages alone, or none, that tells the size of each page.
    assert_eq!(states(&memory[..3 * huge])[per..], truth[per..3 * per]);
    assert_eq!(states(&memory[3 * huge..]), truth[3 * per..]);
    fail_after(&[Call::NodesOfPages], 0, i64::MAX / 2);
    let said = states(memory);
    fail_after(&[], 0, 0);
    assert!(said.iter().zip(&truth).all(|(&said, &truth)| agrees(said, truth)));
}
