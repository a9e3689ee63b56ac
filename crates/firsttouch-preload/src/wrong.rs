//! A program that frees what it may not: it ends with a message, as under the C library.

use crate::text::Line;

/// What the program wanted with the address.
#[derive(Clone, Copy)]
pub enum Doing {
    Free,
    Reallocate,
    Measure,
}

/// Ends the program.
#[cold]
pub fn abort(doing: Doing, address: usize) -> ! {
    let name = match doing {
        Doing::Free => "free",
        Doing::Reallocate => "realloc",
        Doing::Measure => "malloc_usable_size",
    };
    let what = "no large block begins here (double free, or an address inside a block)";
    let mut line = Line::new();
    line.put("firsttouch: ").put(name).put("(): ").put(what).put(": 0x").hex(address).put("\n");
    line.write_to(libc::STDERR_FILENO);
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}
