//! Scratch buffers. The header bumps and rewinds inline where no chunk changes; the rest is here.

use crate::allocator::{Handle, shared};
use crate::block::{invalid, no_memory};
use crate::error::{Status, ensure_memory, fail, protect};
use crate::options::{self, Versioned};
use crate::range::range;
use firsttouch::allocator::Request;
use firsttouch::arena::{Arena, ArenaOptions, Scratch as _, Upstream};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};

/// `firsttouch_scratch`: its head comes first in an arena, too.
type Scratch = Arena<'static>;

/// `firsttouch_scratch_options`.
#[repr(C)]
#[derive(Clone, Copy)]
struct ScratchOptions {
    struct_size: usize,
    upstream: *const Handle,
    first_chunk: usize,
    max_chunk: usize,
    keep: usize,
}

// SAFETY: numbers and a pointer, the size first.
unsafe impl Versioned for ScratchOptions {
    const NAME: &'static str = "firsttouch_scratch_options";
    const INITIALIZER: &'static str = "FIRSTTOUCH_SCRATCH_OPTIONS";
    const LEAST: usize = 40;
}

fn hand_out(out: *mut *mut Scratch, make: impl FnOnce() -> Result<Scratch, Status>) -> Status {
    if out.is_null() {
        return fail(Status::Invalid, "scratch is NULL: give the address of a firsttouch_scratch *");
    }
    match protect(Err(Status::Internal), || ensure_memory().and_then(|()| make())) {
        Ok(arena) => {
            // SAFETY: a place for the address (header).
            unsafe { out.write(Box::into_raw(Box::new(arena))) };
            Status::Ok
        }
        Err(status) => status,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_scratch_create(given: *const ScratchOptions, out: *mut *mut Scratch) -> Status {
    hand_out(out, || {
        let usual = ArenaOptions::default();
        let default =
            ScratchOptions { struct_size: 0, upstream: std::ptr::null(), first_chunk: 0, max_chunk: 0, keep: 0 };
        // SAFETY: options or null (header).
        let given = unsafe { options::read(given, default)? };
        let or = |given: usize, usual: usize| if given == 0 { usual } else { given };
        let largest = or(given.max_chunk, usual.max_chunk);
        let first_chunk = or(given.first_chunk, usual.first_chunk.min(largest));
        let options = ArenaOptions {
            first_chunk,
            max_chunk: or(given.max_chunk, usual.max_chunk.max(first_chunk)),
            keep: or(given.keep, usual.keep.max(first_chunk)),
        };
        let upstream = match given.upstream.is_null() {
            true => Upstream::System,
            // SAFETY: a living handle (header).
            false => Upstream::Shared(unsafe { shared(given.upstream) }),
        };
        Arena::with(upstream, options).map_err(|error| fail(Status::Invalid, error))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_scratch_over(storage: *mut c_void, size: usize, out: *mut *mut Scratch) -> Status {
    hand_out(out, || {
        let Some(storage) = NonNull::new(storage.cast::<MaybeUninit<u8>>()) else {
            return Err(fail(Status::Invalid, "storage is NULL"));
        };
        range(storage.as_ptr().cast(), size)?;
        // SAFETY: `size` bytes that nobody else uses until the buffer is destroyed (header).
        Ok(Arena::over(unsafe { std::slice::from_raw_parts_mut(storage.as_ptr(), size) }))
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

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_scratch_trim(scratch: *mut Scratch) {
    // SAFETY: a living buffer that no other thread uses now (header). Nothing in use moves.
    protect((), || unsafe { (*scratch).release_idle() });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_scratch_used(scratch: *const Scratch) -> usize {
    // SAFETY: a living buffer that no other thread uses now (header).
    protect(0, || unsafe { (*scratch).used() })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_scratch_capacity(scratch: *const Scratch) -> usize {
    // SAFETY: as above.
    protect(0, || unsafe { (*scratch).capacity() })
}
