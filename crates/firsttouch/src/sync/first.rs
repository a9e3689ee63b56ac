//! A value that is created on first use.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::AcqRel, Ordering::Acquire};

/// A value that is created on first use and never dropped. Two threads may both create one, of which one is kept. With
/// `OnceLock`, one thread would wait for the other, which never returns in a child that was forked meanwhile.
pub struct First<T>(AtomicPtr<T>);

impl<T: Send + Sync + 'static> First<T> {
    /// Creates an empty one.
    #[allow(clippy::new_without_default)] // it is for statics
    pub const fn new() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// Returns the value, if there is one.
    #[inline]
    pub fn get(&'static self) -> Option<&'static T> {
        // SAFETY: what is stored there is never freed.
        unsafe { self.0.load(Acquire).as_ref() }
    }

    /// Returns the value, creating it by `make` if there is none.
    #[inline]
    pub fn get_or_make(&'static self, make: impl FnOnce() -> T) -> &'static T {
        self.get().unwrap_or_else(|| self.fill(make()))
    }

    #[cold]
    fn fill(&'static self, value: T) -> &'static T {
        let made = Box::into_raw(Box::new(value));
        match self.0.compare_exchange(null_mut(), made, AcqRel, Acquire) {
            // SAFETY: as above.
            Ok(_) => unsafe { &*made },
            // SAFETY: as above; the value created here was never shared.
            Err(first) => unsafe {
                drop(Box::from_raw(made));
                &*first
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::First;

    #[test]
    fn the_first_value_stays_even_if_another_is_made_meanwhile() {
        static VALUE: First<String> = First::new();
        let outer = VALUE.get_or_make(|| {
            assert_eq!(VALUE.get_or_make(|| "first".to_owned()), "first");
            "second".to_owned()
        });
        assert_eq!(outer, "first");
        assert_eq!(VALUE.get_or_make(|| unreachable!()), "first");
    }
}
