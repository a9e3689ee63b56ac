//! The live blocks of the process and the lines that made them, in a memory file that other processes read: `firsttouch why`
//! finds it among the files in `/proc/PID/fd` by its [`NAME`].
//!
//! The file has a `Header`, the lines as text, and a row for each block. Readers take no lock: a row without an address is
//! free, and what changes while they read is off by a block. After a fork the file is the parent's; the child records nothing
//! until it opens one of its own, which begins with the blocks that it inherited.

use firsttouch::adaptors::{CallSites, SMALL_LIMIT};
use firsttouch::heap::purger;
use firsttouch::ledger::Part;
use firsttouch::os::{self, Errno};
use firsttouch::sync::lock::Lock;
use firsttouch::{address_map, fork};
use std::collections::HashMap;
use std::fs::File;
use std::hash::BuildHasherDefault;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Duration;

/// The name of the memory file.
pub const NAME: &str = "firsttouch-live";
/// The first word of the file: its format.
const MAGIC: u64 = u64::from_le_bytes(*b"FTlive\x01\0");
/// Where the lines begin, and where the rows do.
const TEXT: usize = 4 << 10;
const ROWS: usize = 1 << 20;
/// How many blocks have room. Pages of the file exist from their first use on.
const CAPACITY: usize = 1 << 19;
const SIZE: usize = ROWS + CAPACITY * size_of::<Row>();

/// The first page of the file.
#[repr(C)]
struct Header {
    magic: AtomicU64,
    /// The number of the process that writes it.
    process: AtomicU64,
    /// Rows that were ever used.
    rows: AtomicU64,
    /// Bytes of text: a line of it for each number of a line, from 1 on.
    text: AtomicU64,
    /// Blocks that found no room.
    lost: AtomicU64,
    /// 1 while the process waits at its end to be looked at; the reader writes 2.
    ending: AtomicU64,
    /// From how many bytes on lines are recorded.
    lines_from: AtomicU64,
}

/// A block in the file: its address, or 0; its size; the number of its line, or 0, and whether it is for no array.
type Row = [AtomicU64; 3];
/// The bit of the line that says that a block is for no array.
const NO_ARRAY: u64 = 1 << 62;

/// A block in the list of this process.
#[derive(Clone, Copy, Debug)]
pub struct LiveBlock {
    size: usize,
    /// The third word of its row; the call sites number the lines.
    site: u64,
    row: usize,
}

/// The mapped file.
struct Published {
    /// Kept open, as readers find it among the files of the process.
    _file: File,
    at: usize,
}

struct Table {
    published: Option<Published>,
    blocks: Part<LiveBlock>,
    /// Rows that were used and are free.
    free: Vec<usize>,
    call_sites: Option<CallSites>,
}

static TABLE: Lock<Table> = Lock::new(Table {
    published: None,
    blocks: HashMap::with_hasher(BuildHasherDefault::new()),
    free: Vec::new(),
    call_sites: None,
});
/// One more than the forks before the process that records; 0 if none does.
static OPEN_IN: AtomicU32 = AtomicU32::new(0);
/// Whether blocks were recorded that are not ours, so that the frees of such blocks have to be looked up.
static HAS_FOREIGN: AtomicBool = AtomicBool::new(false);
/// From this size on the line is recorded, too.
static LINES_FROM: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The number of the last line in the text.
static NAMED: AtomicU64 = AtomicU64::new(0);

/// Whether this process records its live blocks.
#[inline]
pub fn is_open() -> bool {
    let opened = OPEN_IN.load(Relaxed);
    opened != 0 && opened == fork::forks() + 1
}

/// Records from now on in a memory file of this process: blocks from [`SMALL_LIMIT`] on, and of those from `lines_from` bytes
/// on the lines.
///
/// # Errors
/// If the file cannot be made or mapped.
pub fn open(call_sites: CallSites, lines_from: usize) -> Result<(), Errno> {
    static ENTERED: AtomicBool = AtomicBool::new(false);
    purger::enter_once(&TABLE, &ENTERED);
    let file = os::beside_standard_streams(os::memory_file(NAME, SIZE, None)?)?; // or it would take what the program prints
    let published = Published { at: os::map_file(&file, SIZE, 1, true, None)?, _file: file };
    let mut table = TABLE.lock();
    if let Some(Published { at, .. }) = table.published.replace(published) {
        // SAFETY: the mapping of this process's parent, which nobody uses here.
        unsafe { os::unmap(at, SIZE)? };
    }
    table.call_sites = Some(call_sites);
    table.free.clear();
    for (address, block) in std::mem::take(&mut table.blocks) {
        table.insert(address, block.size, block.site);
    }
    if let Some(published) = &table.published {
        published.header().process.store(std::process::id().into(), Relaxed);
        published.header().lines_from.store(lines_from as u64, Relaxed);
        published.header().magic.store(MAGIC, Release); // now it may be read
    }
    drop(table);
    LINES_FROM.store(lines_from, Relaxed);
    name_sites(call_sites, NAMED.swap(0, Relaxed)); // before others may add lines
    OPEN_IN.store(fork::forks() + 1, Relaxed);
    Ok(())
}

/// Records that a block was allocated, for an array or not; `has_line` says whether its line may be asked for.
pub fn on_alloc(address: usize, size: usize, is_array: bool, has_line: bool) {
    if size < SMALL_LIMIT || !is_open() {
        return;
    }
    let wanted = has_line && size >= LINES_FROM.load(Relaxed);
    let sites = if wanted { TABLE.lock().call_sites } else { None };
    let site = sites.map_or(0, |sites| (sites.site)()); // without the lock: it may wait for the interpreter
    if let Some(sites) = sites.filter(|_| site > NAMED.load(Relaxed)) {
        name_sites(sites, site);
    }
    if address_map::is_foreign(address) {
        HAS_FOREIGN.store(true, Relaxed);
    }
    TABLE.lock().insert(address, size, if is_array { site } else { site | NO_ARRAY });
}

/// Adds the lines up to a site to the text. (Sites are numbered as they are first seen.)
#[cold]
fn name_sites(call_sites: CallSites, last: u64) {
    loop {
        let next = NAMED.load(Relaxed) + 1;
        if next > last {
            return;
        }
        let name = (call_sites.place)(next).unwrap_or_default();
        let table = TABLE.lock();
        if NAMED.compare_exchange(next - 1, next, Relaxed, Relaxed).is_ok() {
            table.add_text(&format!("{}\n", name.replace('\n', " ")));
        }
    }
}

/// Records that a block is about to be freed or resized: another thread may get its address at once. Returns what
/// [`on_resize_end`] needs to know.
#[inline]
pub fn on_free(address: usize) -> Option<LiveBlock> {
    if !is_open() || (address_map::is_foreign(address) && !HAS_FOREIGN.load(Relaxed)) {
        return None;
    }
    TABLE.lock().remove(address)
}

/// Records that a resize has ended, of a block of which `before` is known; it belongs to the line that made it. If it failed,
/// `size` is `None`, and the address the old one.
pub fn on_resize_end(before: Option<LiveBlock>, address: usize, size: Option<usize>) {
    match (before, size) {
        (Some(block), size) if size.is_none_or(|size| size >= SMALL_LIMIT) && is_open() => {
            TABLE.lock().insert(address, size.unwrap_or(block.size), block.site);
        }
        (None, Some(size)) => on_alloc(address, size, true, true),
        _ => {}
    }
}

/// Tells readers that the process is about to end, and waits until one has looked at it, for at most `limit`.
pub fn wait_for_reader(limit: Duration) {
    static NEVER_WOKEN: AtomicU32 = AtomicU32::new(0);
    const STEP: Duration = Duration::from_millis(1);
    let is_awaited = |begin: bool| {
        let table = TABLE.lock();
        let Some(published) = table.published.as_ref().filter(|_| is_open()) else { return false };
        if begin {
            published.header().ending.store(1, Release);
        }
        published.header().ending.load(Acquire) == 1
    };
    let mut waited = Duration::ZERO;
    while is_awaited(waited.is_zero()) && waited < limit {
        os::wait(&NEVER_WOKEN, 0, Some(STEP));
        waited += STEP;
    }
}

impl Published {
    fn header(&self) -> &Header {
        // SAFETY: the mapping, which lives as long as this, begins with a header of atomic words.
        unsafe { &*with_exposed_provenance::<Header>(self.at) }
    }

    fn row(&self, row: usize) -> &Row {
        // SAFETY: `insert` gives only rows below the capacity, which lie in the mapping, of atomic words.
        unsafe { &*with_exposed_provenance::<Row>(self.at + ROWS + row * size_of::<Row>()) }
    }
}

impl Table {
    /// Enters a block, or counts it as lost where there is no room.
    fn insert(&mut self, address: usize, size: usize, site: u64) {
        self.remove(address); // its free was not reported
        let Some(published) = &self.published else { return };
        let used = &published.header().rows;
        let row = self.free.pop().unwrap_or_else(|| used.fetch_add(1, Release) as usize);
        if row >= CAPACITY
            || self.blocks.try_reserve(1).and_then(|()| self.free.try_reserve(self.blocks.len() + 1)).is_err()
        {
            used.fetch_min(CAPACITY as u64, Release);
            published.header().lost.fetch_add(1, Relaxed);
            return;
        }
        self.blocks.insert(address, LiveBlock { size, site, row });
        let [to, size_to, site_to] = published.row(row);
        size_to.store(size as u64, Relaxed);
        site_to.store(site, Relaxed);
        to.store(address as u64, Release);
    }

    fn remove(&mut self, address: usize) -> Option<LiveBlock> {
        let removed = self.blocks.remove(&address)?;
        self.published.as_ref()?.row(removed.row)[0].store(0, Release);
        self.free.push(removed.row); // `insert` made room for it
        Some(removed)
    }

    fn add_text(&self, text: &str) {
        let Some(published) = &self.published else { return };
        let at = published.header().text.load(Relaxed) as usize;
        let room = ROWS - TEXT - at;
        let text = if text.len() <= room { text } else { "\n" }; // so that later lines keep their numbers
        if text.len() <= room {
            let to = with_exposed_provenance_mut::<u8>(published.at + TEXT + at);
            // SAFETY: it ends before the rows, and readers know of it only from the next line on.
            unsafe { to.copy_from_nonoverlapping(text.as_ptr(), text.len()) };
            published.header().text.store((at + text.len()) as u64, Release);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers_where_the_text_is_full() {
        let file = os::memory_file(NAME, SIZE, None).unwrap();
        let at = os::map_file(&file, SIZE, 1, true, None).unwrap();
        let published = Some(Published { _file: file, at });
        let table = Table { published, blocks: Part::default(), free: Vec::new(), call_sites: None };
        let long = "x".repeat((ROWS - TEXT) / 2);
        for name in [&long, &long, "short"] {
            table.add_text(&format!("{name}\n"));
        }
        let length = table.published.as_ref().map_or(0, |published| published.header().text.load(Relaxed)) as usize;
        // SAFETY: text that was just written.
        let text = unsafe { std::slice::from_raw_parts(with_exposed_provenance::<u8>(at + TEXT), length) };
        let lengths: Vec<usize> = str::from_utf8(text).unwrap().lines().map(str::len).collect();
        assert_eq!(lengths, [long.len(), 0, "short".len()]);
    }
}
