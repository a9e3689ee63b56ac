//! What scopes take their memory from.

use crate::allocator::{AllocError, Allocator, Block, Description, Limit, Request};
use std::ptr::NonNull;
use std::sync::Arc;

/// A scope's place in its backing's list. It goes to another scope only once no block of this one lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u32);

impl Slot {
    /// The place of blocks that were taken outside all scopes; it is always open.
    pub const OUTSIDE: Self = Self(0);
}

/// Why a request was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// What is held is too much for what lives: somebody else should serve this.
    Fragmented,
    /// There is no memory.
    Failed(AllocError),
}

impl Refused {
    /// As an allocator says it.
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
    /// The block is somebody else's.
    Elsewhere,
    /// It lies among others: it holds up more than itself.
    Shared,
    /// It has its memory to itself, so that its scope can let go of it.
    Alone,
}

/// A block that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Where it begins.
    pub address: usize,
    /// Its bytes, as asked or a little more.
    pub size: usize,
    /// The number of the line that asked; zero where none was noted.
    pub site: u64,
}

impl Survivor {
    /// Adds it to a list, as far as there is memory for that: a list that ends early still says that arrays live on.
    pub(crate) fn join(self, list: &mut Vec<Self>) {
        if list.try_reserve(1).is_ok() {
            list.push(self);
        }
    }
}

/// Somebody wrote to freed memory; found in debug mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where the freed block began.
    pub address: usize,
    /// Its bytes.
    pub size: usize,
    /// The first byte that was hit, counted from the block's begin.
    pub offset: usize,
    /// The number of the line that asked for the block; zero where none was noted.
    pub site: u64,
}

/// How a scope ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Its blocks that live on.
    pub survivors: usize,
    /// Their bytes.
    pub bytes: usize,
    /// What debug mode found, if anything.
    pub damage: Option<Damage>,
}

/// Memory for scopes. Its blocks are counted; any thread may give one back, during its scope or long after.
///
/// # Safety
/// Blocks keep the laws of an [`Allocator`](crate::Allocator)'s: no scope's end, and nothing else, makes memory with a
/// live block on it anybody else's.
pub unsafe trait Backing: Send + Sync {
    /// A scope begins.
    fn open(&self) -> Slot;

    /// A scope ends. Its blocks that live stay valid. A second time nothing happens.
    fn close(&self, slot: Slot) -> Closed;

    /// Serves a request of a scope.
    ///
    /// # Errors
    /// Why it was not served.
    fn allocate(&self, slot: Slot, request: Request) -> Result<Block, Refused>;

    /// Takes a block back, if it is one of this backing; whether it was.
    ///
    /// # Safety
    /// A live block begins at `address`, whoever's; nothing uses it any more if it is one of this backing.
    unsafe fn deallocate(&self, address: NonNull<u8>) -> bool;

    /// Bytes that may be used at `address`, if a live block of this backing begins there.
    fn usable_size(&self, address: NonNull<u8>) -> Option<usize>;

    /// Changes a block's size where it stands; `false` leaves it as it was.
    ///
    /// # Safety
    /// A live block of this backing begins at `address`; where it shrinks, nothing uses what lies above.
    unsafe fn resize_in_place(&self, address: NonNull<u8>, size: usize) -> bool;

    /// The live blocks of a scope.
    fn survivors(&self, slot: Slot) -> Vec<Survivor>;

    /// How many they are.
    fn living(&self, slot: Slot) -> usize {
        self.survivors(slot).len()
    }

    /// How a scope holds the block at `address`.
    fn hold(&self, slot: Slot, address: NonNull<u8>) -> Hold {
        let address = address.as_ptr() as usize;
        let own = self.survivors(slot).iter().any(|block| block.address == address);
        if own { Hold::Shared } else { Hold::Elsewhere }
    }

    /// Lets go of a block that is held alone: from now on it is [`Backing::upstream`]'s and counts no more, though it is
    /// still given back here.
    fn release(&self, _address: NonNull<u8>) {}

    /// Whether the block at `address` was let go of.
    fn is_released(&self, _address: NonNull<u8>) -> bool {
        false
    }

    /// Where its memory comes from, if that is an allocator.
    fn upstream(&self) -> Option<Arc<dyn Allocator>> {
        None
    }

    /// What debug mode found since anyone was told.
    fn damage(&self) -> Option<Damage> {
        None
    }

    /// Bytes of live blocks.
    fn used(&self) -> usize;

    /// Bytes held, in use or not.
    fn capacity(&self) -> usize;

    /// The most that was ever used since the last reset.
    fn peak(&self) -> usize;

    /// How many scopes are open.
    fn depth(&self) -> usize;

    /// Gives back what no live block needs.
    ///
    /// # Errors
    /// The number of open scopes; nothing happens then.
    fn reset(&self) -> Result<(), usize>;

    /// Whether all its blocks lie in firsttouch's segments.
    fn in_segments(&self) -> bool;

    /// What it is.
    fn describe(&self) -> Description;

    /// The expression that makes it, defaults shown; for people.
    fn expression(&self) -> String {
        self.describe().to_string()
    }
}
