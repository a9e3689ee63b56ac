//! Scratch memory: what is live stays as it is, what is dead is used again, whatever happens meanwhile.

mod arena;
#[path = "../common/mod.rs"]
mod common;
#[cfg(unix)]
mod forks;
mod laws;
mod model;

use firsttouch::scratch::Buffer;
use std::ptr::NonNull;
use std::sync::Arc;

/// A buffer of a fixed size on a vector, which is dropped with it.
#[allow(unsafe_code)] // Safety: the vector's memory stays where it is, and nobody else uses it.
fn fixed(size: usize, shared: bool) -> Arc<Buffer> {
    let mut storage = vec![0x55_u8; size];
    let address = NonNull::new(storage.as_mut_ptr()).unwrap();
    // SAFETY: as above.
    unsafe { Buffer::fixed(address, size, shared, Box::new(storage)) }
}
