//! Whose block lies at an address that came through the front.
//!
//! A segment names the allocator that took it. An adaptor's blocks lie in its upstream's segments, or in none; it knows
//! them by a list of its own. So the adaptors that were ever installed are asked first.

#![allow(unsafe_code)] // Safety: what is listed here is never dropped.

use firsttouch::allocator::Allocator;
use firsttouch::vm::address_map;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Release};

/// One allocator with a list of its blocks; newer ones lead to older ones.
struct Listed {
    allocator: Arc<dyn Allocator>,
    older: *const Listed,
}

static NEWEST: AtomicPtr<Listed> = AtomicPtr::new(null_mut());
/// Whether an allocator's blocks can be told from others by their address.
pub fn can_tell(allocator: &dyn Allocator) -> bool {
    allocator.in_segments() || keeps_list(allocator)
}

/// Whether an allocator keeps a list of its blocks, as adaptors do.
pub fn keeps_list(allocator: &dyn Allocator) -> bool {
    allocator.owns(NonNull::dangling()).is_some()
}

/// Requests below this many bytes go on to NumPy where `allocator` is installed: `usual`, unless it wants them all.
pub fn small_limit(allocator: &dyn Allocator, usual: usize) -> usize {
    if keeps_list(allocator) && allocator.small_limit() == 0 { 0 } else { usual }
}

/// Lets blocks of `allocator` come back through the front, for ever. Callers hold the GIL.
pub fn enter(allocator: &Arc<dyn Allocator>) {
    let newest = NEWEST.load(Acquire);
    if !keeps_list(allocator.as_ref()) || listed().any(|other| Arc::ptr_eq(&other.allocator, allocator)) {
        return;
    }
    let entry = Box::new(Listed { allocator: allocator.clone(), older: newest });
    NEWEST.store(Box::into_raw(entry), Release);
}

fn listed() -> impl Iterator<Item = &'static Listed> {
    let mut at = NEWEST.load(Acquire).cast_const();
    std::iter::from_fn(move || {
        // SAFETY: entries are never freed, and complete before they can be reached.
        let entry = unsafe { at.as_ref() }?;
        at = entry.older;
        Some(entry)
    })
}

fn lister(address: NonNull<u8>) -> Option<&'static Arc<dyn Allocator>> {
    listed().map(|entry| &entry.allocator).find(|allocator| allocator.owns(address) == Some(true))
}

/// The allocator that takes the block at `address` back, if it is one of ours.
#[inline]
pub fn of(address: NonNull<u8>) -> Option<&'static dyn Allocator> {
    if NEWEST.load(Acquire).is_null() {
        return address_map::owner(address.as_ptr() as usize);
    }
    lister(address).map(Arc::as_ref).or_else(|| address_map::owner(address.as_ptr() as usize))
}

/// The same, shared.
///
/// # Safety
/// A living block lies at `address`, if it lies in a segment at all.
pub unsafe fn shared(address: NonNull<u8>) -> Option<Arc<dyn Allocator>> {
    // SAFETY: the caller's promise.
    lister(address).cloned().or_else(|| unsafe { address_map::shared_owner(address.as_ptr() as usize) })
}
