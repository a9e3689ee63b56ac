//! How a budget that is found follows changes of limits and of others' use.

use super::{Budget, LEAST_RESERVE, MOST_RESERVE, ReadBound};
use crate::os::{Bound, MemoryBound};

fn of(limit: usize, used: usize) -> usize {
    ReadBound { bound: MemoryBound { whose: Bound::Group, limit, used }, at_start: used }.reserve()
}

#[test]
fn the_reserve_is_a_part_of_the_bound() {
    assert_eq!(of(16 << 30, 0), 1 << 30);
    assert_eq!(of(1 << 40, 0), MOST_RESERVE);
    assert_eq!(of(512 << 20, 100 << 20), LEAST_RESERVE);
    assert_eq!(of(64 << 20, 24 << 20), 20 << 20);
    assert_eq!(of(64 << 20, 65 << 20), 0);
}

#[test]
fn a_budget_is_never_more_than_asked() {
    assert_eq!(Budget::auto(1 << 20).bytes(), 1 << 20);
    assert!(Budget::auto(usize::MAX).bytes() > 1 << 20);
    assert_eq!(Budget::from(5).to_string(), "");
}

#[test]
fn limits_may_change_and_what_was_in_use_at_the_start_counts_on() {
    const GIB: usize = 1 << 30;
    let bound = |whose, limit, used| Some(MemoryBound { whose, limit: limit * GIB, used: used * GIB });
    let bounds = |group, own| [bound(Bound::Machine, 64, 20), group, own, None];
    let again = |mut budget: Budget, group, own, ours| {
        budget.read_again(bounds(group, own), ours * GIB, 0);
        budget
    };
    let budget = again(Budget { is_auto: true, ..Budget::from(usize::MAX) }, bound(Bound::Group, 16, 2), None, 0);
    let after = |group, own| again(budget, group, own, 7).bytes() / GIB;
    assert_eq!(budget.bytes() / GIB, 13);
    assert_eq!(after(bound(Bound::Group, 16, 9), None), 13); // what the budget itself serves is no matter
    assert_eq!(after(bound(Bound::Group, 16, 12), None), 10); // others have taken 3 GiB more
    assert_eq!(after(bound(Bound::Group, 16, 1), None), 13); // blocks that are not resident yet
    assert_eq!(after(bound(Bound::Group, 24, 9), None), 20); // the reserve is a part of it
    assert_eq!(after(bound(Bound::Group, 8, 9), None), 5); // less than is in use
    assert_eq!(after(None, None), 13); // it cannot be read any more
    let space = bound(Bound::AddressSpace, 10, 8);
    assert_eq!(after(bound(Bound::Group, 16, 9), space), 8); // 1 GiB is not the budget's
    let own = again(budget, None, space, 7);
    let mut shared = own;
    shared.read_again(bounds(None, space), 7 * GIB, 3 * GIB);
    assert_eq!((own.bytes() / GIB, shared.bytes() / GIB), (8, 11)); // other processes' bytes are not in this one's space
    let mut joined = Budget { is_auto: true, ..Budget::from(usize::MAX) };
    joined.read_again(bounds(None, space), 7 * GIB, 7 * GIB);
    assert_eq!(joined.bytes() / GIB, 8); // 1 GiB of its own, as a process that joins has 8 GiB in use already
    assert_eq!(again(own, None, None, 0).bytes() / GIB, 13); // a limit of the process was lifted
    assert_eq!(again(Budget { given: 3 * GIB, ..budget }, None, None, 0).bytes() / GIB, 3);
    assert_eq!(again(Budget::from(5), None, None, 0).bytes(), 5);
}
