//! On machines with several nodes: which idle blocks serve whom.

use super::Over;
use super::shelf::Idle;
use crate::adaptors::Pool;
use crate::allocator::Allocator;
use crate::heap::proofs;
use crate::heap::strays::{self, Found};
use crate::numa::homes::Homes;
use crate::numa::policy::Policy;
use crate::os;
use crate::sources::{Pages, PlacedPages};
use std::any::Any;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

/// Whether a wish says where an allocator's memory lies: a pool over it does not ask who is near.
pub(super) fn is_placed(allocator: &dyn Allocator) -> bool {
    let any: &dyn Any = allocator;
    let policy = any.downcast_ref::<PlacedPages>().and_then(|pages| pages.placement().policy);
    policy.is_some_and(|policy| policy != Policy::Local) || allocator.upstream().is_some_and(|on| is_placed(&**on))
}

/// Whether an allocator's blocks stand on pages of their own, the first and the last included.
pub(super) fn has_own_pages(allocator: &dyn Allocator) -> bool {
    let any: &dyn Any = allocator;
    any.is::<Pages>()
        || any.is::<PlacedPages>()
        || any.is::<Pool>()
        || allocator.upstream().is_some_and(|on| has_own_pages(&**on))
}

impl Over {
    /// The pages that go back with a block. Where blocks may share them with others, those are its whole ones.
    fn pages_of(&self, idle: &Idle) -> Range<usize> {
        let (page, start, end) = (os::page_size(), idle.address, idle.address + idle.size);
        if self.own_pages {
            return start - start % page..end.next_multiple_of(page);
        }
        let first = start.next_multiple_of(page);
        first..(end - end % page).max(first)
    }

    /// The home of this thread.
    pub(super) fn home(&self) -> u8 {
        self.homes.map_or(0, |homes| homes.look_here().home)
    }

    /// Whether an idle block may serve its home: its pages are there, or it is somebody else who decided that.
    pub(super) fn is_at_home(&self, homes: &Homes, idle: &mut Idle) -> bool {
        // A fork copies pages, and a move leaves none where it was.
        let now = self.forks.load(Relaxed).wrapping_add(proofs::moves()).max(1);
        let epoch = self.epoch.load(Relaxed).wrapping_add(1);
        let takes_any = || self.untold.load(Relaxed) || self.elsewhere.load(Relaxed) == epoch;
        if idle.seen == now || takes_any() {
            return true;
        }
        let look = || match homes.policy_leads(idle.home)? {
            true => strays::in_pages(homes, idle.home, self.pages_of(idle)),
            false => Ok(Found::Absent),
        };
        match look() {
            Ok(Found::Home) => idle.seen = now,
            Ok(Found::Absent) => {}
            Ok(Found::Away) if homes.has_room(idle.home, idle.size) => return false,
            Ok(Found::Away) => self.elsewhere.store(epoch, Relaxed),
            Err(_) => self.untold.store(true, Relaxed),
        }
        true
    }
}
