//! Typed questions to an allocator: what it is, what is in the stack below it, and whether it knows its blocks.

use firsttouch::allocator::Allocator;
use firsttouch::owners::{self, Keeper};
use firsttouch::scratch::Scope;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

/// The allocator as a `T`, if it is one itself.
pub fn downcast<T: Any>(native: &Arc<dyn Allocator>) -> Option<&T> {
    let any: &dyn Any = native.as_ref();
    any.downcast_ref()
}

/// The outermost allocator of one type in a stack.
pub fn find<T: Any>(native: &Arc<dyn Allocator>) -> Option<&T> {
    downcast(native).or_else(|| native.upstream().and_then(find))
}

/// Whether an allocator's blocks can be told from others by their address.
pub fn can_tell(allocator: &dyn Allocator) -> bool {
    allocator.in_segments() || keeps_list(allocator)
}

/// Whether an allocator keeps a list of its blocks, as adaptors do.
pub fn keeps_list(allocator: &dyn Allocator) -> bool {
    allocator.owns(NonNull::dangling()).is_some()
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
