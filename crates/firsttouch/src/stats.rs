//! What an allocator holds and did.

/// Counts in bytes unless said. The names are jemalloc's where it has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Asked for by living blocks.
    pub in_use: usize,
    /// Of the spans that hold living blocks.
    pub active: usize,
    /// Kept for the next request; may be resident.
    pub idle: usize,
    /// Address space that is opened.
    pub mapped: usize,
    /// Address space that is opened with nothing behind it.
    pub retained: usize,
    /// The most that was in use at once, sampled to 1 MiB for each processor.
    pub peak_in_use: usize,
    /// The most that was active at once, sampled likewise.
    pub peak_active: usize,
    /// The most that was active and idle together.
    pub peak_held: usize,
    /// Number of living blocks.
    pub blocks: usize,
    /// Number of requests served.
    pub allocations: u64,
    /// Number of requests served wholly from kept memory.
    pub recycled: u64,
    /// Asked for by all requests served.
    pub allocated_bytes: u64,
    /// Of the spans served, the part that was kept memory.
    pub recycled_bytes: u64,
    /// Of the spans served, the part that the kernel has to make real in base pages.
    pub first_touched_small_bytes: u64,
    /// The same where huge pages were asked for.
    pub first_touched_huge_bytes: u64,
    /// Given back to the operating system.
    pub purged_bytes: u64,
    /// Number of requests that failed.
    pub failures: u64,
}
