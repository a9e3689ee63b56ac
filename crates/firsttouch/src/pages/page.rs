//! Page sizes, and their names.

use crate::description::Value;
use crate::expression::did_you_mean;
use crate::os;
use crate::size;
use crate::sync::first::First;
use std::fmt;

/// The kind of a block's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Pages of the smallest size.
    Base,
    /// Transparent huge pages, which the kernel grants page by page.
    Transparent,
    /// Explicit huge pages of this size in bytes, from the kernel's pool.
    Explicit(usize),
}

/// The sizes of explicit huge pages of the machine, largest first. They stay as they are, so they are read once: later
/// there may be no memory or no file descriptor to read them. A front asks for them when it is loaded.
pub fn explicit_page_sizes() -> &'static [usize] {
    static SIZES: First<Vec<usize>> = First::new();
    match SIZES.get() {
        Some(sizes) => sizes,
        None => os::explicit_huge_pages().map_or(&[], |sizes| SIZES.get_or_make(|| sizes)),
    }
}

impl Page {
    /// Parses a page size: `thp`, or one of the machine's, like `2M` or `1G`. Page sizes are powers of two, so `2MB` is
    /// the same.
    ///
    /// # Errors
    /// A message that lists the sizes of the machine.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "thp" {
            return Ok(Self::Transparent);
        }
        let there = explicit_page_sizes();
        match size::parse(text.strip_suffix(['b', 'B']).unwrap_or(text)).or_else(|_| size::parse(text)) {
            Ok(size) if there.contains(&size) => Ok(Self::Explicit(size)),
            _ => {
                let names: Vec<String> = there.iter().rev().map(|&size| Self::Explicit(size).to_string()).collect();
                let has = if names.is_empty() { "no explicit huge pages".into() } else { names.join(" and ") };
                let near = did_you_mean(text, ["thp"]);
                Err(format!("{text:?} is not a page size of this machine, which has {has}{near}"))
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

/// The size of a page in bytes.
pub fn page_bytes(page: Page) -> usize {
    match page {
        Page::Base | Page::Transparent => os::page_size(), // the kernel may have granted only small ones
        Page::Explicit(bytes) => bytes,
    }
}
