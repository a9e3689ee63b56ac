//! Large blocks, which the pool serves.

use crate::next::{self, keeping_errno, out_of_memory};
use crate::{entry, idle, life, report};
use firsttouch::adaptors::Pool;
use firsttouch::owners::{self, Owner};
use firsttouch::{Allocator, Block, Request, heap};
use firsttouch_report::glibc;
use libc::c_void;
use std::io::Write;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Bytes from which on the pool serves; none before the constructor has run.
static THRESHOLD: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The process's pool, which lives as long as the process.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(null_mut());

/// Whether the pool serves so many bytes.
#[inline(always)]
pub fn is_large(size: usize) -> bool {
    size >= THRESHOLD.load(Relaxed)
}

pub fn set_pool(pool: Arc<Pool>) {
    POOL.store(Arc::into_raw(pool).cast_mut(), Release);
}

/// Lets the pool serve from now on.
pub fn serve_from(threshold: usize) {
    THRESHOLD.store(threshold, Release);
}

/// The pool, where there is one that serves this process.
pub fn pool() -> Option<&'static Pool> {
    any_pool().filter(|_| !life::is_abandoned())
}

fn any_pool() -> Option<&'static Pool> {
    // SAFETY: null, or a pool that nobody drops.
    unsafe { POOL.load(Acquire).as_ref() }
}

/// Calls what may wait for a lock of the pool, and keeps errno; nothing where this thread may hold one.
pub fn in_pool<T>(body: impl FnOnce() -> T) -> Option<T> {
    life::within(|| keeping_errno(body))
}

/// A block from the pool; nothing where there is none or it has no memory, so that the C library answers.
#[cold]
#[inline(never)]
pub fn allocate(size: usize, align: usize, zeroed: bool) -> Option<*mut c_void> {
    let pool = pool().filter(|_| !life::is_forking())?;
    idle::before_allocation(pool);
    let request = if zeroed { Request::zeroed(size) } else { Request::bytes(size) };
    in_pool(|| {
        let block = pool.allocate(request.aligned(align).ok()?).ok()?;
        glibc::allocated(block.address.as_ptr() as usize, request, true);
        Some(block.address.as_ptr().cast())
    })?
}

/// malloc(3) of a large block. It is `extern "C"`, as all functions that the common path ends with: to jump to one needs no frame.
#[cold]
#[inline(never)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    allocate(size, 1, false).unwrap_or_else(|| next::malloc(size))
}

/// The pool and the block at an address in a slot of ours; nothing if it is the C library's. Any other address ends the program.
fn block(address: *mut c_void) -> Option<(&'static Pool, NonNull<u8>)> {
    let pool = any_pool()?;
    let block = NonNull::new(address.cast::<u8>())?;
    if owners::asked(block) > 0 {
        return Some((pool, block));
    }
    match owners::find(block) {
        Owner::Nobody => None,
        _ => abort(address as usize),
    }
}

/// # Safety
/// As for free(3).
#[cold]
#[inline(never)]
pub unsafe extern "C" fn free(address: *mut c_void) {
    // SAFETY: a live block, as free(3) demands of the program (`entry.rs`); the block is the pool's, and of any other
    // address the C library is told.
    unsafe {
        match block(address) {
            None => next::free(address),
            Some(_) if life::is_abandoned() => {}
            Some((pool, block)) if !make_plain(pool, block) => {} // nobody may get it
            Some((_, block)) if life::is_forking() => life::defer(block),
            Some((pool, block)) => deallocate(pool, block),
        }
    }
}

/// Undoes the program's changes to the pages of a block; false if that is not possible.
///
/// # Safety
/// The block is the pool's, and used no more.
unsafe fn make_plain(pool: &Pool, block: NonNull<u8>) -> bool {
    let address = block.as_ptr() as usize;
    // SAFETY: the block is the pool's, as demanded.
    let size = || unsafe { pool.usable_size(block) };
    // SAFETY: nobody uses the block's pages any more, as demanded.
    !entry::may_be_altered(address, size) || unsafe { keeping_errno(|| heap::map_anew(address)) }
}

/// # Safety
/// The block is the pool's, and used no more.
pub unsafe fn deallocate(pool: &'static Pool, block: NonNull<u8>) {
    let given = in_pool(|| {
        // SAFETY: a block of the pool's that nobody uses, as demanded; and one of the C library's, which is freed at once.
        unsafe {
            glibc::freed(owners::asked(block));
            pool.deallocate(block);
            // At once, as the program may request no other large block.
            glibc::follow(|size| next::free(next::malloc(size)));
        }
        idle::after_free(pool);
    });
    // SAFETY: the block is the pool's and used no more, as demanded; so is each that was kept in the list (`defer`).
    unsafe {
        match given {
            None => life::defer(block),
            Some(()) if life::is_abandoned() => {}
            Some(()) => life::drain(|block| deallocate(pool, block)),
        }
    }
}

/// # Safety
/// As for malloc_usable_size(3).
pub unsafe fn usable_size(address: *mut c_void) -> usize {
    // SAFETY: a live block, as malloc_usable_size(3) demands of the program (`entry.rs`).
    unsafe {
        match block(address) {
            None => next::malloc_usable_size(address),
            Some((pool, block)) => pool.usable_size(block),
        }
    }
}

/// realloc(3) of an address in a slot of ours.
#[cold]
#[inline(never)]
pub unsafe fn reallocate(address: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: a live block, as realloc(3) demands of the program (`entry.rs`); what is copied lies within both blocks.
    unsafe {
        let Some((pool, block)) = block(address) else {
            return if is_large(size) { take_over(address, size) } else { next::realloc(address, size) };
        };
        if size == 0 {
            free(address);
            return null_mut();
        }
        let (old, asked) = (pool.usable_size(block), owners::asked(block));
        let is_altered = entry::may_be_altered(address as usize, || old);
        if !life::is_forking() && !life::is_abandoned() && !is_altered {
            // A block that shrinks a little below the threshold may grow again.
            let stays = is_large(size.saturating_mul(2));
            let moved = in_pool(|| {
                idle::before_allocation(pool);
                let moved = if stays { pool.reallocate(block, Request::bytes(size)).ok() } else { None };
                idle::after_free(pool);
                moved
            });
            if let Some(Block { address: moved, .. }) = moved.flatten() {
                glibc::resized(asked, size);
                return moved.as_ptr().cast();
            }
        }
        let fresh = next::malloc(size);
        if fresh.is_null() {
            return if size <= old { address } else { out_of_memory() };
        }
        fresh.cast::<u8>().copy_from_nonoverlapping(address.cast(), old.min(size));
        free(address);
        fresh
    }
}

/// realloc(3) of a block of the C library's that becomes large.
#[cold]
#[inline(never)]
pub unsafe fn take_over(address: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: a live block of the C library's, as realloc(3) demands of the program (`entry.rs`); what is copied lies
    // within both blocks.
    unsafe {
        let old = next::malloc_usable_size(address);
        let fresh = if old == 0 { None } else { allocate(size, 1, false) };
        let Some(fresh) = fresh else { return next::realloc(address, size) };
        fresh.cast::<u8>().copy_from_nonoverlapping(address.cast(), old.min(size));
        next::free(address);
        fresh
    }
}

/// Gives back all idle memory; returns the bytes.
pub fn trim() -> usize {
    pool().map_or(0, |pool| in_pool(|| pool.trim() + pool.trim_parts()).unwrap_or(0))
}

/// Ends a program that frees what it may not, with a message, as under the C library.
#[cold]
fn abort(address: usize) -> ! {
    let mut line = [0; 256]; // there may be no memory
    let mut rest = line.as_mut_slice();
    let _ =
        writeln!(rest, "firsttouch: no large block begins at {address:#x} (double free, or an address inside a block)");
    let unused = rest.len();
    report::write_to(libc::STDERR_FILENO, &line[..line.len() - unused]);
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}
