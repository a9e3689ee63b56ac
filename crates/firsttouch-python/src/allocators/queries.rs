//! Typed questions to an allocator: whether it knows its blocks, and which requests it wants.

use firsttouch::allocator::Allocator;
use firsttouch::owners::{self, Keeper, keeps_list};
use firsttouch::scratch::Scope;
use firsttouch::sources::PreloadedPool;
use std::any::Any;
use std::sync::Arc;

/// Whether an allocator's blocks can be told from others by their address; those of the preloaded library are the C
/// library's for everybody, which tells them.
pub fn can_tell(allocator: &dyn Allocator) -> bool {
    let any: &dyn Any = allocator;
    allocator.in_segments() || keeps_list(allocator) || any.is::<PreloadedPool>()
}

/// Requests below this many bytes go on to NumPy where `allocator` is installed: `usual`, unless it wants them all.
pub fn small_limit(allocator: &dyn Allocator, usual: usize) -> usize {
    if keeps_list(allocator) && allocator.small_limit() == 0 { 0 } else { usual }
}

/// Registers `allocator` as an owner, so that its blocks are found by their address, whichever handler frees them.
pub fn register_owner(allocator: &Arc<dyn Allocator>) {
    let any: &dyn Any = &**allocator;
    if let Some(scope) = any.downcast_ref::<Scope>() {
        owners::enter(Keeper::Backing(scope.backing().clone()));
    } else if keeps_list(&**allocator) {
        owners::enter(Keeper::Allocator(allocator.clone()));
    }
}
