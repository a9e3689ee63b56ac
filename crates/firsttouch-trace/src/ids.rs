//! Numbers of living blocks: the one that became free last comes first, so that they stay small.

/// Where numbers wait.
pub(super) trait Stack {
    /// Whether there was room.
    fn push(&mut self, number: u32) -> bool;
    fn pop(&mut self) -> Option<u32>;
}

impl Stack for Vec<u32> {
    fn push(&mut self, number: u32) -> bool {
        Self::push(self, number);
        true
    }

    fn pop(&mut self) -> Option<u32> {
        Self::pop(self)
    }
}

/// Who writes a trace and who reads it draw the same numbers.
#[derive(Default)]
pub(super) struct Ids<S> {
    free: S,
    next: u32,
}

impl<S: Stack> Ids<S> {
    pub(super) fn new(free: S) -> Self {
        Self { free, next: 0 }
    }

    /// A number that no living block has.
    pub(super) fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Takes a number back; whether there was room to note it.
    pub(super) fn give(&mut self, number: u32) -> bool {
        self.free.push(number)
    }
}
