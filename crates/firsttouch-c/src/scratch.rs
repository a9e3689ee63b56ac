//! Scratch buffers. The header bumps and rewinds inline where no chunk changes; the rest is here.

use crate::allocator::{Handle, behind, invalid, no_memory};
use crate::error::{Status, ensure_memory, protect, required, status_of};
use crate::pages::range;
use firsttouch::allocator::{AllocError, Limit, Request};
use firsttouch::scratch::{Arena, Mark, Scratch as _};
use firsttouch::sources::Malloc;
use std::alloc::Layout;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};

/// `firsttouch_scratch`: its head comes first in an arena, too.
type Scratch = Arena<'static>;

/// `FIRSTTOUCH_CHECKED`.
const CHECKED: usize = usize::MAX;

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
            let upstream = match upstream.is_null() {
                true => Malloc::get(),
                // SAFETY: a living handle (header).
                false => unsafe { behind(upstream) }.clone(),
            };
            match size {
                CHECKED => Arena::checked(upstream),
                0 => Arena::with(upstream, 4 << 10),
                first_chunk => Arena::with(upstream, first_chunk),
            }
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
        // Zero bytes are served as one, so that the address is no other block's.
        let Ok(layout) = Layout::from_size_align(size.max(1), alignment) else {
            return no_memory(AllocError::new(size, Limit::Size));
        };
        // SAFETY: a living buffer that no other thread uses now (header).
        match unsafe { &*scratch }.allocate(layout) {
            Ok(address) => address.as_ptr().cast(),
            Err(error) => no_memory(error),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_scratch_rewind_far(scratch: *mut Scratch, mark: Mark) {
    // SAFETY: a living buffer, and a mark that was made by it and is not undone yet (header). Scopes of Rust's are not
    // open, as nobody in Rust has this arena.
    protect((), || unsafe { (*scratch).rewind(mark) });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn firsttouch_scratch_reset(scratch: *mut Scratch) {
    // SAFETY: a living buffer, none of whose memory is used any more (header).
    protect((), || unsafe { (*scratch).reset() });
}
