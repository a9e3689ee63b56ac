//! Page sizes, by the names that people use.

use crate::os;
use crate::size;
use std::fmt;

/// What a block's pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// As small as they come.
    Base,
    /// Transparent huge pages: a wish, that the kernel grants page by page.
    Transparent,
    /// Explicit huge pages of so many bytes, from the kernel's pool.
    Explicit(usize),
}

impl Page {
    /// The page size that `text` spells: `thp`, or one of the machine's, like `2M` or `1G`.
    ///
    /// # Errors
    /// A message that names the sizes there are.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "thp" {
            return Ok(Self::Transparent);
        }
        let there = os::explicit_huge_pages();
        match size::parse(text) {
            Ok(size) if there.contains(&size) => Ok(Self::Explicit(size)),
            _ => {
                let names: Vec<String> = there.iter().rev().map(|&size| Self::Explicit(size).to_string()).collect();
                let has = if names.is_empty() { "no explicit huge pages".into() } else { names.join(" and ") };
                Err(format!("{text:?} is no page size of this machine, which has {has}"))
            }
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base => write!(f, "False"),
            Self::Transparent => write!(f, "'thp'"),
            Self::Explicit(size) if size % (1 << 30) == 0 => write!(f, "'{}G'", size >> 30),
            Self::Explicit(size) if size % (1 << 20) == 0 => write!(f, "'{}M'", size >> 20),
            Self::Explicit(size) => write!(f, "'{}K'", size >> 10),
        }
    }
}

/// Bytes from one page to the next.
pub(crate) fn page_bytes(page: Page) -> usize {
    match page {
        Page::Base | Page::Transparent => os::page_size(), // the kernel may well have given small ones
        Page::Explicit(bytes) => bytes,
    }
}
