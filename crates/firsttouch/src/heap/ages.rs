//! A unit's age, in one byte: that nothing is behind it, that it reads zero, or when it was freed.

/// Nothing is mapped behind the unit.
pub(crate) const UNMAPPED: u8 = 0;
/// Mapped, and reads zero.
pub(crate) const CLEAN: u8 = 1;
/// The first of the ages that say when a dirty unit was freed: the epoch.
pub(crate) const FIRST_EPOCH: u8 = 2;
/// Epochs go round.
const EPOCHS: u8 = u8::MAX - FIRST_EPOCH + 1;

/// The epoch after `epoch`.
pub(crate) fn next_epoch(epoch: u8) -> u8 {
    if epoch == u8::MAX { FIRST_EPOCH } else { epoch + 1 }
}

/// Ticks between a dirty unit's age and now.
pub(crate) fn ticks_since(age: u8, now: u8) -> u8 {
    if now >= age { now - age } else { EPOCHS - (age - now) }
}
