//! The live blocks of the process and the lines that made them, in a memory file that other processes read: `firsttouch why`
//! finds it among the files in `/proc/PID/fd` by its [`NAME`].
//!
//! The file has a [`Header`], then the lines as text, `file:line` and a line feed for each, then the blocks without gaps: the
//! last one moves to where one was freed. Readers take no lock: the sequence number is odd while the table changes, and
//! another one after that. What this process needs itself lies in a list of its own: after a fork the file is the parent's,
//! and the child records nothing until it opens a table of its own, with the blocks that it inherited.

use firsttouch::adaptors::{CallSites, SMALL_LIMIT};
use firsttouch::heap::purger::{self, Purgeable};
use firsttouch::ledger::Part;
use firsttouch::os::{self, Errno};
use firsttouch::sync::lock::Lock;
use firsttouch::{address_map, fork};
use std::collections::HashMap;
use std::fs::File;
use std::hash::BuildHasherDefault;
use std::mem::take;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst};
use std::time::Duration;

/// The name of the memory file.
pub const NAME: &str = "firsttouch-live";
/// The first word of the file: its format.
const MAGIC: u64 = u64::from_le_bytes(*b"FTlive\x01\0");
/// Where the lines begin, and where the blocks do.
const TEXT: usize = 4 << 10;
const BLOCKS: usize = 1 << 20;
/// How many blocks have room. Pages of the file exist from their first use on.
const CAPACITY: usize = 1 << 19;
const SIZE: usize = BLOCKS + CAPACITY * size_of::<Row>();

/// The first page of the file.
#[repr(C)]
struct Header {
    magic: AtomicU64,
    /// The number of the process that writes it.
    process: AtomicU64,
    /// Odd while the rest changes.
    sequence: AtomicU64,
    blocks: AtomicU64,
    /// Bytes of text.
    text: AtomicU64,
    /// Blocks that found no room.
    lost: AtomicU64,
    /// 1 while the process waits at its end to be looked at; the reader writes 2.
    ending: AtomicU64,
    /// From how many bytes on lines are recorded.
    lines_from: AtomicU64,
}

/// A block in the file: its address, its size, and its line, from 1 on; 0 if that is not known.
type Row = [AtomicU64; 3];

/// A block in the list of this process, with its place in the file.
#[derive(Clone, Copy, Debug)]
pub struct LiveBlock {
    size: usize,
    line: u64,
    place: usize,
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
    /// The addresses of the blocks by their places.
    places: Vec<usize>,
    /// The numbers of the lines by their sites, from 1 on, and their text.
    lines: Part<u64>,
    text: String,
    call_sites: Option<CallSites>,
}

static TABLE: Lock<Table> = Lock::new(Table {
    published: None,
    blocks: HashMap::with_hasher(BuildHasherDefault::new()),
    places: Vec::new(),
    lines: HashMap::with_hasher(BuildHasherDefault::new()),
    text: String::new(),
    call_sites: None,
});
/// One more than the forks before the process that records; 0 if none does.
static OPEN_IN: AtomicU32 = AtomicU32::new(0);
/// Whether blocks were recorded that are not ours, so that the frees of such blocks have to be looked up.
static HAS_FOREIGN: AtomicBool = AtomicBool::new(false);
/// From this size on the line is recorded, too.
static LINES_FROM: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Whether this process records its live blocks.
#[inline]
pub fn is_open() -> bool {
    let opened = OPEN_IN.load(Relaxed);
    opened != 0 && opened == fork::forks() + 1
}

/// Records from now on in a memory file of this process: blocks from [`SMALL_LIMIT`] on, and of those from `lines_from` bytes
/// on the lines. A child of a process that recorded begins with the blocks that it inherited.
///
/// # Errors
/// If the file cannot be made or mapped.
pub fn open(call_sites: CallSites, lines_from: usize) -> Result<(), Errno> {
    static ENTERED: AtomicBool = AtomicBool::new(false);
    purger::enter_once(&ForkGuard, &ENTERED);
    let mut file = os::memory_file(NAME, SIZE, None)?;
    if os::file_number(&file) <= 2 {
        file = file.try_clone()?; // or it would take what the program prints
    }
    let published = Published { at: os::map_file(&file, SIZE, 1, true)?, _file: file };
    published.header().process.store(std::process::id().into(), Relaxed);
    published.header().lines_from.store(lines_from as u64, Relaxed);
    let mut table = TABLE.lock();
    if let Some(Published { at, .. }) = table.published.replace(published) {
        // SAFETY: the mapping of this process's parent, which nobody uses here.
        unsafe { os::unmap(at, SIZE)? };
    }
    table.call_sites = Some(call_sites);
    table.publish_all();
    LINES_FROM.store(lines_from, Relaxed);
    OPEN_IN.store(fork::forks() + 1, Relaxed);
    Ok(())
}

/// Records that a block was allocated.
pub fn on_alloc(address: usize, size: usize) {
    if size < SMALL_LIMIT || !is_open() {
        return;
    }
    // Sites are found and named outside of the lock, as that may wait for the interpreter.
    let sites = TABLE.lock().call_sites.filter(|_| size >= LINES_FROM.load(Relaxed));
    let site = sites.map_or(0, |sites| (sites.site)()) as usize;
    let is_new = site != 0 && !TABLE.lock().lines.contains_key(&site);
    let name = sites.filter(|_| is_new).and_then(|sites| (sites.place)(site as u64));
    if address_map::is_foreign(address) {
        HAS_FOREIGN.store(true, Relaxed);
    }
    TABLE.lock().change(|table| {
        if let Some(name) = name {
            table.add_line(site, &name);
        }
        let line = table.lines.get(&site).copied().unwrap_or(0);
        table.insert(address, size, line);
    });
}

/// Records that a block is about to be freed or resized: another thread may get its address at once. Returns what
/// [`on_resize_end`] needs to know.
#[inline]
pub fn on_free(address: usize) -> Option<LiveBlock> {
    if !is_open() || (address_map::is_foreign(address) && !HAS_FOREIGN.load(Relaxed)) {
        return None;
    }
    let mut table = TABLE.lock();
    table.blocks.contains_key(&address).then(|| table.change(|table| table.remove(address)))?
}

/// Records that a resize has ended, of a block of which `before` is known; it belongs to the line that made it. If it failed,
/// `size` is `None`, and the address the old one.
pub fn on_resize_end(before: Option<LiveBlock>, address: usize, size: Option<usize>) {
    match (before, size) {
        (Some(block), size) if size.is_none_or(|size| size >= SMALL_LIMIT) && is_open() => {
            TABLE.lock().change(|table| table.insert(address, size.unwrap_or(block.size), block.line));
        }
        (None, Some(size)) => on_alloc(address, size),
        _ => {}
    }
}

/// Tells readers that the process is about to end, and waits until one has looked at it, for at most `limit`.
pub fn wait_for_reader(limit: Duration) {
    static NEVER_WOKEN: AtomicU32 = AtomicU32::new(0);
    const STEP: Duration = Duration::from_millis(1);
    if !is_open() {
        return;
    }
    let ending = |set: Option<u64>| {
        let table = TABLE.lock();
        let word = table.published.as_ref().map(|published| &published.header().ending);
        word.map_or(2, |word| set.map_or_else(|| word.load(Acquire), |set| word.swap(set, Release)))
    };
    ending(Some(1));
    for _ in 0..limit.as_millis() {
        if ending(None) == 2 {
            return;
        }
        os::wait(&NEVER_WOKEN, 0, Some(STEP));
    }
}

impl Published {
    fn header(&self) -> &Header {
        // SAFETY: the mapping, which lives as long as this, begins with a header of atomic words.
        unsafe { &*with_exposed_provenance::<Header>(self.at) }
    }

    fn write_block(&self, place: usize, address: usize, block: LiveBlock) {
        let at = self.at + BLOCKS + place * size_of::<Row>();
        // SAFETY: `insert` gives only places that lie in the mapping, which has three atomic words for each.
        let row = unsafe { &*with_exposed_provenance::<Row>(at) };
        let words = [address as u64, block.size as u64, block.line];
        row.iter().zip(words).for_each(|(to, word)| to.store(word, Relaxed));
    }
}

impl Table {
    /// Changes the table while the sequence number is odd.
    fn change<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let step = |table: &Self| table.published.as_ref().map(|file| file.header().sequence.fetch_add(1, SeqCst));
        step(self);
        let done = change(self);
        if let Some(published) = &self.published {
            published.header().blocks.store(self.places.len() as u64, SeqCst);
        }
        step(self);
        done
    }

    /// Enters a block, or counts it as lost where there is no room.
    fn insert(&mut self, address: usize, size: usize, line: u64) {
        self.remove(address); // its free was not reported
        let Some(published) = &self.published else { return };
        let block = LiveBlock { size, line, place: self.places.len() };
        let has_room =
            block.place < CAPACITY && self.blocks.try_reserve(1).and_then(|()| self.places.try_reserve(1)).is_ok();
        if !has_room {
            published.header().lost.fetch_add(1, Relaxed);
            return;
        }
        published.write_block(block.place, address, block);
        self.places.push(address);
        self.blocks.insert(address, block);
    }

    fn remove(&mut self, address: usize) -> Option<LiveBlock> {
        let removed = self.blocks.remove(&address)?;
        self.places.swap_remove(removed.place);
        let moved = self.places.get(removed.place);
        if let Some((&address, published)) = moved.zip(self.published.as_ref())
            && let Some(block) = self.blocks.get_mut(&address)
        {
            block.place = removed.place;
            published.write_block(block.place, address, *block);
        }
        Some(removed)
    }

    fn add_line(&mut self, site: usize, name: &str) {
        let before = self.text.len();
        let number = self.lines.len() as u64 + 1;
        let needed = name.len() + 1;
        if TEXT + before + needed > BLOCKS
            || self.lines.contains_key(&site)
            || self.lines.try_reserve(1).and_then(|()| self.text.try_reserve(needed)).is_err()
        {
            return;
        }
        self.text.extend(name.chars().map(|letter| if letter == '\n' { ' ' } else { letter }).chain(['\n']));
        self.lines.insert(site, number);
        self.publish_text(before);
    }

    /// Writes the text from `start` on.
    fn publish_text(&self, start: usize) {
        let Some(published) = &self.published else { return };
        let more = &self.text.as_bytes()[start..];
        let to = with_exposed_provenance_mut::<u8>(published.at + TEXT + start);
        // SAFETY: the text ends before the blocks (`add_line`), and readers know of this part from the next line on.
        unsafe { to.copy_from_nonoverlapping(more.as_ptr(), more.len()) };
        published.header().text.store(self.text.len() as u64, Release);
    }

    /// Fills a new file.
    fn publish_all(&mut self) {
        self.publish_text(0);
        self.places.clear();
        for (address, block) in take(&mut self.blocks) {
            self.insert(address, block.size, block.line);
        }
        if let Some(published) = &self.published {
            published.header().blocks.store(self.places.len() as u64, Relaxed);
            published.header().magic.store(MAGIC, Release); // now it may be read
        }
    }
}

struct ForkGuard;

/// The table is locked around forks; there is nothing to purge.
impl Purgeable for ForkGuard {
    fn hold(&self) {
        TABLE.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` took the lock.
        unsafe { TABLE.release() };
    }
}
