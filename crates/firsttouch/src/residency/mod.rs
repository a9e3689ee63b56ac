//! Residency: what stands behind the pages of a range. Nothing here touches a page, and nothing needs privileges.
//!
//! [`footprint()`] says which pages an array lies on. [`look`] says what they are, by the best source that this kernel
//! and this process have, and who said so; what nobody can tell stays unknown and is never guessed. [`summed`] makes
//! figures of it. Other threads go on meanwhile: each page's state is of one moment, all together are not.

mod base;
mod files;
mod footprint;
mod locked;
mod mappings;
pub mod nodes;
mod runs;
mod sizes;
mod summed;
mod zero_page;

pub use footprint::footprint;
pub use runs::{Run, Runs, Source, State};
pub use summed::{Figure, Summed, summed};

use std::ops::Range;

/// The states of some pages, and who was asked for what.
pub struct Look {
    /// The states.
    pub runs: Runs,
    /// Which pages are there, and which are swapped.
    pub base: Source,
    /// Which are the shared zero page.
    pub zero: Source,
    /// Which are small, which are huge.
    pub size: Source,
    /// Which are in the page cache only.
    pub cached: Source,
}

/// What stands behind the pages of `ranges`: whole pages, in order, apart.
pub fn look(ranges: &[Range<usize>]) -> Look {
    let (mut runs, base, table) = base::look(ranges);
    let zero = zero_page::refine(&mut runs, table.as_ref(), base);
    let size = sizes::refine(&mut runs, table.as_ref(), base);
    let cached = files::refine(&mut runs, base);
    Look { runs, base, zero, size, cached }
}
