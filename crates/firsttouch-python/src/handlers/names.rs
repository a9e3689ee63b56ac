//! The names of handlers, by which copies of this package know each other.

use crate::numpy::abi::RawHandler;
use std::ffi::c_char;

/// The name of a context's handler. Behind the name's end it stands in every handler, so that copies of this package
/// know each other.
pub const NAME: &str = "firsttouch";
/// The name of NumPy's default handler. The one that stands in front of it carries it too: there are programs, NumPy's
/// own tests among them, that know the default by its name.
pub const NUMPY_NAME: &str = "default_allocator";

/// A handler's name, with ours behind its end.
pub fn names(name: &str) -> [c_char; 127] {
    let mut bytes = [0; 127];
    for (to, from) in bytes.iter_mut().zip(name.bytes().chain([0]).chain(NAME.bytes())) {
        *to = from as c_char;
    }
    bytes
}

/// Whether a handler is a front of this package, of this copy or another.
pub fn is_front(raw: &RawHandler) -> bool {
    let bytes: Vec<u8> = raw.name.iter().map(|&c| c as u8).collect();
    let parts: Vec<&[u8]> = bytes.split(|&c| c == 0).take(2).collect();
    parts == [NUMPY_NAME.as_bytes(), NAME.as_bytes()]
}
