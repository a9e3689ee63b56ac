//! Sets of nodes and processors, as the kernel's bit masks.

/// A set of numbers below `64 * WORDS`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Bits<const WORDS: usize>(pub [u64; WORDS]);

/// A set of NUMA nodes; Linux has at most 1024.
pub type Nodes = Bits<16>;
/// A set of processors; Linux has at most 8192.
pub type Processors = Bits<128>;

impl<const WORDS: usize> Bits<WORDS> {
    /// The empty set.
    pub const EMPTY: Self = Self([0; WORDS]);
    /// The capacity of the set.
    pub const ROOM: usize = 64 * WORDS;

    /// Returns the set of one number; empty if it is too large.
    pub fn one(number: usize) -> Self {
        let mut set = Self::EMPTY;
        set.insert(number);
        set
    }

    /// Inserts a number; does nothing if it is too large.
    pub fn insert(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word |= 1 << (number % 64);
        }
    }

    /// Returns whether the set contains `number`.
    pub fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Returns the intersection.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    /// Returns the difference.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & !other.0[at]))
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Iterates over the elements in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..Self::ROOM).filter(|&number| self.contains(number))
    }

    /// Parses a list in the kernel's format, like `0-3,8`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut set = Self::EMPTY;
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (digits(first)?, digits(last)?);
            if first > last || last >= Self::ROOM {
                return None;
            }
            (first..=last).for_each(|number| set.insert(number));
        }
        Some(set)
    }
}

/// Parses a number without a sign, which `parse` would accept.
fn digits(text: &str) -> Option<usize> {
    let text = text.trim();
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl<const WORDS: usize> std::fmt::Display for Bits<WORDS> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut numbers = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = numbers.next() {
            let mut last = first;
            while numbers.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl<const WORDS: usize> std::fmt::Debug for Bits<WORDS> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl<const WORDS: usize> FromIterator<usize> for Bits<WORDS> {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut set = Self::EMPTY;
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::Nodes;

    #[test]
    fn lists_round_trip() {
        for text in ["", "0", "0-1", "0,2", "1-3,8,63-65", "1023"] {
            assert_eq!(Nodes::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Nodes::parse("2,0,1\n").unwrap().to_string(), "0-2");
        for text in ["-1", "a", "3-1", "1024", "0,,1", "+1", "0x1", "1-", "1.5"] {
            assert_eq!(Nodes::parse(text), None, "{text}");
        }
    }

    #[test]
    fn set_operations() {
        let (a, b) = (Nodes::parse("0-3").unwrap(), Nodes::parse("2-5").unwrap());
        assert_eq!(a.and(&b).to_string(), "2-3");
        assert_eq!(a.without(&b).to_string(), "0-1");
        assert_eq!((a.len(), Nodes::EMPTY.is_empty(), a.contains(3), a.contains(4)), (4, true, true, false));
    }
}
