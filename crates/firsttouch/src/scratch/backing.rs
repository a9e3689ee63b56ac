//! The memory that scopes allocate from.

use crate::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use std::ptr::NonNull;
use std::sync::Arc;

/// Identifies a scope in its backing. A slot is reused only once no block of its previous scope is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u32);

impl Slot {
    /// The slot of blocks allocated outside all scopes, which is always open.
    pub const OUTSIDE: Self = Self(0);
}

/// Why a request was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Too much is held for what is live: another allocator should serve the request.
    Fragmented,
    /// There is no memory.
    Failed(AllocError),
}

impl Refused {
    /// Converts to an allocator's error.
    pub(super) fn error(self) -> AllocError {
        match self {
            Self::Failed(error) => error,
            Self::Fragmented => AllocError::new(0, Limit::Upstream),
        }
    }
}

impl From<AllocError> for Refused {
    fn from(error: AllocError) -> Self {
        Self::Failed(error)
    }
}

/// How a scope holds a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The block does not belong to the scope.
    Elsewhere,
    /// The block shares its memory with others, which a release would keep alive.
    Shared,
    /// The block has memory of its own, so the scope can release it.
    Alone,
}

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Its address.
    pub address: usize,
    /// Its size in bytes, which may be a little more than requested.
    pub size: usize,
    /// The number of the source line that requested it; zero if none was recorded.
    pub site: u64,
}

impl Survivor {
    /// Appends it to a list if there is memory for that: even a truncated list shows that arrays are still live.
    pub(crate) fn join(self, list: &mut Vec<Self>) {
        if list.try_reserve(1).is_ok() {
            list.push(self);
        }
    }
}

/// A write to freed memory, found in debug mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The address of the freed block.
    pub address: usize,
    /// Its size in bytes.
    pub size: usize,
    /// The first byte that was overwritten, as an offset into the block.
    pub offset: usize,
    /// The number of the source line that requested the block; zero if none was recorded.
    pub site: u64,
}

/// How a scope ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// The number of its blocks that are still live.
    pub survivors: usize,
    /// Their size in bytes.
    pub bytes: usize,
    /// The damage that debug mode found, if any.
    pub damage: Option<Damage>,
}

/// Memory for scopes. Its blocks are counted, and any thread may free one, during its scope or long after.
///
/// # Safety
/// Blocks keep the laws of an [`Allocator`](crate::Allocator)'s: nothing, not even the end of a scope, reuses the
/// memory of a live block.
pub unsafe trait Backing: Send + Sync {
    /// Begins a scope.
    fn open(&self) -> Slot;

    /// Ends a scope. Its live blocks stay valid. Has no effect if the scope has ended already.
    fn close(&self, slot: Slot) -> Closed;

    /// Allocates a block for a scope.
    ///
    /// # Errors
    /// Why the request was not served.
    fn allocate(&self, slot: Slot, request: Request) -> Result<Block, Refused>;

    /// Frees the block at `address` if it belongs to this backing; returns whether it does.
    ///
    /// # Safety
    /// `address` is a live block of any allocator; if it belongs to this backing, it is no longer in use.
    unsafe fn deallocate(&self, address: NonNull<u8>) -> bool;

    /// Returns the usable size of the live block at `address`, if it belongs to this backing.
    fn usable_size(&self, address: NonNull<u8>) -> Option<usize>;

    /// Resizes a block in place; returns `false` if that is not possible, which leaves it unchanged.
    ///
    /// # Safety
    /// `address` is a live block of this backing; if it shrinks, the bytes beyond `size` are no longer in use.
    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool;

    /// Returns the live blocks of a scope.
    fn survivors(&self, slot: Slot) -> Vec<Survivor>;

    /// Returns the number of live blocks of a scope.
    fn living(&self, slot: Slot) -> usize {
        self.survivors(slot).len()
    }

    /// Returns how a scope holds the block at `address`.
    fn hold(&self, slot: Slot, address: NonNull<u8>) -> Hold {
        let address = address.as_ptr() as usize;
        let own = self.survivors(slot).iter().any(|block| block.address == address);
        if own { Hold::Shared } else { Hold::Elsewhere }
    }

    /// Releases a block that is held alone: from now on it belongs to [`Backing::upstream`] and no longer counts here,
    /// but it is still freed through this backing.
    fn release(&self, _address: NonNull<u8>) {}

    /// Whether the block at `address` was released.
    fn is_released(&self, _address: NonNull<u8>) -> bool {
        false
    }

    /// The allocator that the memory comes from, if any.
    fn upstream(&self) -> Option<Arc<dyn Allocator>> {
        None
    }

    /// The damage that debug mode found since the last call.
    fn damage(&self) -> Option<Damage> {
        None
    }

    /// Bytes of live blocks.
    fn used(&self) -> usize;

    /// Bytes held, in use or idle.
    fn capacity(&self) -> usize;

    /// The peak of the bytes in use since the last reset.
    fn peak(&self) -> usize;

    /// The number of open scopes.
    fn depth(&self) -> usize;

    /// Returns the memory that no live block needs.
    ///
    /// # Errors
    /// The number of open scopes, if there are any. Nothing happens then.
    fn reset(&self) -> Result<(), usize>;

    /// Whether all blocks lie in firsttouch's segments.
    fn in_segments(&self) -> bool;

    /// Describes the backing.
    fn describe(&self) -> Description;

    /// The expression that creates the backing, including defaults, for display.
    fn expression(&self) -> String {
        self.describe().to_string()
    }
}
