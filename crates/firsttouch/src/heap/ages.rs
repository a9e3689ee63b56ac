//! The age of a unit, in one byte: that it is not mapped, that it reads zero, or when it was freed.

/// The unit is not mapped.
pub(crate) const UNMAPPED: u8 = 0;
/// The unit is mapped and reads zero.
pub(crate) const CLEAN: u8 = 1;
/// The same, on a huge page: reading or writing it makes its neighbours real, too.
pub(crate) const CLEAN_HUGE: u8 = 2;
/// The first epoch. Ages from here on say in which epoch a dirty unit was freed.
pub(crate) const FIRST_EPOCH: u8 = 3;
/// Number of epochs, after which they wrap around.
const EPOCHS: u8 = u8::MAX - FIRST_EPOCH + 1;

/// The epoch after `epoch`.
pub(crate) fn next_epoch(epoch: u8) -> u8 {
    if epoch == u8::MAX { FIRST_EPOCH } else { epoch + 1 }
}

/// Epochs from a dirty unit's age until now.
pub(crate) fn ticks_since(age: u8, now: u8) -> u8 {
    if now >= age { now - age } else { EPOCHS - (age - now) }
}
