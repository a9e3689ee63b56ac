//! Which blocks outside all areas are ours: a bit for each 64 bytes of address space, set where such a block begins.
//!
//! This serves a source whose memory is the C library's, but not at the address that the C library knows. A bit is
//! reached in three loads and changed in one atomic step, so there is no lock to be held around forks. The bits of 8 MiB
//! of address space are allocated when the first block begins there, and never freed: 1/512 of that memory.

use super::address_map::{SLOT_SHIFT, SLOTS, note_outside};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

/// The distance of two bits in bytes, as a power of two: the least alignment of a block.
const LINE_SHIFT: u32 = 6;
/// The address space of one leaf in bytes, as a power of two.
const LEAF_SHIFT: u32 = 23;
const WORD_SHIFT: u32 = u64::BITS.ilog2();

type Leaf = [AtomicU64; 1 << (LEAF_SHIFT - LINE_SHIFT - WORD_SHIFT)];
/// The leaves of a slot.
type Table = [AtomicPtr<Leaf>; 1 << (SLOT_SHIFT - LEAF_SHIFT)];

static TABLES: [AtomicPtr<Table>; SLOTS] = [const { AtomicPtr::new(null_mut()) }; SLOTS];

/// There is no memory for the bits.
#[derive(Debug)]
pub(crate) struct NoMemory;

fn table(address: usize) -> &'static AtomicPtr<Table> {
    &TABLES[(address >> SLOT_SHIFT) & (SLOTS - 1)]
}

fn leaf(table: &Table, address: usize) -> &AtomicPtr<Leaf> {
    &table[(address >> LEAF_SHIFT) % table.len()]
}

/// The bit of an address: its word and its mask.
fn bit(leaf: &Leaf, address: usize) -> (&AtomicU64, u64) {
    let line = address >> LINE_SHIFT;
    (&leaf[(line >> WORD_SHIFT) % leaf.len()], 1 << (line % u64::BITS as usize))
}

fn get<T>(place: &AtomicPtr<T>) -> Option<&'static T> {
    // SAFETY: what is stored in a place of this file is never freed.
    unsafe { place.load(Acquire).as_ref() }
}

/// What is in a place, which is filled with zeros if it is empty.
///
/// # Safety
/// `T` may be all zeros, and is not empty.
unsafe fn get_or_make<T>(place: &AtomicPtr<T>) -> Result<&'static T, NoMemory> {
    if let Some(found) = get(place) {
        return Ok(found);
    }
    let layout = Layout::new::<T>();
    // SAFETY: the layout is not empty: `T` is a table of words (`enter`).
    let made: *mut T = unsafe { alloc_zeroed(layout) }.cast();
    if made.is_null() {
        return Err(NoMemory);
    }
    if place.compare_exchange(null_mut(), made, AcqRel, Relaxed).is_err() {
        // SAFETY: another thread was first, and nobody saw this one.
        unsafe { dealloc(made.cast(), layout) };
    }
    get(place).ok_or(NoMemory)
}

/// Enters a block, which begins at a multiple of 64.
///
/// # Errors
/// If there is no memory for the bits. Nothing changes then.
#[inline]
pub(crate) fn enter(address: usize) -> Result<(), NoMemory> {
    debug_assert!(address.is_multiple_of(1 << LINE_SHIFT));
    note_outside(address);
    // SAFETY: arrays of pointers and of integers may be all zeros.
    let leaf = unsafe { get_or_make(leaf(get_or_make(table(address))?, address))? };
    let (word, mask) = bit(leaf, address);
    word.fetch_or(mask, Relaxed);
    Ok(())
}

fn find(address: usize) -> Option<(&'static AtomicU64, u64)> {
    if !address.is_multiple_of(1 << LINE_SHIFT) {
        return None; // another's, which may lie in the same line
    }
    let (word, mask) = bit(get(leaf(get(table(address))?, address))?, address);
    (word.load(Relaxed) & mask != 0).then_some((word, mask))
}

/// Whether a live block that was entered begins at `address`.
#[inline]
pub(crate) fn contains(address: usize) -> bool {
    find(address).is_some()
}

/// Removes a block; whether it had been entered.
#[inline]
pub(crate) fn leave(address: usize) -> bool {
    let found = find(address);
    if let Some((word, mask)) = found {
        word.fetch_and(!mask, Relaxed); // whoever gets the address next gets it from the C library, after this
    }
    found.is_some()
}

#[cfg(test)]
mod tests {
    use super::{contains, enter, leave};

    #[test]
    fn each_line_has_a_bit_of_its_own() {
        const APART: usize = 64;
        let ranges = [3 << 36, (3 << 36) + (1 << 23), (4 << 36) - 64 * APART, 1 << 46]; // where Linux places nothing
        let blocks = || ranges.iter().flat_map(|&at| (at..at + 300 * APART).step_by(APART));
        for (n, address) in blocks().enumerate() {
            assert!(!contains(address) && !leave(address));
            if n % 3 == 0 {
                enter(address).unwrap();
            }
        }
        for (n, address) in blocks().enumerate() {
            assert_eq!(contains(address), n % 3 == 0, "{address:#x}");
            assert!(!contains(address + 16), "another block may begin in the line");
            assert_eq!(leave(address), n % 3 == 0);
            assert!(!contains(address) && !leave(address));
        }
    }
}
