//! A pool's heaps: one, or one for each local node on machines with several nodes.

use crate::allocator::Allocator;
use crate::heap::heap::{Heap, Held};
use crate::heap::purge;
use crate::heap::region::Span;
use crate::heap::shape::Kind;
use crate::numa::local_nodes::{LocalNodes, Place};

pub(super) struct Heaps {
    first: Heap,
    others: Box<[Heap]>,
    /// `None` if all memory is equally near.
    pub local_nodes: Option<&'static LocalNodes>,
}

impl Heaps {
    pub(super) fn new(local_nodes: Option<&'static LocalNodes>) -> Self {
        let Some(several) = local_nodes else {
            return Self { first: Heap::new(), others: Box::default(), local_nodes };
        };
        Self {
            first: Heap::at(0),
            others: (1..several.count()).map(|local_node| Heap::at(local_node as u8)).collect(),
            local_nodes,
        }
    }

    /// The heap of one local node.
    #[inline]
    pub(super) fn at(&self, local_node: u8) -> &Heap {
        if local_node == 0 { &self.first } else { &self.others[usize::from(local_node) - 1] }
    }

    /// The heap that a span belongs to.
    #[inline]
    pub(super) fn of(&self, span: Span) -> &Heap {
        self.at(span.segment.local_node)
    }

    /// The local node and the shard of this thread. `processor` selects the shard if there is only one local node.
    #[inline]
    pub(super) fn here(&self, shards: usize, processor: impl FnOnce() -> usize) -> Place {
        match self.local_nodes {
            None => Place { local_node: 0, shard: processor() % shards },
            Some(local_nodes) => local_nodes.here(),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Heap> + Clone {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// # Safety
    /// As for [`Heap::set_owner`].
    pub(super) unsafe fn set_owner(&self, owner: *const dyn Allocator) {
        // SAFETY: the owner stays where it is and outlives the heaps (`Pool::new`).
        self.all().for_each(|heap| unsafe { heap.set_owner(owner) });
    }

    /// The epoch of all heaps.
    #[inline]
    pub(super) fn epoch(&self) -> u8 {
        self.first.epoch()
    }

    pub(super) fn tick(&self) {
        self.all().for_each(Heap::tick);
    }

    pub(super) fn held(&self) -> Held {
        self.all().map(Heap::held).reduce(|a, b| a + b).unwrap_or_default()
    }

    /// Bytes in use on huge pages.
    pub(super) fn huge_out(&self) -> usize {
        self.all().map(|heap| heap.regions()[Kind::Huge as usize].out).sum()
    }

    pub(super) fn purge(&self, min_ticks: u8) -> [usize; 2] {
        self.all().map(|heap| heap.purge(min_ticks, usize::MAX)).fold([0; 2], purge::add)
    }

    pub(super) fn purge_parts(&self, min_ticks: u8) -> [usize; 2] {
        self.all().map(|heap| heap.purge_parts(min_ticks)).fold([0; 2], purge::add)
    }

    pub(super) fn purge_oldest(&self, bytes: usize) -> [usize; 2] {
        purge::purge_oldest(self.all(), bytes)
    }

    pub(super) fn unmap_clean(&self) {
        for heap in self.all() {
            heap.unmap_clean();
        }
    }

    pub(super) fn lower_tops(&self) {
        self.all().for_each(Heap::lower_tops);
    }

    /// Locks one after the other; all other code holds the locks of one heap at a time.
    pub(super) fn hold(&self) {
        self.all().for_each(Heap::hold);
    }

    /// # Safety
    /// As for [`Heap::release`].
    pub(super) unsafe fn release(&self) {
        // SAFETY: `hold` acquired it, as the fork handlers (`purger`) do before they call this.
        self.all().for_each(|heap| unsafe { heap.release() });
    }

    /// # Safety
    /// As for [`Heap::close`].
    pub(super) unsafe fn close(&self) {
        // SAFETY: no heap is used any more (`Pool::drop`).
        self.all().for_each(|heap| unsafe { heap.close() });
    }
}
