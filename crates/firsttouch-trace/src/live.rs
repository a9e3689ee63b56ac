//! The live blocks of the process and the lines that made them, in a memory file that other processes read: `firsttouch why`
//! finds it among the files in `/proc/PID/fd` by its [`NAME`].
//!
//! The file has a `Header`, the lines as text, and a row for each block. Nobody takes a lock, nor does an atomic exchange, for a
//! row: it follows from the block's address, and without an address it is free. What changes while readers read is off by a block.
//! After a fork the file is the parent's, and the child records nothing until it opens one of its own, which begins with a copy
//! of the parent's rows.

use firsttouch::adaptors::{CallSites, LINES_FROM, is_sampled};
use firsttouch::heap::purger;
use firsttouch::layout::SMALL_LIMIT;
use firsttouch::os::{self, Errno};
use firsttouch::sync::OnceBox;
use firsttouch::sync::lock::Lock;
use firsttouch::{address_map, fork};
use std::fs::File;
#[cfg(unix)]
use std::os::unix::fs::FileExt;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Duration;

/// The name of the memory file.
pub const NAME: &str = "firsttouch-live";
/// The first word of the file: its format.
const MAGIC: u64 = u64::from_le_bytes(*b"FTlive\x02\0");
/// Where the lines begin, and where the rows do.
const TEXT: usize = 4 << 10;
const ROWS: usize = 1 << 20;
/// How many blocks have room. Pages of the file exist from their first use on.
const CAPACITY: usize = 1 << 19;
const SIZE: usize = ROWS + CAPACITY * size_of::<Row>();
/// Rows that a block may have. Each belongs to [`SMALL_LIMIT`] bytes of address space, in which one block can begin, and to those
/// 8 GiB on.
const TRIES: usize = 4;

/// The first page of the file.
#[repr(C)]
struct Header {
    magic: AtomicU64,
    /// The number of the process that writes it.
    process: AtomicU64,
    /// Bytes of text: a line of it for each number of a line, from 1 on.
    text: AtomicU64,
    /// Blocks that found no room.
    lost: AtomicU64,
    /// 1 while the process waits at its end to be looked at; the reader writes 2.
    ending: AtomicU64,
    /// 1 if there may be older blocks, which have no rows.
    is_late: AtomicU64,
}

/// A block: its address, or 0; its size; the number of its line, or 0, and whether it is for no array.
type Row = [AtomicU64; 3];
/// The bit of the line that says that a block is for no array.
const NO_ARRAY: u64 = 1 << 62;

/// What is known of a block.
#[derive(Clone, Copy, Debug)]
pub struct LiveBlock {
    size: usize,
    /// The third word of its row; the call sites number the lines.
    site: u64,
}

/// The file, open as long as it is mapped: readers find it among the files of the process. Locked while text is added.
static FILE: Lock<Option<File>> = Lock::new(None);
static STATE: State = State {
    open_in: AtomicU32::new(0),
    has_foreign: AtomicBool::new(false),
    file_at: AtomicUsize::new(0),
    named: AtomicU64::new(0),
    call_sites: OnceBox::new(),
};

/// What each record needs, in one line of the processor's cache.
#[repr(align(64))]
struct State {
    /// One more than the forks before the process that records; 0 if none does.
    open_in: AtomicU32,
    /// Whether blocks were recorded that are not ours, so that the frees of such blocks have to be looked up.
    has_foreign: AtomicBool,
    /// Where the file is mapped.
    file_at: AtomicUsize,
    /// The number of the last line in the text.
    named: AtomicU64,
    call_sites: OnceBox<CallSites>,
}

/// Whether this process records its live blocks.
#[inline]
pub fn is_open() -> bool {
    let opened = STATE.open_in.load(Acquire);
    opened != 0 && opened == fork::forks() + 1
}

/// Records from now on in a memory file of this process: blocks from [`SMALL_LIMIT`] on, and of those from [`LINES_FROM`] on the
/// lines, of one in some of the smaller ones, too. `is_late` if it has such blocks. Does nothing in a process that records already.
///
/// # Errors
/// If the file cannot be made or mapped.
pub fn open(call_sites: CallSites, is_late: bool) -> Result<(), Errno> {
    static ENTERED: AtomicBool = AtomicBool::new(false);
    purger::enter_once(&FILE, &ENTERED);
    let mut shared = FILE.lock();
    if is_open() {
        return Ok(());
    }
    let file = os::memory_file(NAME, SIZE)?;
    let at = os::map_file(&file, 0, SIZE, true)?;
    let is_late = is_late || (STATE.file_at.load(Relaxed) != 0 && header().is_late.load(Relaxed) != 0);
    let parents = STATE.file_at.swap(at, Relaxed);
    if parents != 0 {
        #[cfg(unix)]
        copy_rows(shared.as_ref(), rows(at));
        // SAFETY: the mapping of this process's parent, which nobody uses here.
        unsafe { os::unmap(parents, SIZE)? };
    }
    *shared = Some(file);
    drop(shared);
    header().is_late.store(is_late.into(), Relaxed);
    header().process.store(std::process::id().into(), Relaxed);
    header().magic.store(MAGIC, Release); // now it may be read
    name_sites(STATE.call_sites.get_or_init(|| Box::new(call_sites)), STATE.named.swap(0, Relaxed)); // before others may add lines
    STATE.open_in.store(fork::forks() + 1, Release);
    Ok(())
}

/// Records that a block was allocated, for an array or not.
pub fn on_alloc(address: usize, size: usize, is_array: bool) {
    if size < SMALL_LIMIT || !is_open() {
        return;
    }
    let site = line(size);
    if address_map::is_foreign(address) && !STATE.has_foreign.load(Relaxed) {
        STATE.has_foreign.store(true, Relaxed);
    }
    insert(address, size, if is_array { site } else { site | NO_ARRAY });
}

/// The number of the line that asks for a block, if that is wanted and known; it is in the text then.
fn line(size: usize) -> u64 {
    let has_line = |_: &&CallSites| size >= LINES_FROM || is_sampled();
    let Some(sites) = STATE.call_sites.get().filter(has_line) else { return 0 };
    let site = (sites.site)();
    if site > STATE.named.load(Relaxed) {
        name_sites(sites, site);
    }
    site
}

/// Adds the lines up to a site to the text. (Sites are numbered as they are first seen.)
#[cold]
fn name_sites(call_sites: &CallSites, last: u64) {
    loop {
        let next = STATE.named.load(Relaxed) + 1;
        if next > last {
            return;
        }
        let name = (call_sites.place)(next).unwrap_or_default();
        let _text = FILE.lock();
        if STATE.named.compare_exchange(next - 1, next, Relaxed, Relaxed).is_ok() {
            add_text(STATE.file_at.load(Relaxed), &format!("{}\n", name.replace('\n', " ")));
        }
    }
}

/// Records that a block is about to be freed or resized: another thread may get its address at once. Returns what
/// [`on_resize_end`] needs to know.
#[inline]
pub fn on_free(address: usize) -> Option<LiveBlock> {
    if !is_open() || (address_map::is_foreign(address) && !STATE.has_foreign.load(Relaxed)) {
        return None;
    }
    remove(address)
}

/// Records that the block at `old` was resized: it is at `address` now, or as it was if that is `None`. It belongs to the line
/// that made it, or, if that is not known, to this one.
pub fn on_resize_end(before: Option<LiveBlock>, old: usize, address: Option<usize>, size: usize, is_array: bool) {
    match (before, address) {
        _ if !is_open() => {}
        (None, None) => {}
        (None, Some(address)) => on_alloc(address, size, is_array),
        (Some(block), None) => insert(old, block.size, block.site),
        (Some(_), Some(_)) if size < SMALL_LIMIT => {}
        (Some(block), Some(address)) => {
            let is_known = block.site & !NO_ARRAY != 0;
            insert(address, size, block.site | if is_known { 0 } else { line(size) });
        }
    }
}

/// Tells readers that the process is about to end, and waits until one has looked at it, for at most `limit`.
pub fn wait_for_reader(limit: Duration) {
    static NEVER_WOKEN: AtomicU32 = AtomicU32::new(0);
    const STEP: Duration = Duration::from_millis(1);
    if !is_open() {
        return;
    }
    header().ending.store(1, Release);
    let mut waited = Duration::ZERO;
    while header().ending.load(Acquire) == 1 && waited < limit {
        os::wait(&NEVER_WOKEN, 0, Some(STEP));
        waited += STEP;
    }
}

fn header() -> &'static Header {
    // SAFETY: the mapping begins with a header of atomic words. Only a child's `open` unmaps it, before others use it there.
    unsafe { &*with_exposed_provenance::<Header>(STATE.file_at.load(Relaxed)) }
}

/// The rows of the file that is mapped at an address.
fn rows(file: usize) -> &'static [Row] {
    // SAFETY: the mapping has so many rows of atomic words, and stays as long as it is used (`header`).
    unsafe { std::slice::from_raw_parts(with_exposed_provenance::<Row>(file + ROWS), CAPACITY) }
}

fn own() -> &'static [Row] {
    rows(STATE.file_at.load(Relaxed))
}

/// Copies the rows of a parent's file. To read its mapping would make all pages of it real.
#[cfg(unix)]
fn copy_rows(from: Option<&File>, to: &[Row]) {
    const PART: usize = 1024;
    let mut bytes = [0; PART * size_of::<Row>()];
    for (part, rows) in to.chunks(PART).enumerate() {
        let offset = ROWS + part * bytes.len();
        if from.is_none_or(|file| file.read_exact_at(&mut bytes, offset as u64).is_err()) {
            return;
        }
        for (row, words) in rows.iter().zip(bytes.as_chunks::<8>().0.as_chunks::<3>().0) {
            let [address, size, site] = words.map(u64::from_ne_bytes);
            if address != 0 {
                write(row, address, size, site);
            }
        }
    }
}

/// The rows that a block may have, in order.
fn places(address: usize) -> impl Iterator<Item = usize> {
    (0..TRIES).map(move |again| (address / SMALL_LIMIT + again * (CAPACITY / TRIES)) % CAPACITY)
}

/// Enters a block, or counts it as lost where there is no room. (Of two that threads enter at the same moment, 8 GiB from each
/// other, one may get lost.)
fn insert(address: usize, size: usize, site: u64) {
    let (address, size) = (address as u64, size as u64);
    let is_free = |there: u64| there == 0 || there == address; // its free was not reported
    let Some(row) = places(address as usize).map(|row| &own()[row]).find(|row| is_free(row[0].load(Acquire))) else {
        header().lost.fetch_add(1, Relaxed);
        return;
    };
    write(row, address, size, site);
}

/// Writes a row. The address comes last, as readers see the row from then on.
fn write([to, size_to, site_to]: &Row, address: u64, size: u64, site: u64) {
    size_to.store(size, Relaxed);
    site_to.store(site, Relaxed);
    to.store(address, Release);
}

fn remove(address: usize) -> Option<LiveBlock> {
    let [word, size, site] =
        places(address).map(|row| &own()[row]).find(|row| row[0].load(Acquire) == address as u64)?;
    let block = LiveBlock { size: size.load(Relaxed) as usize, site: site.load(Relaxed) };
    word.store(0, Release);
    Some(block)
}

/// Adds text to the file that is mapped at an address, with its lock held.
fn add_text(file: usize, text: &str) {
    // SAFETY: a mapping of the file begins with a header of atomic words, and stays while the lock is held.
    let header = unsafe { &*with_exposed_provenance::<Header>(file) };
    let at = header.text.load(Relaxed) as usize;
    let room = ROWS - TEXT - at;
    let text = if text.len() <= room { text } else { "\n" }; // so that later lines keep their numbers
    if text.len() <= room {
        // SAFETY: it ends before the rows, and readers know of it only from the next line on.
        unsafe {
            with_exposed_provenance_mut::<u8>(file + TEXT + at).copy_from_nonoverlapping(text.as_ptr(), text.len())
        };
        header.text.store((at + text.len()) as u64, Release);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers_where_the_text_is_full() {
        let file = os::memory_file(NAME, SIZE).unwrap();
        let at = os::map_file(&file, 0, SIZE, true).unwrap();
        let long = "x".repeat((ROWS - TEXT) / 2);
        for name in [&long, &long, "short"] {
            add_text(at, &format!("{name}\n"));
        }
        let mut bytes = vec![0; ROWS - TEXT];
        file.read_exact_at(&mut bytes, TEXT as u64).unwrap();
        let text = str::from_utf8(&bytes).unwrap().trim_end_matches('\0');
        let lengths: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lengths, [long.len(), 0, "short".len()]);
    }

    #[test]
    fn blocks_have_room_wherever_they_lie() {
        let near = (0..8).map(|at| (1 << 40) + at * SMALL_LIMIT);
        let all: Vec<usize> =
            (0..TRIES).flat_map(|far| near.clone().map(move |address| address + (far << 33))).collect();
        open(CallSites { site: || 0, place: |_| None }, false).unwrap();
        let sizes = || all.iter().map(|&address| remove(address).map(|block| block.size)).collect::<Vec<_>>();
        let lost = || header().lost.load(Relaxed);
        all.iter().for_each(|&address| insert(address, address / SMALL_LIMIT, 1));
        assert_eq!(lost(), 0);
        insert((1 << 40) + (TRIES << 33), 1, 1); // 8 GiB on it has the same places, and they are taken
        assert_eq!(lost(), 1);
        assert_eq!(sizes(), all.iter().map(|address| Some(address / SMALL_LIMIT)).collect::<Vec<_>>());
        assert_eq!(sizes(), vec![None; all.len()]);
    }

    #[test]
    fn threads_share_the_places() {
        open(CallSites { site: || 0, place: |_| None }, false).unwrap();
        let turns = |thread: usize| {
            for turn in 0..20_000 {
                let address = (3 << 40) + (turn % 50 * 4 + thread) * SMALL_LIMIT;
                insert(address, turn + thread, 0);
                assert_eq!(remove(address).map(|block| block.size), Some(turn + thread));
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|thread| _ = scope.spawn(move || turns(thread))));
    }
}
