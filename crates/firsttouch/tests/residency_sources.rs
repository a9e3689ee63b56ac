//! Residency without the kernel's best sources: less is reported, but nothing wrong.

mod common;

use common::alone::alone;
use common::pages::{advise, huge_pages, mixed, only_states, range, read, small_pages, states};
use firsttouch::os::{Call, fail_after, huge_page_size, page_size};
use firsttouch::residency::{PageState, StateSource, query, summarize};

const SOURCES: [Call; 6] =
    [Call::OpenPages, Call::ScanPages, Call::ReadPages, Call::NodesOfPages, Call::Resident, Call::ReadMappings];

/// Whether what a poorer source said is true, if vaguer.
fn agrees(said: PageState, truth: PageState) -> bool {
    said == truth
        || match said {
            PageState::Real => truth.is_real(),
            PageState::Present => truth.is_real() || truth == PageState::Zero,
            PageState::Unknown => true,
            PageState::Absent => truth == PageState::Cached,
            _ => false,
        }
}

/// Every set of sources that may be refused: nothing wrong is ever said, and figures are known or missing.
#[test]
fn without_some_sources() {
    alone("without_some_sources", || {
        let (memory, expected) = mixed();
        for set in 0..1u32 << SOURCES.len() {
            let refused: Vec<_> = (0..SOURCES.len()).filter(|n| set & 1 << n != 0).map(|n| SOURCES[n]).collect();
            fail_after(&refused, 0, i64::MAX / 2);
            let said = only_states(memory);
            let sums = summarize(&query(&[range(memory)]));
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
                ("cached", 0),
                ("locked", 0),
            ] {
                let figure = sums.figures.iter().find(|(each, _)| *each == name).unwrap().1;
                assert!(figure.bytes.is_none_or(|bytes| bytes == truth), "{refused:?}: {name} is {figure:?}");
                let unknown = figure.source.starts_with("not known");
                assert_eq!(figure.bytes.is_none(), unknown, "{refused:?}: {name} is {figure:?}");
            }
        }
    });
}

/// What each source alone can tell of small pages.
#[test]
fn which_source_says_what() {
    alone("which_source_says_what", || {
        let memory = small_pages(3);
        read(memory, 1);
        memory[2 * page_size()] = 1;
        let said = |refused: &[Call]| {
            fail_after(refused, 0, i64::MAX / 2);
            let found = states(memory);
            fail_after(&[], 0, 0);
            found
        };
        use PageState::{Absent, Present, Real, Small, Zero};
        let scan = StateSource::Scan;
        assert_eq!(said(&[]), [(Absent, scan), (Zero, scan), (Small, scan)]);
        let (table, nodes, smaps) = (StateSource::Pagemap, StateSource::MovePages, StateSource::Smaps);
        assert_eq!(said(&[Call::ScanPages]), [(Absent, table), (Zero, nodes), (Small, smaps)]);
        let without = [Call::ScanPages, Call::NodesOfPages];
        assert_eq!(said(&without), [(Absent, table), (Present, table), (Small, smaps)]);
        let without = [Call::ScanPages, Call::ReadMappings];
        assert_eq!(said(&without), [(Absent, table), (Zero, nodes), (Real, table)]);
        if firsttouch::os::has_swap() == Some(false) {
            assert_eq!(said(&[Call::OpenPages]), [(Absent, nodes), (Zero, nodes), (Small, smaps)]);
            let (without, core) = ([Call::OpenPages, Call::NodesOfPages], StateSource::Mincore);
            assert_eq!(said(&without), [(Absent, core), (Present, core), (Present, core)]);
        }
        let nothing = said(&SOURCES);
        assert_eq!(nothing, [(PageState::Unknown, StateSource::None); 3]);
    });
}

/// The huge zero page, huge pages, and one that was split: by every source that can tell.
#[test]
fn huge_pages_by_every_source() {
    alone("huge_pages_by_every_source", || {
        let Some(memory) = huge_pages(4) else { return };
        let huge = huge_page_size().unwrap();
        read(memory, 0); // the first: the huge zero page, unless the machine gives a real one
        memory[huge] = 1;
        memory[2 * huge] = 1;
        advise(&memory[3 * huge..], libc::MADV_NOHUGEPAGE);
        memory[3 * huge..].fill(1);
        let truth = only_states(memory);
        let per = huge / page_size();
        if truth[per] != PageState::Huge {
            return; // no huge page could be had
        }
        assert!(matches!(truth[0], PageState::Zero | PageState::Huge | PageState::Small), "{:?}", truth[0]);
        assert!(truth[per..3 * per].iter().all(|&state| state == PageState::Huge));
        assert!(truth[3 * per..].iter().all(|&state| state == PageState::Small));
        fail_after(&[Call::ScanPages], 0, i64::MAX / 2);
        assert_eq!(only_states(memory), truth, "smaps has as many as there are full blocks");
        assert_eq!(only_states(&memory[huge / 2..]), truth[per / 2..], "also for a part");
        fail_after(&[Call::NodesOfPages], 0, i64::MAX / 2);
        let said = only_states(memory);
        fail_after(&[], 0, 0);
        assert!(said.iter().zip(&truth).all(|(&said, &truth)| agrees(said, truth)));
        assert_eq!(said[per], PageState::Huge, "what nobody else maps is no zero page");
        // As Linux 6.7 to 6.15: the scan says huge for the huge zero page, too.
        fail_after(&[Call::ScanHugeZero], 0, i64::MAX / 2);
        assert_eq!(only_states(memory), truth, "who has no node is the zero page");
        fail_after(&[Call::ScanHugeZero, Call::NodesOfPages], 0, i64::MAX / 2);
        let said = only_states(memory);
        fail_after(&[], 0, 0);
        assert!(said.iter().zip(&truth).all(|(&said, &truth)| agrees(said, truth)), "{:?}", said[0]);
        assert_eq!(said[per..], truth[per..]);
    });
}

/// Full blocks of small pages beside huge ones: smaps can't tell which are which, so nobody does.
#[test]
fn doubtful_sizes_stay_unknown() {
    alone("doubtful_sizes_stay_unknown", || {
        let Some(memory) = huge_pages(2) else { return };
        let huge = huge_page_size().unwrap();
        memory[0] = 1;
        if only_states(memory)[0] != PageState::Huge {
            return;
        }
        // Small pages first; then huge ones are allowed in all of it, so that it is one mapping again.
        advise(&memory[huge..], libc::MADV_NOHUGEPAGE);
        memory[huge..].fill(1);
        advise(&memory[huge..], libc::MADV_HUGEPAGE);
        let before = only_states(memory);
        fail_after(&[Call::ScanPages], 0, i64::MAX / 2);
        let said = only_states(memory);
        let sums = summarize(&query(&[range(memory)]));
        fail_after(&[], 0, 0);
        if said.iter().any(|&state| state != PageState::Real) {
            // The kernel put the small pages onto a huge one meanwhile, or kept two mappings: then it can be known.
            let truth = [before, only_states(memory)];
            assert!(truth.contains(&said), "{:?}, {:?}", said[0], said[said.len() - 1]);
            return;
        }
        let bytes = |name| sums.figures.iter().find(|(each, _)| *each == name).unwrap().1.bytes;
        assert_eq!((bytes("real"), bytes("small"), bytes("huge")), (Some(2 * huge), None, None));
    });
}
