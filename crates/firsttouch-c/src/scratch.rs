//! Scratch buffers. The header bumps and rewinds inline where no chunk changes; the rest is here.

use crate::allocator::{Handle, invalid, no_memory, shared};
use crate::error::{Status, ensure_memory, fail, protect, required, status_of};
use crate::pages::range;
use firsttouch::allocator::Request;
use firsttouch::arena::{Arena, ArenaOptions, Scratch as _, Upstream};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};

/// `firsttouch_scratch`: its head comes first in an arena, too.
type Scratch = Arena<'static>;

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_scratch_create(
    upstream: *const Handle,
    storage: *mut c_void,
    size: usize,
    out: *mut *mut Scratch,
) -> Status {
    status_of(|| {
        required("scratch", out)?;
        ensure_memory()?;
        let arena = if let Some(storage) = NonNull::new(storage.cast::<MaybeUninit<u8>>()) {
            range(storage.as_ptr().cast(), size)?;
            // SAFETY: `size` bytes that nobody else uses until the buffer is destroyed (header).
            Arena::over(unsafe { std::slice::from_raw_parts_mut(storage.as_ptr(), size) })
        } else {
            let usual = ArenaOptions::default();
            let first_chunk = if size == 0 { usual.first_chunk } else { size };
            let (max_chunk, keep) = (usual.max_chunk.max(first_chunk), usual.keep.max(first_chunk));
            let upstream = match upstream.is_null() {
                true => Upstream::System,
                // SAFETY: a living handle (header).
                false => Upstream::Shared(unsafe { shared(upstream) }),
            };
            let options = ArenaOptions { first_chunk, max_chunk, keep };
            Arena::with(upstream, options).map_err(|error| fail(Status::Invalid, error))?
        };
        // SAFETY: not null, so it can be written.
        unsafe { out.write(Box::into_raw(Box::new(arena))) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_scratch_destroy(scratch: *mut Scratch) {
    if !scratch.is_null() {
        // SAFETY: made here, and not used any more (header).
        protect((), || drop(unsafe { Box::from_raw(scratch) }));
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_scratch_grow(scratch: *mut Scratch, alignment: usize, size: usize) -> *mut c_void {
    protect(null_mut(), || {
        if let Err(error) = Request::bytes(size).aligned(alignment) {
            return invalid(error);
        }
        // SAFETY: a living buffer that no other thread uses now (header).
        match unsafe { &*scratch }.allocate(size, alignment) {
            Ok(address) => address.as_ptr().cast(),
            Err(error) => no_memory(error),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_scratch_rewind_far(scratch: *mut Scratch, top: *mut u8, depth: u64) {
    let Some(top) = NonNull::new(top) else { return };
    // SAFETY: a living buffer, a mark that was made by it and is not undone yet (header). Scopes and marks of Rust's are
    // not open, as nobody in Rust has this arena.
    protect((), || unsafe { (*scratch).rewind_to(top, depth) });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_scratch_reset(scratch: *mut Scratch) {
    // SAFETY: a living buffer, none of whose memory is used any more (header).
    protect((), || unsafe { (*scratch).reset() });
}
