//! The statistics of an allocator.

/// The statistics of an allocator, in bytes unless stated otherwise. The names are those of jemalloc where it has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)] // the C interface hands it out
pub struct Stats {
    /// Requested by live blocks.
    pub in_use: usize,
    /// Size of the spans that hold live blocks.
    pub active: usize,
    /// Kept for later requests; may be resident.
    pub idle: usize,
    /// Address space mapped.
    pub mapped: usize,
    /// Address space mapped without memory behind it.
    pub retained: usize,
    /// Peak of `in_use`: exact for one thread, accurate to 1 MiB per processor for several.
    pub peak_in_use: usize,
    /// Peak of `active`, with the same accuracy.
    pub peak_active: usize,
    /// Peak of `active` and `idle` together.
    pub peak_held: usize,
    /// Number of live blocks.
    pub blocks: usize,
    /// Number of requests served.
    pub allocations: u64,
    /// Number of requests served from recycled memory alone.
    pub recycled: u64,
    /// Requested by all requests served.
    pub allocated_bytes: u64,
    /// The part of all spans served that was recycled memory: whole spans, which are larger than what was requested.
    pub recycled_bytes: u64,
    /// The part of all spans served that was fresh, on base pages: the kernel faults in those that are touched.
    pub first_touched_small_bytes: u64,
    /// The part of all spans served that was fresh and for which huge pages were requested.
    pub first_touched_huge_bytes: u64,
    /// Returned to the operating system.
    pub purged_bytes: u64,
    /// Fresh bytes of a pool over pages beyond the most that it ever held: memory that it purged, because it had decayed or was too
    /// much, and needed again. Memory that a request itself returns, to get fresh memory, does not count.
    pub refaulted_bytes: u64,
    /// Number of requests that failed.
    pub failures: u64,
}

impl Stats {
    /// These statistics, but counts that only grow as their growth since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            allocations: self.allocations - before.allocations,
            recycled: self.recycled - before.recycled,
            allocated_bytes: self.allocated_bytes - before.allocated_bytes,
            recycled_bytes: self.recycled_bytes - before.recycled_bytes,
            first_touched_small_bytes: self.first_touched_small_bytes - before.first_touched_small_bytes,
            first_touched_huge_bytes: self.first_touched_huge_bytes - before.first_touched_huge_bytes,
            purged_bytes: self.purged_bytes - before.purged_bytes,
            // The peak that it is counted from is measured a moment later, and may rise alone.
            refaulted_bytes: self.refaulted_bytes.saturating_sub(before.refaulted_bytes),
            failures: self.failures - before.failures,
            ..*self
        }
    }

    /// The names and values that reports show.
    pub fn figures(&self) -> [(&'static str, u64); 19] {
        [
            ("in_use", self.in_use as u64),
            ("active", self.active as u64),
            ("idle", self.idle as u64),
            ("mapped", self.mapped as u64),
            ("retained", self.retained as u64),
            ("peak_in_use", self.peak_in_use as u64),
            ("peak_active", self.peak_active as u64),
            ("peak_held", self.peak_held as u64),
            ("blocks", self.blocks as u64),
            ("allocations", self.allocations),
            ("recycled", self.recycled),
            ("allocated_bytes", self.allocated_bytes),
            ("recycled_bytes", self.recycled_bytes),
            ("first_touched_bytes", self.first_touched_small_bytes + self.first_touched_huge_bytes),
            ("first_touched_small_bytes", self.first_touched_small_bytes),
            ("first_touched_huge_bytes", self.first_touched_huge_bytes),
            ("purged_bytes", self.purged_bytes),
            ("refaulted_bytes", self.refaulted_bytes),
            ("failures", self.failures),
        ]
    }
}
