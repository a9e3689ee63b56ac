//! A piece of a buffer's memory, and the blocks that were cut off it.
//!
//! Blocks are cut off by moving the top up. Each has a record, out of band, so that nothing is read from the memory to know
//! whose it is (law 4). A block that is freed at the top moves the top down, past the blocks below that were freed before
//! it. A chunk without live blocks starts again.

use std::ptr::NonNull;

/// Blocks begin and end at multiples of this, the least alignment of a request.
pub const GRANULE: usize = 64;
/// What the bytes of freed blocks hold in a checked chunk.
const FREED: u8 = 0xDB;

/// A live block that outlived something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Its address.
    pub address: usize,
    /// Its size in bytes, which may be a little more than requested.
    pub size: usize,
    /// The number of the source line that requested it; zero if none was recorded.
    pub site: u64,
}

/// A write to freed memory, found in a checked buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The address of the freed block.
    pub address: usize,
    /// Its size in bytes.
    pub size: usize,
    /// The first byte that was overwritten, as an offset into the block.
    pub offset: usize,
    /// The number of the source line that requested the block; zero if none was recorded.
    pub site: u64,
}

/// A block, by its offset in the chunk.
struct Record {
    start: usize,
    size: usize,
    live: bool,
    /// The number of the request among all of the buffer's.
    serial: u64,
    site: u64,
}

impl Record {
    fn end(&self) -> usize {
        self.start + self.size
    }
}

/// What a block is requested for.
#[derive(Clone, Copy)]
pub struct Cut {
    /// A multiple of [`GRANULE`].
    pub size: usize,
    pub align: usize,
    pub serial: u64,
    pub site: u64,
}

/// See the module.
pub struct Chunk {
    start: NonNull<u8>,
    size: usize,
    /// The offset of the free memory behind the last block.
    top: usize,
    /// In the order of their addresses. Those of freed blocks are dropped once the top passes them.
    records: Vec<Record>,
    live: usize,
    /// Whether freed blocks hold a pattern, and stay until that was verified.
    checked: bool,
    /// Ticks of the background purger since it was last used.
    pub quiet: u8,
}

// SAFETY: its memory belongs to no thread.
unsafe impl Send for Chunk {}

impl Chunk {
    /// A chunk in `size` bytes.
    ///
    /// # Safety
    /// As long as the chunk is used, they are readable and writable, and nobody else's.
    pub unsafe fn new(start: NonNull<u8>, size: usize, checked: bool) -> Self {
        Self { start, size, top: 0, records: Vec::new(), live: 0, checked, quiet: 0 }
    }

    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn range(&self) -> std::ops::Range<usize> {
        self.address(0)..self.address(self.size)
    }

    /// The number of live blocks.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Bytes above the last block.
    pub fn room(&self) -> usize {
        self.size - self.top
    }

    fn address(&self, offset: usize) -> usize {
        self.start.addr().get() + offset
    }

    /// The lowest offset from `from` on at which a block may begin.
    #[inline]
    fn aligned(&self, from: usize, align: usize) -> usize {
        let base = self.address(0);
        ((base + from + align - 1) & !(align - 1)) - base
    }

    fn pointer(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: the offset of a record, which lies in the chunk.
        unsafe { self.start.add(offset) }
    }

    /// Cuts a block off at the top. `None` if there is no room for it, or for its record.
    #[inline]
    pub fn take(&mut self, cut: Cut) -> Option<NonNull<u8>> {
        let start = self.aligned(self.top, cut.align);
        if cut.size > self.size.checked_sub(start)? {
            return None;
        }
        self.insert(self.records.len(), start, cut)
    }

    #[inline]
    fn insert(&mut self, at: usize, start: usize, cut: Cut) -> Option<NonNull<u8>> {
        let Cut { size, serial, site, .. } = cut;
        self.records.try_reserve(1).ok()?;
        self.records.insert(at, Record { start, size, live: true, serial, site });
        self.top = self.top.max(start + size);
        self.live += 1;
        self.quiet = 0;
        Some(self.pointer(start))
    }

    /// Cuts a block off in the first gap between live blocks that is large enough.
    pub fn take_in_gap(&mut self, cut: Cut) -> Option<NonNull<u8>> {
        let mut from = 0;
        for at in 0..=self.records.len() {
            let start = self.aligned(from, cut.align);
            let end = self.records.get(at).map_or(self.size, |next| next.start);
            if start <= end && end - start >= cut.size {
                return self.insert(at, start, cut);
            }
            from = self.records.get(at)?.end();
        }
        None
    }

    /// The largest number of free bytes between live blocks.
    pub fn largest_gap(&self) -> usize {
        let mut from = 0;
        let ends = self.records.iter().map(|record| (record.start, record.end())).chain([(self.size, self.size)]);
        let gaps = ends.map(|(start, end)| start - std::mem::replace(&mut from, end));
        gaps.max().unwrap_or(0)
    }

    /// The position of the record of the live block at `address`.
    #[inline]
    fn find(&self, address: usize) -> Option<usize> {
        let start = address.wrapping_sub(self.address(0));
        let last = self.records.len().checked_sub(1)?;
        // What was cut off last is freed first as a rule.
        let at = if self.records[last].start == start {
            last
        } else {
            self.records.binary_search_by_key(&start, |record| record.start).ok()?
        };
        self.records[at].live.then_some(at)
    }

    /// Frees the live block at `address`; returns its size.
    #[inline]
    pub fn give(&mut self, address: usize) -> Option<usize> {
        let at = self.find(address)?;
        self.records[at].live = false;
        self.live -= 1;
        let Record { start, size, .. } = self.records[at];
        if self.checked {
            // SAFETY: the block was live until now, and nobody uses it any more.
            unsafe { self.pointer(start).write_bytes(FREED, size) };
        } else if self.live == 0 {
            self.records.clear();
            self.top = 0;
        } else if at + 1 == self.records.len() {
            self.lower();
        }
        Some(size)
    }

    /// Drops the records of freed blocks at the top.
    fn lower(&mut self) {
        while self.records.pop_if(|record| !record.live).is_some() {}
        self.top = self.records.last().map_or(0, Record::end);
    }

    /// Drops the records of all freed blocks. Returns the first damage that a checked chunk finds in them.
    pub fn compact(&mut self) -> Option<Damage> {
        let damage = if self.checked { self.damage() } else { None };
        self.records.retain(|record| record.live);
        self.lower();
        damage
    }

    fn damage(&self) -> Option<Damage> {
        self.records.iter().filter(|record| !record.live).find_map(|record| {
            // SAFETY: the bytes of a freed block, which holds the pattern and is not handed out again before this.
            let bytes = unsafe { std::slice::from_raw_parts(self.pointer(record.start).as_ptr(), record.size) };
            let offset = bytes.iter().position(|&byte| byte != FREED)?;
            let (address, size, site) = (self.address(record.start), record.size, record.site);
            Some(Damage { address, size, offset, site })
        })
    }

    /// The usable size of the live block at `address`, and the number of its request.
    #[inline]
    pub fn block(&self, address: usize) -> Option<(usize, u64)> {
        self.find(address).map(|at| (self.records[at].size, self.records[at].serial))
    }

    /// Resizes the live block at `address` to `size`, a multiple of [`GRANULE`], if the memory behind it is free. Returns
    /// whether it was, and the old size.
    pub fn resize(&mut self, address: usize, size: usize) -> Option<(bool, usize)> {
        let at = self.find(address)?;
        let limit = self.records.get(at + 1).map_or(self.size, |next| next.start);
        let Record { start, size: old, .. } = self.records[at];
        let fits = size <= limit - start;
        if fits {
            self.records[at].size = size;
            if at + 1 == self.records.len() {
                self.top = start + size;
            }
        }
        Some((fits, old))
    }

    /// The live blocks whose requests have at least this number.
    pub fn survivors(&self, since: u64) -> impl Iterator<Item = Survivor> {
        let live = self.records.iter().filter(move |record| record.live && record.serial >= since);
        live.map(|&Record { start, size, site, .. }| Survivor { address: self.address(start), size, site })
    }
}
