//! The module's thread-local data, which the embedded libraries use. glibc allocates them when a thread first uses them, and
//! ends the process where it has no memory: the purger's thread looks before it calls a library.

#![allow(unsafe_code)] // Safety: a block of the C library, freed at once.

use std::cell::Cell;
use std::hint::black_box;

thread_local! {
    static USED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread has the data; it gets them where there is memory. Between the look and the use another thread could
/// take what was seen, once in the life of this thread.
pub fn is_there() -> bool {
    const ROOM: usize = 16 << 10; // four times as much
    // SAFETY: `black_box` keeps the compiler from leaving both calls out.
    let has_room = unsafe {
        let block = black_box(libc::malloc(ROOM));
        libc::free(block);
        !block.is_null()
    };
    if has_room {
        USED.set(black_box(true));
    }
    has_room
}
