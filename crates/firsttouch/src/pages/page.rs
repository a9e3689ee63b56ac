//! Page sizes, by the names that people use.

use crate::description::Value;
use crate::os;
use crate::size;
use std::fmt;

/// What a block's pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// As small as they come.
    Base,
    /// Transparent huge pages: a request that the kernel grants page by page.
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

impl Page {
    /// The page size as an argument of `pages`.
    pub fn value(&self) -> Value {
        match *self {
            Self::Base => Value::Flag(false),
            Self::Transparent => Value::from("thp"),
            Self::Explicit(size) if size % (1 << 30) == 0 => Value::from(format!("{}G", size >> 30)),
            Self::Explicit(size) if size % (1 << 20) == 0 => Value::from(format!("{}M", size >> 20)),
            Self::Explicit(size) => Value::from(format!("{}K", size >> 10)),
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

/// Bytes from one page to the next.
pub fn page_bytes(page: Page) -> usize {
    match page {
        Page::Base | Page::Transparent => os::page_size(), // the kernel may well have given small ones
        Page::Explicit(bytes) => bytes,
    }
}
