//! Typed queries of an allocator: whether it recognizes its blocks, and which requests it serves.

use firsttouch::adaptors::Pool;
use firsttouch::allocator::Allocator;
use firsttouch::owners::{self, keeps_list};
use firsttouch::scratch::Buffer;
use firsttouch::sources::PreloadedPool;
use std::any::Any;
use std::sync::Arc;

/// Whether an allocator's blocks can be distinguished from others by their address. Those of the preloaded library are the
/// C library's for everybody, and it can.
pub fn can_tell(allocator: &dyn Allocator) -> bool {
    let any: &dyn Any = allocator;
    any.is::<Pool>() || keeps_list(allocator) || any.is::<PreloadedPool>()
}

/// The size below which requests are forwarded to NumPy while `allocator` is installed: `usual`, unless it serves all.
pub fn small_limit(allocator: &dyn Allocator, usual: usize) -> usize {
    if keeps_list(allocator) && allocator.small_limit() == 0 { 0 } else { usual }
}

/// Registers `allocator` as an owner, so that its blocks are found by their address, whichever handler frees them.
pub fn register_owner(allocator: &Arc<dyn Allocator>) {
    let any: &dyn Any = &**allocator;
    if keeps_list(&**allocator) {
        owners::enter(allocator.clone());
    }
    // Large blocks of a buffer are its upstream's.
    if let (true, Some(upstream)) = (any.is::<Buffer>(), allocator.upstream()) {
        register_owner(upstream);
    }
}
