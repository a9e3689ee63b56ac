//! The concrete types of the allocators in a stack of adaptors.

use firsttouch::allocator::Allocator;
use std::any::Any;
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
