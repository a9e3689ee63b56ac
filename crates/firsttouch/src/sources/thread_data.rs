//! The module's thread-local data, which the embedded libraries use. glibc allocates them when a thread first uses them, and
//! ends the process where it has no memory: the purger's thread looks before it calls a library.
//!
//! The first allocation of a thread also costs address space, for a heap of glibc's that is never given back. Where much of a
//! bounded one is in use, the program would lack it; there the purger calls no library, and frees give back alone.

#![allow(unsafe_code)] // Safety: a block of the C library, freed at once.

use crate::heap::purger;
use crate::os;
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The address space that has to be left: eight times what glibc maps for a heap, half of which it keeps (`HEAP_MAX_SIZE`).
const LEFT: usize = 1 << 30;

/// The last of the purger's threads that has the data.
static HAS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static USED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread, which is the purger's, has the data; it gets them where there is memory. Between the look and the use
/// another thread could take what was seen, once in the life of this thread.
pub fn is_there() -> bool {
    let thread = purger::starts();
    if HAS.load(Relaxed) == thread {
        return true;
    }
    let has_room = os::address_space_left() >= LEFT && has_memory();
    if has_room {
        USED.set(black_box(true));
        HAS.store(thread, Relaxed);
    }
    has_room
}

/// Whether the C library would have the memory.
fn has_memory() -> bool {
    const ROOM: usize = 16 << 10; // four times as much
    // SAFETY: `black_box` keeps the compiler from leaving both calls out.
    unsafe {
        let block = black_box(libc::malloc(ROOM));
        libc::free(block);
        !block.is_null()
    }
}
